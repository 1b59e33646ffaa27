/* ahead WAY FILE [COPY]: has the kernel read a file in steps of 256 KiB, in one way that copies nothing to the program. Prints the
   milliseconds until the last step began. */
#include "guest.h"
#include <linux/fs.h>
#include <sys/ioctl.h>

enum { STEP = 256 << 10 };

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static int fd;
static const char *way;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int is(const char *name) { return strcmp(way, name) == 0; }

static long advise(off_t at, int advice, int by_number) {
    int rights = PROT_READ | (advice == MADV_POPULATE_WRITE ? PROT_WRITE : 0);
    static char *map;
    static off_t begin = -1;
    if (begin < 0) map = mmap(NULL, 1 << 30, rights, MAP_PRIVATE | MAP_NORESERVE, fd, 0), begin = 0;
    return by_number ? syscall(SYS_madvise, map + at, (size_t)STEP, advice) : madvise(map + at, STEP, advice);
}

static long step(off_t at) {
    int populate = MAP_SHARED | MAP_POPULATE;
    if (is("readahead")) return readahead(fd, at, STEP);
    if (is("number-readahead")) return syscall(SYS_readahead, fd, at, (size_t)STEP);
    if (is("fadvise")) return posix_fadvise(fd, at, STEP, POSIX_FADV_WILLNEED);
    if (is("number-fadvise")) return syscall(SYS_fadvise64, fd, at, (size_t)STEP, POSIX_FADV_WILLNEED);
    if (is("willneed")) return advise(at, MADV_WILLNEED, 0);
    if (is("number-willneed")) return advise(at, MADV_WILLNEED, 1);
    if (is("populate-read")) return advise(at, MADV_POPULATE_READ, 0);
    if (is("number-populate-read")) return advise(at, MADV_POPULATE_READ, 1);
    if (is("populate-write")) return advise(at, MADV_POPULATE_WRITE, 0);
    if (is("number-populate-write")) return advise(at, MADV_POPULATE_WRITE, 1);
    if (is("mmap")) return mmap(NULL, STEP, PROT_READ, populate, fd, at) == MAP_FAILED;
    if (is("number-mmap")) return syscall(SYS_mmap, NULL, (size_t)STEP, PROT_READ, populate, fd, at) == -1;
    if (is("dedupe") || is("number-dedupe")) {
        struct { struct file_dedupe_range range; struct file_dedupe_range_info to; } ask = {
            {.src_offset = at, .src_length = STEP, .dest_count = 1}, {.dest_fd = 4, .dest_offset = at}};
        long result = is("dedupe") ? ioctl(fd, FIDEDUPERANGE, &ask) : syscall(SYS_ioctl, fd, FIDEDUPERANGE, &ask);
        return result != 0 || ask.to.status < 0;
    }
    return -1;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    way = arguments[1];
    fd = open(arguments[2], count > 3 ? O_RDWR : O_RDONLY);
    if (count > 3 && open(arguments[3], O_RDWR) != 4) return 4;
    struct stat status;
    fstat(fd, &status);
    double begun = now(), last = begun;
    for (off_t at = 0; at < status.st_size; at += STEP) {
        last = now();
        if (step(at) != 0) return 3;
    }
    printf("%.0f\n", (last - begun) * 1e3);
    return 0;
}
