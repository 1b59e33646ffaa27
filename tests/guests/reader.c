/* Reads a file, says that it has, and sleeps for so many seconds; for a program without a dynamic linker. After each call
   it sleeps for so many microseconds, so that it is not over before a watcher that gets no processor for a while has seen it. */
#include "guest.h"

int main(int count, char **arguments) {
    static char data[65536];
    int fd = open(arguments[1], O_RDONLY);
    long all = 0, got;
    while ((got = read(fd, data, sizeof data)) > 0) {
        all += got;
        if (count > 3) usleep(atoi(arguments[3]));
    }
    printf("read %ld\n", all);
    fflush(stdout);
    if (count > 2) sleep(atoi(arguments[2]));
    return 0;
}
