/* Writes 8 MiB to the file that is named, and prints how many milliseconds that took. Built against several C libraries. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    static char block[65536];
    struct timespec begin, end;
    int file = count > 1 ? open(words[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 128; i++)
        if (write(file, block, sizeof block) != sizeof block)
            return 1;
    if (fsync(file))
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
    return 0;
}
