/* What use.sh needs of dd(1), for roots that have none of the kind that is to be tried: writes 240 times 128 KiB to of=FILE. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
    static char bytes[128 << 10];
    int file = -1;
    while (--count > 0)
        if (strncmp(words[count], "of=", 3) == 0)
            file = open(words[count] + 3, O_WRONLY);
    for (int written = 0; written < 240; written++)
        if (write(file, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
            return 1;
    return fsync(file) != 0;
}
