/* Files that grow, shrink, vanish or are replaced while they are read and written, and offsets near the
   last one that there can be. */
#include "guest.h"

#define SIZE (1 << 20)
#define PIECE (96 << 10)

static unsigned char data[SIZE], seen[SIZE];

/* A read, and a checksum of what it got. */
static void look(const char *what, long got) {
    int error = errno;
    uint64_t hash = 14695981039346656037u;
    for (long at = 0; at < got; at++) hash = (hash ^ seen[at]) * 1099511628211u;
    printf("%s: %ld, errno %d, %016llx\n", what, got, got < 0 ? error : 0, (unsigned long long)hash);
    fflush(stdout);
}

static void make(const char *path, unsigned seed, size_t size) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(data, SIZE, seed);
    write(fd, data, size);
    /* Out of the cache, so that reads have something to cost. */
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void grows(void) {
    make("grows", 1, PIECE);
    int fd = open("grows", O_RDWR), to = open("grows", O_WRONLY | O_APPEND);
    for (int turn = 0; turn < 6; turn++) {
        look("grows", read(fd, seen, PIECE));
        look("at its end", read(fd, seen, PIECE));
        SAY(write(to, data, PIECE + turn * 1000));
    }
    SAY(ftruncate(fd, 8 * PIECE));
    while (read(fd, seen, PIECE) > 0) {}
    close(fd);
    close(to);
    say_file("grows");
}

static void shrinks(void) {
    make("shrinks", 2, SIZE);
    int fd = open("shrinks", O_RDWR);
    look("shrinks", read(fd, seen, PIECE));
    SAY(ftruncate(fd, PIECE + 5000));
    look("the rest", read(fd, seen, PIECE));
    look("nothing", read(fd, seen, PIECE));
    look("behind", pread(fd, seen, PIECE, 4 * PIECE));
    SAY(pwrite(fd, data, 10000, 0));
    SAY(ftruncate(fd, 3000));
    SAY(pwrite(fd, data, 10, 2 * PIECE + 1));
    SAY(ftruncate(fd, 0));
    SAY(write(fd, data, 100));
    look("a hole", pread(fd, seen, PIECE, 0));
    close(fd);
    say_file("shrinks");
}

static void vanishes(void) {
    make("vanishes", 3, SIZE);
    int fd = open("vanishes", O_RDWR);
    look("vanishes", read(fd, seen, PIECE));
    SAY(unlink("vanishes"));
    look("is still there", read(fd, seen, PIECE));
    SAY(pwrite(fd, data, PIECE, PIECE / 2));
    look("what was written", pread(fd, seen, PIECE, PIECE / 2));
    /* Somebody else may get its inode. */
    close(fd);
    make("heir", 4, PIECE);
    fd = open("heir", O_RDONLY);
    look("the heir", read(fd, seen, PIECE));
    close(fd);
}

static void is_replaced(void) {
    make("old", 5, SIZE);
    make("new", 6, SIZE / 2);
    int fd = open("old", O_RDONLY), other = open("new", O_RDONLY);
    look("old", read(fd, seen, PIECE));
    SAY(rename("new", "old"));
    look("old by its descriptor", read(fd, seen, PIECE));
    /* Past everybody who might watch, the number becomes another file. */
    SAY(syscall(SYS_dup2, other, fd) == fd);
    for (int turn = 0; turn < 7; turn++) look("new by the old number", read(fd, seen, PIECE));
    SAY(syscall(SYS_close, fd));
    SAY(read(fd, seen, PIECE));
    SAY(pwrite(fd, data, PIECE, 0));
    SAY(syscall(SYS_dup2, 1, fd) == fd);
    SAY(write(fd, "", 0));
    close(fd);
    close(other);
    say_file("old");
}

static void far_out(void) {
    int fd = open("far", O_RDWR | O_CREAT | O_TRUNC, 0644);
    SAY(write(fd, data, PIECE));
    off_t places[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX - 4095, INT64_MAX - PIECE, -1, -4096, INT64_MIN,
                      (off_t)1 << 62, ((off_t)1 << 43) - PIECE};
    for (unsigned turn = 0; turn < sizeof places / sizeof *places; turn++) {
        off_t at = places[turn];
        SAY(lseek(fd, at, SEEK_SET));
        SAY(read(fd, seen, PIECE));
        SAY(pread(fd, seen, PIECE, at));
        SAY(pwrite(fd, data, PIECE, at) > 0);
        SAY(lseek(fd, 0, SEEK_SET));
        SAY(posix_fadvise(fd, at, PIECE, POSIX_FADV_WILLNEED));
        SAY(readahead(fd, at, PIECE));
        SAY(ftruncate(fd, at));
        SAY(ftruncate(fd, 2 * PIECE));
        struct iovec parts[2] = {{data, PIECE / 2}, {data + PIECE / 2, PIECE / 2}};
        SAY(preadv(fd, parts, 2, at));
        SAY(pwritev(fd, parts, 2, at) > 0);
        SAY(sync_file_range(fd, at, PIECE, SYNC_FILE_RANGE_WRITE));
        SAY(ftruncate(fd, 2 * PIECE));
        SAY_POINTER(mmap(NULL, PIECE, PROT_READ, MAP_SHARED, fd, at & ~4095L) == MAP_FAILED ? NULL : "");
    }
    close(fd);
    say_file("far");
}

int main(void) {
    grows();
    shrinks();
    vanishes();
    is_replaced();
    far_out();
    return 0;
}
