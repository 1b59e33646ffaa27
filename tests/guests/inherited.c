/* inherited FILE: reads some of a file, writes some of another and receives some of what is sent to it; children that
   it forks meanwhile end, or close all of that, and are killed if they do anything else to it.
   inherited FILE BYTES: reads all of the file, and forks such a child for each so many bytes. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "guest.h"

#define PART (16 << 10)

static char buffer[1 << 20];

/* A system call that does not pass through libc; what it has further arguments for is zero. */
static long call(long number, long a, long b, long c) {
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0, x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

#define FORBID(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* Forbids this process what changes an open file, or what others are told of it. */
static void leave_open_files_alone(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        FORBID(SYS_fadvise64), FORBID(SYS_readahead), FORBID(SYS_sync_file_range), FORBID(SYS_fdatasync),
        FORBID(SYS_epoll_ctl), FORBID(SYS_setsockopt),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0) || call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program))
        _exit(9);
}

/* Connected to a child that sends without end. */
static int receiver(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0), sock = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&name, length) || listen(listener, 1)) exit(2);
    getsockname(listener, (void *)&name, &length);
    if (connect(sock, (void *)&name, length)) exit(3);
    if (!fork()) {
        int other = accept(listener, NULL, NULL);
        close(sock);
        /* As from another program: not held. */
        while (call(SYS_write, other, (long)buffer, sizeof buffer) > 0) {}
        _exit(0);
    }
    close(listener);
    fcntl(sock, F_SETFL, O_NONBLOCK);
    return sock;
}

/* Receives until it is told to wait, several times. */
static void receive(int epoll, int sock) {
    struct epoll_event event = {EPOLLIN, {.fd = sock}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, sock, &event);
    for (int times = 0; times < 5; times++) {
        epoll_wait(epoll, &event, 1, 1000);
        while (recv(sock, buffer, sizeof buffer, 0) > 0) {}
    }
}

/* A child that ends, or one that closes these descriptors and ends unnoticed. */
static void let_a_child_be(const char *what, const int *close_too, int watched) {
    pid_t child = fork();
    if (!child) {
        if (watched) leave_open_files_alone();
        if (!close_too) _exit(0);
        while (*close_too >= 0) close(*close_too++);
        call(SYS_exit_group, 0, 0, 0);
    }
    say_end(what, child);
}

static void read_all(const char *path, long bytes) {
    int fd = open(path, O_RDONLY);
    long done = 0, got;
    while ((got = read(fd, buffer, 65536)) > 0)
        if ((done += got) % bytes == 0) {
            int all[] = {fd, -1};
            let_a_child_be("ends", NULL, 0);
            let_a_child_be("closes", all, 0);
        }
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3) return read_all(argv[1], atol(argv[2])), 0;
    int in = open(argv[1], O_RDONLY), out = open("out", O_RDWR | O_CREAT, 0600), sock = receiver();
    int epoll = epoll_create1(0), all[] = {in, out, sock, epoll, -1};
    for (int part = 0; part < 32; part++) read(in, buffer, PART);
    for (int part = 0; part < 16; part++) write(out, buffer, PART);
    receive(epoll, sock);
    let_a_child_be("ends", NULL, 1);
    let_a_child_be("closes what it read", (int[]){in, -1}, 1);
    let_a_child_be("closes what it wrote", (int[]){out, -1}, 1);
    let_a_child_be("closes the connection", (int[]){sock, -1}, 1);
    let_a_child_be("closes all", all, 1);
    return 0;
}
