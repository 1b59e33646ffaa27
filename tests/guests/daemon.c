/* A daemon as daemon(7) makes one: its parent ends at once, its session is its own. Reads a file, in a new program if
   "exec" or, with an empty environment, "clean" says so, and leaves in another what it read, how many milliseconds that took, and how much came from a disk. After
   each MiB it sleeps, so that it is not over before a watcher that gets no processor for a while has found it. */
#include "guest.h"
#include <time.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void work(const char *data, const char *report) {
    static char buffer[65536];
    int fd = open(data, O_RDONLY);
    long all = 0, got, begun = now();
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        all += got;
        if (all % (1 << 20) == 0) usleep(2000);
    }
    FILE *file = fopen(report, "w");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(file, "%ld %ld %ld\n", all, now() - begun, usage.ru_inblock * 512);
    fclose(file);
}

int main(int count, char **arguments) {
    if (count > 3 && !strcmp(arguments[3], "work")) {
        work(arguments[1], arguments[2]);
        return 0;
    }
    if (fork() > 0) return 0;
    setsid();
    if (fork() > 0) _exit(0);
    setsid();
    char *nothing[] = {NULL};
    if (count > 3 && !strcmp(arguments[3], "clean"))
        execle(arguments[0], arguments[0], arguments[1], arguments[2], "work", NULL, nothing);
    else if (count > 3)
        execl(arguments[0], arguments[0], arguments[1], arguments[2], "work", NULL);
    else
        work(arguments[1], arguments[2]);
    return 1;
}
