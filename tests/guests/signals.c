/* Signals and descriptors that do not wait: EINTR, SA_RESTART, EAGAIN, short counts. */
#include "guest.h"

static volatile sig_atomic_t caught;
static int ends[2];

static void count(int signal) { (void)signal; caught++; }
static void feed(int signal) {
    (void)signal;
    if (++caught == 3) write(ends[1], "now", 3);
}

static void every(int milliseconds) {
    struct itimerval timer = {{0, milliseconds * 1000}, {0, milliseconds * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void handle(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
}

int main(void) {
    char buffer[4096];
    static char large[1 << 20];
    pipe(ends);

    handle(count, 0);
    every(20);
    SAY(read(ends[0], buffer, sizeof buffer));
    struct iovec v = {buffer, sizeof buffer};
    SAY(readv(ends[0], &v, 1));
    SAY(syscall(SYS_read, ends[0], buffer, sizeof buffer));
    SAY(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, -1));
    FILE *stream = fdopen(ends[0], "r");
    SAY(fgetc(stream));
    SAY(ferror(stream) != 0);
    clearerr(stream);

    caught = 0;
    handle(feed, SA_RESTART);
    SAY(read(ends[0], buffer, sizeof buffer));
    printf("caught %d\n", (int)caught);

    /* A blocking write of more than the pipe holds, interrupted when it is full. */
    handle(count, 0);
    SAY(write(ends[1], large, sizeof large));
    every(0);
    SAY(read(ends[0], buffer, 100));

    int two[2];
    pipe2(two, O_NONBLOCK);
    SAY(read(two[0], buffer, 10));
    SAY(write(two[1], large, sizeof large));
    SAY(write(two[1], large, sizeof large));
    SAY(write(two[1], large, 1));
    SAY(read(two[0], buffer, 4096));
    SAY(write(two[1], large, 4096));
    close(two[0]);
    signal(SIGPIPE, SIG_IGN);
    SAY(write(two[1], large, 10));
    SAY(sendfile(two[1], open("/proc/self/exe", O_RDONLY), NULL, 100));

    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    SAY(read(pair[0], buffer, 10));
    long sent = 0, got;
    while ((got = write(pair[1], large, sizeof large)) > 0) sent += got;
    printf("sent some: %d, errno %d\n", sent > 0, errno);
    SAY(read(pair[0], buffer, 10));
    close(pair[1]);

    /* Edge-triggered: one event a change, and reading until EAGAIN. */
    int third[2], queue = epoll_create1(0);
    pipe2(third, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(queue, EPOLL_CTL_ADD, third[0], &event);
    write(third[1], large, 10000);
    SAY(epoll_wait(queue, &event, 1, 1000));
    SAY(epoll_wait(queue, &event, 1, 10));
    SAY(read(third[0], buffer, sizeof buffer));
    SAY(epoll_wait(queue, &event, 1, 10));
    SAY(read(third[0], buffer, sizeof buffer));
    SAY(read(third[0], buffer, sizeof buffer));
    SAY(read(third[0], buffer, sizeof buffer));

    /* Short counts where the kernel makes them, and only there. */
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK, 0644);
    SAY(write(fd, large, sizeof large));
    SAY(pread(fd, large, sizeof large, 100));
    SAY(pread(fd, large, sizeof large, 0));
    SAY(read(fd, large, 10));
    lseek(fd, 0, SEEK_SET);
    handle(count, 0);
    every(5);
    long all = 0;
    for (int round = 0; round < 40; round++) {
        all += pwrite(fd, large, sizeof large, 0) == sizeof large;
        all += pread(fd, large, sizeof large, 0) == sizeof large;
    }
    printf("whole transfers under signals: %ld\n", all);
    every(0);
    kill(getpid(), SIGTERM);
    return 0;
}
