/* Concurrent writers: O_APPEND, a shared offset, a pipe up to PIPE_BUF. */
#include "guest.h"

#define WRITERS 4

static int broken(const unsigned char *data, size_t size, size_t block) {
    int bad = 0;
    for (size_t at = 0; at + block <= size; at += block)
        for (size_t byte = 1; byte < block; byte++)
            if (data[at + byte] != data[at]) { bad++; break; }
    return bad;
}

/* Of a file whose blocks need not be whole: what each writer wrote. */
static void count(const unsigned char *data, size_t size) {
    size_t of_each[256] = {0};
    for (size_t byte = 0; byte < size; byte++) of_each[data[byte]]++;
    for (int writer = 0; writer < WRITERS; writer++)
        printf("%c: %zu bytes\n", 'a' + writer, of_each['a' + writer]);
}

static void check(const char *path, size_t block) {
    int fd = open(path, O_RDONLY);
    struct stat status;
    fstat(fd, &status);
    unsigned char *data = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    printf("%s: %ld bytes\n", path, (long)status.st_size);
    if (strcmp(path, "shared-large") == 0)
        count(data, status.st_size);
    else
        printf("%d broken blocks\n", broken(data, status.st_size, block));
    close(fd);
}

static void write_blocks(const char *path, int flags, int shared, size_t block, int blocks) {
    int common = shared ? open(path, flags, 0644) : -1;
    fflush(stdout);
    for (int writer = 0; writer < WRITERS; writer++) {
        if (fork() != 0) continue;
        unsigned char *data = malloc(block);
        memset(data, 'a' + writer, block);
        int fd = shared ? common : open(path, flags, 0644);
        for (int at = 0; at < blocks; at++)
            if (write(fd, data, block) != (ssize_t)block) _exit(1);
        _exit(0);
    }
    int status, bad = 0;
    while (wait(&status) > 0) bad += status != 0;
    printf("failed writers: %d\n", bad);
    check(path, block);
}

static void through_pipe(void) {
    int ends[2];
    pipe(ends);
    fflush(stdout);
    for (int writer = 0; writer < WRITERS; writer++) {
        if (fork() != 0) continue;
        unsigned char data[PIPE_BUF];
        memset(data, 'a' + writer, sizeof data);
        for (int at = 0; at < 200; at++) write(ends[1], data, sizeof data);
        _exit(0);
    }
    close(ends[1]);
    size_t size = WRITERS * 200 * PIPE_BUF, done = 0;
    unsigned char *all = malloc(size);
    ssize_t got;
    while ((got = read(ends[0], all + done, size - done)) > 0) done += got;
    printf("pipe: %zu bytes, %d broken blocks\n", done, broken(all, done, PIPE_BUF));
    while (wait(NULL) > 0) {}
}

int main(void) {
    write_blocks("small", O_CREAT | O_WRONLY | O_APPEND, 0, 1000, 200);
    write_blocks("large", O_CREAT | O_WRONLY | O_APPEND, 0, 500000, 4);
    write_blocks("shared", O_CREAT | O_TRUNC | O_WRONLY, 1, 1000, 200);
    write_blocks("shared-large", O_CREAT | O_TRUNC | O_WRONLY, 1, 500000, 4);
    through_pipe();
    return 0;
}
