/* nowait FILE: reads and writes all of a file by one call each, and makes calls that must not wait after each; prints what each
   returned and the milliseconds that it took. */
#include "guest.h"

#define SIZE (8 << 20)

static char buffer[SIZE];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

#define TIME(call)                                                 \
    do {                                                           \
        double begun = now();                                      \
        errno = UNTOUCHED;                                         \
        long result = call;                                        \
        int error = errno;                                         \
        printf("%ld %d %.1f\n", result, error, now() - begun);     \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int fd = open(argv[1], O_RDWR), direct = open(argv[1], O_RDONLY | O_DIRECT);
    struct iovec all = {buffer, SIZE}, page = {buffer, 4096};
    /* The length of such a call is its own: it is made as a whole, and charged afterwards. */
    if (preadv(fd, &all, 1, 0) != SIZE) return 3;
    TIME(preadv2(fd, &page, 1, 0, RWF_NOWAIT));
    page.iov_base = aligned_alloc(4096, 4096);
    TIME(preadv2(direct, &page, 1, 1 << 20, RWF_NOWAIT));
    if (pwritev(fd, &all, 1, 0) != SIZE) return 4;
    TIME(pwritev2(fd, &page, 1, 0, RWF_NOWAIT));
    return 0;
}
