/* A program that confines itself: chroot, namespaces. For the superuser. */
#include "guest.h"

static char data[300000];

static void work(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    printf("%s: %ld %ld\n", path, (long)write(fd, data, sizeof data), (long)pread(fd, data, sizeof data, 0));
    close(fd);
}

int main(void) {
    work("before");
    SAY(unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID));
    work("unshared");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { work("child"); printf("pid %d\n", (int)getpid()); exit(5); }
    int status;
    waitpid(child, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
    fflush(stdout);
    child = fork();
    if (child == 0) { execl("/bin/sh", "sh", "-c", "echo hello; cat before | wc -c", NULL); _exit(9); }
    waitpid(child, &status, 0);
    printf("exec: %d\n", WEXITSTATUS(status));
    SAY(mkdir("jail", 0755));
    SAY(chroot("jail"));
    SAY(chdir("/"));
    work("inside");
    SAY(execl("/bin/true", "true", NULL));
    SAY(setgid(65534));
    SAY(setuid(65534));
    SAY(open("none", O_CREAT | O_WRONLY, 0644));
    int fd = open("inside", O_RDONLY);
    SAY(read(fd, data, sizeof data));
    return 0;
}
