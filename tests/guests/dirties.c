/* Writes so many MiB to a file by calls of 1 MiB, says so, and waits with the file open until its input ends. Between
   calls it sleeps, so that it is not over before a daemon that gets no processor for a while has looked at it. */
#include "guest.h"

enum { PIECE = 1 << 20 };

int main(int count, char **arguments) {
    static char data[PIECE];
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int left = atoi(arguments[2]); left > 0; left--)
        if (write(fd, data, sizeof data) != sizeof data || usleep(5000)) return 1;
    if (write(1, "done\n", 5) != 5 || read(0, data, 1) < 0) return 1;
    return close(fd);
}
