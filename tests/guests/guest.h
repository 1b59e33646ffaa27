/* What the guests share: they print what a program can see of each call, and nothing that
   differs between two runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* No call sets this, so a call that leaves it alone is seen. */
#define UNTOUCHED 4242

/* Prints a call's result and what it did to errno. */
#define SAY(call)                                                                     \
    do {                                                                              \
        errno = UNTOUCHED;                                                            \
        long say_result = (long)(call);                                               \
        int say_errno = errno;                                                        \
        printf("%s = %ld, errno %d\n", #call, say_result, say_errno);                 \
        fflush(stdout);                                                               \
    } while (0)

/* The same for a call that returns a pointer. */
#define SAY_POINTER(call)                                                             \
    do {                                                                              \
        errno = UNTOUCHED;                                                            \
        int say_null = (call) == NULL;                                                \
        int say_errno = errno;                                                        \
        printf("%s is %s, errno %d\n", #call, say_null ? "null" : "set", say_errno);  \
        fflush(stdout);                                                               \
    } while (0)

/* Prints how a child ended. */
static inline void say_end(const char *what, pid_t child) {
    int status = 0;
    pid_t ended = waitpid(child, &status, 0);
    printf("%s: %s, exit %d, signal %d\n", what, ended == child ? "ended" : "lost",
           WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    fflush(stdout);
}

/* Fills a buffer with a pattern that shows every displaced byte. */
static inline void fill(unsigned char *buffer, size_t size, unsigned seed) {
    for (size_t at = 0; at < size; at++) buffer[at] = (unsigned char)((at * 2654435761u >> 7) + seed);
}

/* A checksum of all of a file (FNV-1a) with its size. */
static inline void say_file(const char *path) {
    int fd = open(path, O_RDONLY);
    unsigned char buffer[65536];
    uint64_t hash = 14695981039346656037u;
    long size = 0;
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        size += got;
        for (ssize_t at = 0; at < got; at++) hash = (hash ^ buffer[at]) * 1099511628211u;
    }
    printf("%s: %ld bytes, %016llx\n", path, size, (unsigned long long)hash);
    fflush(stdout);
    close(fd);
}
