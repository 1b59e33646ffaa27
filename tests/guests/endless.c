/* Reads a file from the disk again and again: by calls past the cache (direct), or by page faults (mapped). Or writes it anew again
 * and again, by calls (anew), by small ones with pauses (paced) or by page faults (mapped-anew). */
#include <sys/mman.h>
#include <sys/stat.h>

#include "guest.h"

enum { PIECE = 1 << 20, PAGE = 4096, PIECES = 600, SMALL = 1 << 16 };

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

static void anew(const char *path) {
    static char data[PIECE];
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int piece = 0; piece < PIECES; piece++)
            if (write(fd, data, sizeof data) < 0) break;
        close(fd);
    }
}

/* Some 50 MB/s, so that it does not depend on the speed of the memory how much is written until the next look. */
static void paced(const char *path) {
    static char data[SMALL];
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int piece = 0; piece < PIECES * (PIECE / SMALL); piece++) {
            if (write(fd, data, sizeof data) < 0) break;
            usleep(1000);
        }
        close(fd);
    }
}

static void mapped_anew(const char *path) {
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (ftruncate(fd, (off_t)PIECES * PIECE)) return;
        char *all = mmap(0, (size_t)PIECES * PIECE, PROT_WRITE, MAP_SHARED, fd, 0);
        for (long at = 0; at < (long)PIECES * PIECE; at += PAGE) all[at] = 1;
        munmap(all, (size_t)PIECES * PIECE);
        close(fd);
    }
}

int main(int count, char **arguments) {
    if (count > 2 && !strcmp(arguments[2], "mapped")) mapped(arguments[1]);
    if (count > 2 && !strcmp(arguments[2], "anew")) anew(arguments[1]);
    if (count > 2 && !strcmp(arguments[2], "paced")) paced(arguments[1]);
    if (count > 2 && !strcmp(arguments[2], "mapped-anew")) mapped_anew(arguments[1]);
    direct(arguments[1]);
    return 0;
}
