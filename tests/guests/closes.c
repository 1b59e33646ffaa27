/* close(2) of a file neither fails nor is repeated while signals come, whatever the handler's flags. */
#include "guest.h"

static void ignore(int signal) { (void)signal; }

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = ignore};
    struct itimerval timer = {{0, 50}, {0, 50}};
    int failed = 0, left = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 5000 && argc > 1; i++) {
        int fd = open(argv[1], O_WRONLY | O_CREAT, 0600);
        /* Programs repeat an interrupted write. */
        while (write(fd, "text", 4) == -1 && errno == EINTR) {}
        failed += close(fd) != 0;
        left += fcntl(fd, F_GETFD) != -1;
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%d failed, %d left open\n", failed, left);
    return 0;
}
