/* streams WAY: what libc's buffered streams do on a connection of its own, each of whose bytes is an 'x'. */
#include <netinet/in.h>

#include "guest.h"

#define LARGE (1 << 20)
#define REFUSALS 20

static void ignore(int signal) { (void)signal; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* A child that takes what comes; it fails unless each byte is an 'x'. */
static pid_t take(int listener) {
    pid_t child = fork();
    if (child) return child;
    int sock = accept(listener, NULL, NULL), foreign = 0;
    static char buffer[65536];
    ssize_t got;
    while ((got = read(sock, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < got; at++) foreign |= buffer[at] != 'x';
    _exit(foreign || got < 0);
}

/* A connection to such a child. */
static int connection(pid_t *child) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&name, length) || listen(listener, 1)) exit(2);
    getsockname(listener, (void *)&name, &length);
    *child = take(listener);
    close(listener);
    int sock = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sock, (void *)&name, length)) exit(3);
    return sock;
}

/* Writes from the end of a mapping until the stream has said a few times that it could not, or for two seconds. */
static void be_refused(int wait) {
    pid_t child;
    int sock = connection(&child), silent = 0, other = 0;
    if (!wait) fcntl(sock, F_SETFL, O_NONBLOCK);
    FILE *stream = fdopen(sock, "w");
    char *text = mmap(NULL, LARGE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(text + LARGE, 4096, PROT_NONE);
    memset(text, 'x', LARGE);
    struct sigaction action = {.sa_handler = ignore};
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    double begun = now();
    for (int refused = 0; refused < REFUSALS && now() - begun < 2;) {
        errno = UNTOUCHED;
        if (fwrite(text, 1, LARGE, stream) == LARGE) continue;
        refused++;
        other += errno != EINTR && errno != EAGAIN;
        silent += !ferror(stream);
        clearerr(stream);
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%d without an error, %d with another\n", silent, other);
    fcntl(sock, F_SETFL, 0);
    fclose(stream);
    say_end("the other end", child);
}

/* Moves two megabytes through a pipe that has the number of a stream's connection; prints the seconds it took. */
static void reuse(void) {
    pid_t child;
    int sock = connection(&child), ends[2];
    FILE *stream = fdopen(sock, "w");
    fputs("xxxx", stream);
    fclose(stream);
    if (pipe(ends) || ends[0] != sock) exit(4);
    static char buffer[65536];
    double begun = now();
    for (int part = 0; part < 32; part++) {
        ssize_t left = write(ends[1], buffer, sizeof buffer), got = 1;
        for (; left > 0 && got > 0; left -= got) got = read(ends[0], buffer, left);
    }
    printf("%.3f\n", now() - begun);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (!strcmp(argv[1], "waiting")) be_refused(1);
    if (!strcmp(argv[1], "non-blocking")) be_refused(0);
    if (!strcmp(argv[1], "reused")) reuse();
    return 0;
}
