/* Handlers that do I/O, leave by longjmp in the middle of a wait, or run on their own stack. */
#include "guest.h"

static char data[1 << 20];
static volatile sig_atomic_t caught;
static int inner;
static sigjmp_buf out;
static char alternate[65536];
static volatile int on_alternate = -1;

/* The next signal comes so long after this one's handler, however slow that was. */
static int delay;
static void again(void) {
    struct itimerval timer = {{0, 0}, {0, delay * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void doing_io(int signal) {
    (void)signal;
    char buffer[4096];
    if (pwrite(inner, buffer, sizeof buffer, 0) != sizeof buffer) _exit(90);
    if (pread(inner, buffer, sizeof buffer, 0) != sizeof buffer) _exit(91);
    caught++;
    again();
}

static void leaving(int signal) {
    (void)signal;
    caught++;
    again();
    siglongjmp(out, 1);
}

static void elsewhere(int signal) {
    (void)signal;
    char here;
    on_alternate = &here >= alternate && &here < alternate + sizeof alternate;
    pwrite(inner, data, 300000, 0);
    pread(inner, data, 300000, 0);
    caught++;
    again();
}

static void handle(void (*handler)(int), int flags, int milliseconds) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
    delay = milliseconds;
    again();
}

static long work(int fd, int rounds) {
    long good = 0;
    for (int at = 0; at < rounds; at++) {
        ftruncate(fd, 0);
        good += pwrite(fd, data, 200000, 0) == 200000;
        good += pread(fd, data, 200000, 0) == 200000;
    }
    return good;
}

int main(void) {
    inner = open("inner", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int fd = open("outer", O_RDWR | O_CREAT | O_TRUNC, 0644);
    handle(doing_io, 0, 7);
    printf("good %ld\n", work(fd, 30));
    while (caught < 3) usleep(1000);
    handle(leaving, SA_NODEFER, 9);
    volatile int left = 0;
    caught = 0;
    while (left < 20) {
        if (sigsetjmp(out, 1) != 0) { left++; continue; }
        for (;;) { pwrite(fd, data, 500000, 0); ftruncate(fd, 0); }
    }
    handle(SIG_IGN, 0, 0);
    printf("left %d times\n", left);
    printf("good %ld\n", work(fd, 5));
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    caught = 0;
    handle(elsewhere, SA_ONSTACK, 11);
    printf("good %ld\n", work(fd, 20));
    while (caught < 2) usleep(1000);
    handle(SIG_IGN, 0, 0);
    printf("on the alternate stack: %d\n", on_alternate);
    say_file("outer");
    return 0;
}
