/* owed WAY FILE: writes a megabyte to a file whose disk is full, and prints which calls say so. */
#include "guest.h"

#define PART (64 << 10)
#define PARTS 16
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

static char text[PART];

static int filled(const char *path) {
    int fd = open(path, O_WRONLY);
    for (int part = 0; part < PARTS; part++)
        if (write(fd, text, PART) != PART) exit(2);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *way = argv[1];
    if (!strcmp(way, "fclose")) {
        FILE *stream = fopen(argv[2], "r+");
        for (int part = 0; part < PARTS; part++) fwrite(text, 1, PART, stream);
        SAY(fclose(stream));
        return 0;
    }
    int fd = filled(argv[2]);
    if (!strcmp(way, "dup")) {
        int other = dup(fd);
        if (fcntl(fd, F_DUPFD_QUERY, other) != 1) return 3;
        SAY(close(fd));
        SAY(fsync(other));
        return 0;
    }
    if (!strcmp(way, "pclose")) pclose(popen("true", "r"));
    if (!strcmp(way, "cloexec")) close_range(fd, fd, CLOSE_RANGE_CLOEXEC);
    if (!strcmp(way, "vfork")) {
        pid_t child = vfork();
        if (!child) {
            close(fd);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(way, "close")) SAY(fsync(fd));
    SAY(close(fd));
    return 0;
}
