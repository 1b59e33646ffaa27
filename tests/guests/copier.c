/* Copies a file to a scratch file beside it by all the ways there are, and prints a sum over what
   arrived; fails if a call does. */
#include "guest.h"

static void fail(const char *what) {
    printf("%s: errno %d\n", what, errno);
    exit(1);
}

int main(int count, char **arguments) {
    (void)count;
    static unsigned char data[16384];
    int from = open(arguments[1], O_RDONLY), to = fileno(tmpfile());
    if (from < 0 || to < 0) fail("open");
    long got;
    while ((got = read(from, data, sizeof data / 2)) > 0) {
        if (write(to, data, got) != got) fail("write");
        off_t at = lseek(from, 0, SEEK_CUR);
        if ((got = pread(from, data, sizeof data / 4, at)) < 0) fail("pread");
        if (pwrite(to, data, got, lseek(to, 0, SEEK_END)) != got) fail("pwrite");
        lseek(from, at + got, SEEK_SET);
        lseek(to, 0, SEEK_END);
        struct iovec two[2] = {{data, 1000}, {data + 1000, 3096}};
        if ((got = readv(from, two, 2)) < 0) fail("readv");
        if (got == 4096 ? writev(to, two, 2) != got : write(to, data, got) != got) fail("writev");
        if (sendfile(to, from, NULL, 8192) < 0) fail("sendfile");
        lseek(to, 0, SEEK_END);
    }
    if (got < 0) fail("read");
    unsigned long sum = 0;
    long all = 0;
    lseek(to, 0, SEEK_SET);
    while ((got = read(to, data, sizeof data)) > 0) {
        all += got;
        for (long at = 0; at < got; at++) sum = sum * 31 + data[at];
    }
    if (got < 0) fail("read back");
    printf("%ld bytes, sum %lx\n", all, sum);
    return 0;
}
