/* Reads a file and keeps it open, and opens another to be written and removes it. When a third one is there it writes a fourth
 * again and again, and reads a fifth past the cache. */
#include "guest.h"

enum { PIECE = 64 << 10, PIECES = 512 };

int main(int count, char **arguments) {
    static char data[PIECE];
    int kept = open(arguments[1], O_RDONLY), nameless = open(arguments[2], O_RDWR);
    for (int piece = 0; piece < PIECES / 8; piece++) read(kept, data, PIECE);
    if (count < 6 || kept < 0 || nameless < 0 || unlink(arguments[2])) return 1;
    puts("ready");
    fflush(stdout);
    while (access(arguments[3], F_OK)) usleep(10000);
    int written = open(arguments[4], O_RDWR | O_CREAT | O_TRUNC, 0600), read_only = open(arguments[5], O_RDONLY);
    for (int piece = 0;; piece = (piece + 1) % PIECES) {
        pwrite(written, data, PIECE, (off_t)piece * PIECE);
        posix_fadvise(read_only, 0, 0, POSIX_FADV_DONTNEED);
        pread(read_only, data, PIECE, (off_t)piece * PIECE);
    }
}
