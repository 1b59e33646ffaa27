/* A program that forbids itself all system calls but those that its own source needs.
   Arguments: what happens on others (errno, kill, trap, allow), and how it installs the filter
   (prctl, seccomp, strict). */
#include "guest.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static char data[400000];

#define ALLOW(number)                                     \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),    \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int install(const char *action, const char *how) {
    unsigned other = !strcmp(action, "kill")   ? SECCOMP_RET_KILL_PROCESS
                     : !strcmp(action, "trap") ? SECCOMP_RET_TRAP
                     : !strcmp(action, "allow") ? SECCOMP_RET_ALLOW
                                               : SECCOMP_RET_ERRNO | EPERM;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_pread64), ALLOW(SYS_pwrite64),
        ALLOW(SYS_sendfile), ALLOW(SYS_copy_file_range),
        ALLOW(SYS_exit), ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigreturn), ALLOW(SYS_brk),
        BPF_STMT(BPF_RET | BPF_K, other),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (!strcmp(how, "strict")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (!strcmp(how, "seccomp")) return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void say(const char *what, long value) {
    char line[100];
    int length = snprintf(line, sizeof line, "%s %ld errno %d\n", what, value, errno);
    write(1, line, length);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), to = open("t", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int cold = open("cold", O_RDONLY);
    write(fd, data, sizeof data);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* Programs first ask whether there are filters at all. */
    say("probe", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
    say("write after the probe", write(fd, data, sizeof data));
    errno = 0;
    int installed = install(arguments[1], arguments[2]);
    say("installed", installed);
    say("read", read(cold, data, sizeof data));
    say("read", read(cold, data, sizeof data));
    for (int at = 0; at < 100; at++) read(cold, data, 4096);
    say("write", write(fd, data, sizeof data));
    say("write", write(1, "", 0));
    if (strcmp(arguments[2], "strict")) {
        say("pread", pread(cold, data, 100000, 50000));
        say("pwrite", pwrite(fd, data, sizeof data, 0));
        off_t at = 0;
        say("sendfile", sendfile(to, fd, &at, sizeof data));
        say("copy", copy_file_range(fd, &at, to, NULL, sizeof data, 0));
    }
    /* What started this says when it is to end. */
    read(0, data, 1);
    if (!strcmp(arguments[1], "errno")) return 5;
    syscall(SYS_exit, 6);
    return 1;
}
