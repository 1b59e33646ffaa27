/* open's third argument arrives, and what is not passed is not invented. */
#include "guest.h"

static void mode(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) { printf("%s: errno %d\n", path, errno); return; }
    printf("%s: %o\n", path, status.st_mode);
}

int main(void) {
    umask(0);
    close(open("a", O_CREAT | O_WRONLY, 0751));
    mode("a");
    close(openat(AT_FDCWD, "b", O_CREAT | O_WRONLY, 0642));
    mode("b");
    close(creat("c", 0444));
    mode("c");
    close(syscall(SYS_openat, AT_FDCWD, "d", O_CREAT | O_WRONLY, 0517));
    mode("d");
    umask(027);
    close(open("e", O_CREAT | O_WRONLY, 0777));
    mode("e");
    mkdir("f", 01777);
    mode("f");
    fclose(fopen("g", "w"));
    mode("g");
    char name[] = "hXXXXXX";
    close(mkstemp(name));
    struct stat status;
    stat(name, &status);
    printf("mkstemp: %o\n", status.st_mode);
    int fd = open(".", O_TMPFILE | O_RDWR, 0604);
    fstat(fd, &status);
    printf("O_TMPFILE: %o\n", status.st_mode);
    SAY(open("a", O_CREAT | O_EXCL | O_WRONLY, 0600));
    SAY(open("none", O_RDONLY));
    SAY(open(".", O_WRONLY));
    SAY(fcntl(fd, F_GETFL) & O_ACCMODE);
    SAY(fcntl(fd, F_SETFL, O_APPEND));
    SAY(fcntl(fd, F_GETFL) & O_APPEND);
    struct flock lock = {.l_type = F_WRLCK};
    SAY(fcntl(fd, F_SETLK, &lock));
    SAY(fcntl(fd, F_SETLK, (void *)8));
    SAY(fcntl(99, F_GETFD));
    return 0;
}
