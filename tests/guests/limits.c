/* RLIMIT_FSIZE: a short count at the limit, then EFBIG and SIGXFSZ. */
#include "guest.h"

static volatile sig_atomic_t caught;
static void count(int signal) { (void)signal; caught++; }

int main(void) {
    static char data[8 << 20];
    struct rlimit limit = {4 << 20, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, count);
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    SAY(write(fd, data, sizeof data));
    printf("caught %d\n", (int)caught);
    SAY(write(fd, data, 10));
    printf("caught %d\n", (int)caught);
    SAY(pwrite(fd, data, sizeof data, 1 << 20));
    printf("caught %d\n", (int)caught);
    SAY(pwrite(fd, data, 1, 4 << 20));
    printf("caught %d\n", (int)caught);
    int from = open("/dev/zero", O_RDONLY);
    (void)from;
    SAY(ftruncate(fd, 5 << 20));
    printf("caught %d\n", (int)caught);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    int big = open("big", O_RDWR | O_CREAT | O_TRUNC, 0644);
    SAY(write(big, data, sizeof data));
    limit.rlim_cur = (4 << 20) + 1000;
    setrlimit(RLIMIT_FSIZE, &limit);
    off_t at = 0;
    lseek(fd, 0, SEEK_SET);
    SAY(sendfile(fd, big, &at, sizeof data));
    printf("at %ld, caught %d\n", (long)at, (int)caught);
    lseek(fd, 0, SEEK_SET);
    lseek(big, 0, SEEK_SET);
    SAY(copy_file_range(big, NULL, fd, NULL, sizeof data, 0));
    printf("caught %d\n", (int)caught);
    limit.rlim_cur = 4 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    FILE *stream = fopen("g", "w");
    SAY(fwrite(data, 1, sizeof data, stream));
    SAY(fclose(stream));
    printf("caught %d\n", (int)caught);
    say_file("f");
    say_file("g");
    signal(SIGXFSZ, SIG_DFL);
    lseek(fd, 4 << 20, SEEK_SET);
    SAY(write(fd, data, 10));
    return 0;
}
