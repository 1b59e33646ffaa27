/* A program that may not make one system call, by number, reads a file and starts a child. */
#include "guest.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char data[100000];

int main(int count, char **words) {
    unsigned number = count > 1 ? (unsigned)atoi(words[1]) : 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
    int fd = open("data", O_RDWR);
    for (int i = 0; i < 3; i++) read(fd, data, sizeof data);
    write(fd, data, sizeof data);
    pid_t child = fork();
    if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(8); }
    int status = 0;
    waitpid(child, &status, 0);
    _exit(status ? 7 : 0);
}
