/* Copies inside the kernel move the offsets that they should, and only those. */
#include "guest.h"

#define SIZE (3 << 20)

int main(void) {
    unsigned char *data = malloc(SIZE);
    fill(data, SIZE, 1);
    int from = open("from", O_RDWR | O_CREAT | O_TRUNC, 0644);
    SAY(write(from, data, SIZE));
    SAY(lseek(from, 0, SEEK_CUR));
    SAY(lseek(from, 7, SEEK_SET));
    int to = open("to", O_RDWR | O_CREAT | O_TRUNC, 0644);

    off_t at = 100;
    SAY(sendfile(to, from, &at, 2000000));
    printf("at %ld, from %ld, to %ld\n", (long)at, (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR));
    SAY(sendfile(to, from, NULL, 10000000));
    printf("from %ld, to %ld\n", (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR));
    SAY(sendfile(to, from, NULL, 100));
    say_file("to");

    off_t in = 50, out = 1000;
    SAY(copy_file_range(from, &in, to, &out, 1500000, 0));
    printf("in %ld, out %ld, from %ld, to %ld\n", (long)in, (long)out,
           (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR));
    lseek(from, 0, SEEK_SET);
    SAY(copy_file_range(from, NULL, to, NULL, 10000000, 0));
    printf("from %ld, to %ld\n", (long)lseek(from, 0, SEEK_CUR), (long)lseek(to, 0, SEEK_CUR));
    in = SIZE;
    SAY(copy_file_range(from, &in, to, NULL, 100, 0));
    SAY(copy_file_range(from, NULL, 99, NULL, 100, 0));
    SAY(copy_file_range(from, NULL, to, NULL, 100, 99));
    say_file("to");

    int ends[2];
    pipe(ends);
    fcntl(ends[1], F_SETPIPE_SZ, 65536);
    in = 5;
    SAY(splice(from, &in, ends[1], NULL, 30000, 0));
    printf("in %ld\n", (long)in);
    out = 9;
    SAY(splice(ends[0], NULL, to, &out, 30000, 0));
    printf("out %ld\n", (long)out);
    /* A full pipe takes what it can, and then nothing. */
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    lseek(from, 0, SEEK_SET);
    SAY(sendfile(ends[1], from, NULL, 1000000));
    SAY(sendfile(ends[1], from, NULL, 1000000));
    printf("from %ld\n", (long)lseek(from, 0, SEEK_CUR));

    /* pread and pwrite leave the offset alone; negative ones are refused. */
    lseek(from, 11, SEEK_SET);
    SAY(pread(from, data, 500000, 1000));
    SAY(pwrite(from, data, 500000, 2000));
    SAY(pwrite(from, data, 500000, -1));
    SAY(pread(from, data, 500000, -1));
    SAY(pread(from, data, 500000, SIZE + 5));
    SAY(pread(from, data, 500000, SIZE - 5));
    struct iovec v[3] = {{data, 300000}, {NULL, 0}, {data + 300000, 700000}};
    SAY(preadv(from, v, 3, 17));
    SAY(pwritev(from, v, 3, 19));
    SAY(writev(from, v, 3));
    SAY(lseek(from, 0, SEEK_CUR));
    SAY(readv(from, v, 3));
    SAY(lseek(from, 0, SEEK_CUR));
    SAY(writev(from, v, 2000));
    say_file("from");
    say_file("to");
    return 0;
}
