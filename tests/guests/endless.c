/* Reads a file from the disk again and again: by calls past the cache (direct), or by page faults (mapped). */
#include <sys/mman.h>
#include <sys/stat.h>

#include "guest.h"

enum { PIECE = 1 << 20, PAGE = 4096 };

static void direct(const char *path) {
    static char data[PIECE] __attribute__((aligned(PAGE)));
    int fd = open(path, O_RDONLY | O_DIRECT);
    for (;;)
        if (read(fd, data, sizeof data) <= 0) lseek(fd, 0, SEEK_SET);
}

static void mapped(const char *path) {
    struct stat status;
    int fd = open(path, O_RDONLY);
    fstat(fd, &status);
    for (;;) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        volatile char *all = mmap(0, status.st_size, PROT_READ, MAP_SHARED, fd, 0);
        for (long at = 0; at < status.st_size; at += PAGE) (void)all[at];
        munmap((void *)all, status.st_size);
    }
}

int main(int count, char **arguments) {
    if (count > 2 && !strcmp(arguments[2], "mapped")) mapped(arguments[1]);
    direct(arguments[1]);
    return 0;
}
