/* Reads a file while a timer goes off every two milliseconds; prints a sum over the bytes. */
#include "guest.h"

static volatile sig_atomic_t ticks;

static void tick(int signal) {
    (void)signal;
    ticks++;
}

int main(int count, char **arguments) {
    (void)count;
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, NULL);
    int fd = open(arguments[1], O_RDONLY);
    static unsigned char data[65536];
    unsigned long sum = 0;
    long all = 0, got;
    while ((got = read(fd, data, sizeof data)) > 0) {
        all += got;
        for (long at = 0; at < got; at++) sum = sum * 31 + data[at];
    }
    printf("%ld bytes, sum %lx, last result %ld, %s\n", all, sum, got, ticks ? "timer" : "no timer");
    return 0;
}
