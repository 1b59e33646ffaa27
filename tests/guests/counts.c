/* Counts that no call can reach: one call moves at most MAX_RW_COUNT bytes (write(2), NOTES), and a
   range that leaves the address space is a bad pointer however much of it is there. */
#include "guest.h"

#define MOVED_MAX 0x7ffff000L

/* One mapping of a whole call and more, all of it the same page of zeroes until it is written. */
static char *zeroes(size_t length) {
    return mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void impossible(int fd, const char *data) {
    struct stat status;
    SAY(write(fd, data, SIZE_MAX));
    SAY(write(fd, data, (size_t)SSIZE_MAX));
    SAY(write(fd, data, (size_t)1 << 48));
    SAY(pwrite(fd, data, SIZE_MAX, 0));
    SAY(pwrite(fd, data, (size_t)1 << 48, 0));
    SAY(syscall(SYS_write, fd, data, SIZE_MAX));
    SAY(read(fd, (char *)data, SIZE_MAX));
    SAY(pread(fd, (char *)data, (size_t)1 << 48, 0));
    SAY(fstat(fd, &status));
    printf("%ld bytes\n", (long)status.st_size);
}

static void copies(int from) {
    int to = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
    off_t at = 1;
    SAY(sendfile(to, from, NULL, SIZE_MAX));
    SAY(sendfile(to, from, &at, (size_t)SSIZE_MAX));
    SAY(copy_file_range(from, &at, to, NULL, SIZE_MAX, 0));
    SAY(copy_file_range(from, &at, to, NULL, (size_t)SSIZE_MAX, 0));
    printf("at %ld, %ld, %ld\n", (long)at, (long)lseek(from, 0, SEEK_CUR),
           (long)lseek(to, 0, SEEK_CUR));
    close(to);
}

/* The kernel compares the ranges of one file as they are before anything moves. */
static void within_one_file(const char *data, size_t length) {
    int fd = open("one", O_RDWR | O_CREAT | O_TRUNC, 0644), again = open("one", O_RDWR);
    for (int part = 0; part < 9; part++) SAY(write(fd, data, length));
    off_t from = 0, to = length;
    SAY(copy_file_range(fd, &from, again, &to, 8 * length, 0));
    to = 9 * length;
    SAY(copy_file_range(fd, &from, again, &to, 20 * length, 0));
    printf("from %ld to %ld\n", (long)from, (long)to);
    SAY(pwrite(fd, data, length, LONG_MAX - (off_t)length / 2));
    say_file("one");
}

int main(void) {
    static char data[1 << 20];
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    impossible(fd, data);
    SAY(write(fd, data, sizeof data));
    impossible(fd, data);
    copies(fd);
    within_one_file(data, sizeof data);
    int end = open("f", O_RDWR | O_APPEND);
    impossible(end, data);
    FILE *stream = fopen("g", "w");
    SAY(fwrite(data, 1, (size_t)SSIZE_MAX, stream));
    SAY(fclose(stream));
    say_file("g");
    char *more = zeroes(MOVED_MAX + (1 << 20));
    int null = open("/dev/null", O_WRONLY);
    SAY(write(null, more, MOVED_MAX + (1 << 20)));
    return 0;
}
