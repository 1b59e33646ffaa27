/* Writes so many MiB to a file by calls of 1 MiB, says so, and waits with the file open until its input ends. */
#include "guest.h"

enum { PIECE = 1 << 20 };

int main(int count, char **arguments) {
    static char data[PIECE];
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int left = atoi(arguments[2]); left > 0; left--)
        if (write(fd, data, sizeof data) != sizeof data) return 1;
    if (write(1, "done\n", 5) != 5 || read(0, data, 1) < 0) return 1;
    return close(fd);
}
