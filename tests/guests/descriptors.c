/* Descriptors: none of ours, lowest number first, all of them closed, 0 to 2 replaced. */
#include "guest.h"

static void list(const char *when) {
    printf("%s:", when);
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory)) printf(" %s", entry->d_name);
    closedir(directory);
    printf("\n");
    fflush(stdout);
}

static void use(const char *path) {
    static char data[300000];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    printf("opened %d\n", fd);
    SAY(write(fd, data, sizeof data));
    SAY(pread(fd, data, sizeof data, 0));
    SAY(close(fd));
    SAY(close(fd));
    SAY(read(fd, data, 10));
    SAY(write(fd, data, 10));
}

int main(int count, char **arguments) {
    if (count > 1) { list("after exec"); return 0; }
    list("at start");
    use("a");
    int high = open("a", O_RDONLY);
    SAY(dup(high));
    close(high);
    SAY(open("a", O_RDONLY));
    list("later");

    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t hard = limit.rlim_max;
    limit.rlim_cur = 6;
    setrlimit(RLIMIT_NOFILE, &limit);
    SAY(open("a", O_RDONLY));
    SAY(open("a", O_RDONLY));
    SAY(dup(0));
    SAY(fcntl(0, F_DUPFD, 3));
    SAY_POINTER(fopen("a", "r"));
    char data[100];
    SAY(pread(5, data, 100, 0));
    limit.rlim_cur = hard;
    setrlimit(RLIMIT_NOFILE, &limit);

    /* High numbers, in and beyond the table. */
    int numbers[] = {1023, 1024, 2000, 65535, 65536, 500000};
    for (int at = 0; at < 6; at++) {
        if ((rlim_t)numbers[at] >= hard) { printf("too high\n"); continue; }
        int fd = dup2(5, numbers[at]);
        printf("high: %d, %ld\n", fd == numbers[at], (long)pread(fd, data, 100, 0));
        close(fd);
    }
    for (int fd = 3; fd < 1000; fd++) close(fd);
    list("closed");

    int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int kept = dup(1);
    fflush(stdout);
    dup2(out, 1);
    printf("into the file\n");
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    close(out);
    say_file("out");

    int null = open("/dev/null", O_RDWR);
    pid_t child = fork();
    if (child == 0) {
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        closefrom(3);
        printf("nobody sees this\n");
        int fd = open("inner", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dprintf(fd, "fd %d\n", fd);
        _exit(fd);
    }
    say_end("replaced", child);
    child = fork();
    if (child == 0) {
        for (int fd = 0; fd < 100; fd++) close(fd);
        int fd = open("inner", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        static char large[1 << 20];
        int whole = write(fd, large, sizeof large) == sizeof large;
        _exit(10 * fd + whole);
    }
    say_end("all closed", child);
    fflush(stdout);
    close(3);
    execl("/proc/self/exe", "again", "x", NULL);
    return 1;
}
