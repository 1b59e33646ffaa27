/* exec and its seven relatives: every number of arguments, the search, the failures. */
#include "guest.h"

extern char **environ;
static char *self;

#define CHILD(call)                          \
    do {                                     \
        fflush(stdout);                      \
        pid_t child = fork();                \
        if (child == 0) {                    \
            call;                            \
            printf("failed: %d\n", errno);   \
            fflush(stdout);                  \
            _exit(99);                       \
        }                                    \
        say_end(#call, child);               \
    } while (0)

static void show(int count, char **arguments) {
    printf("got %d:", count);
    for (int at = 0; at < count; at++) printf(" [%s]", arguments[at]);
    printf("\n with");
    for (char **entry = environ; *entry; entry++) printf(" [%s]", *entry);
    printf("\n");
}

int main(int count, char **arguments) {
    if (count > 0 && !strncmp(arguments[0], "show", 4)) { show(count, arguments); return count; }
    static char path[PATH_MAX];
    readlink("/proc/self/exe", path, sizeof path - 1);
    self = path;
    clearenv();
    putenv("ONE=1");
    putenv("TWO=2");
    char *given[] = {"GIVEN=yes", "LD_PRELOAD_PATH=x", NULL}, *none[] = {NULL};
    CHILD(execl(self, "show", NULL));
    CHILD(execl(self, "show", "2", NULL));
    CHILD(execl(self, "show", "2", "3", NULL));
    CHILD(execl(self, "show", "2", "3", "4", NULL));
    CHILD(execl(self, "show", "2", "3", "4", "5", NULL));
    CHILD(execl(self, "show", "2", "3", "4", "5", "6", NULL));
    CHILD(execl(self, "show", "2", "3", "4", "5", "6", "7", "8", "9", "10", NULL));
    CHILD(execl(self, "show", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14",
                "15", "16", "17", "18", "19", "20", NULL));
    CHILD(execle(self, "show", NULL, given));
    CHILD(execle(self, "show", "2", NULL, given));
    CHILD(execle(self, "show", "2", "3", NULL, given));
    CHILD(execle(self, "show", "2", "3", "4", NULL, given));
    CHILD(execle(self, "show", "2", "3", "4", "5", NULL, given));
    CHILD(execle(self, "show", "2", "3", "4", "5", "6", NULL, none));
    CHILD(execle(self, "show", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14",
                 "15", "16", "17", "18", "19", "20", NULL, given));
    char *list[] = {"show", "a", "b", NULL};
    CHILD(execv(self, list));
    CHILD(execve(self, list, given));
    CHILD(execve(self, list, NULL));
    CHILD(execvpe(self, list, given));
    CHILD(fexecve(open(self, O_RDONLY), list, given));
    CHILD(syscall(SYS_execve, self, list, given));
    CHILD(syscall(SYS_execveat, AT_FDCWD, self, list, given, 0));
    CHILD(execveat(open(self, O_RDONLY), "", list, given, AT_EMPTY_PATH));

    /* The search. */
    char *slash = strrchr(path, '/');
    char *name = strdup(slash + 1);
    *slash = 0;
    char search[2 * PATH_MAX];
    snprintf(search, sizeof search, "/nowhere:%s:/bin", path);
    *slash = '/';
    setenv("PATH", search, 1);
    printf("PATH is set\n");
    char *shell[] = {"sh", "-c", "echo found", NULL};
    CHILD(execvp("sh", shell));
    CHILD(execlp("sh", "sh", "-c", "echo $ONE", NULL));
    CHILD(execvp("no-such-program", shell));
    unsetenv("PATH");
    CHILD(execlp("sh", "sh", "-c", "echo $TWO", NULL));
    int fd = open("script", O_CREAT | O_WRONLY | O_TRUNC, 0755);
    write(fd, "echo a script without a first line\n", 35);
    close(fd);
    CHILD(execlp("./script", "script", NULL));
    CHILD(execl("./script", "script", NULL));
    (void)name;

    /* A failure leaves everything as it was; the process goes on. */
    fd = open("plain", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    close(fd);
    SAY(execl("/nowhere", "x", NULL));
    SAY(execl("./plain", "x", NULL));
    SAY(execv(".", list));
    SAY(execle("/nowhere", "x", NULL, given));
    SAY(execlp("nowhere-in-the-path", "x", NULL));
    SAY(execve("", list, given));
    show(count - count, arguments);
    static char data[500000];
    fd = open("after", O_CREAT | O_RDWR | O_TRUNC, 0644);
    SAY(write(fd, data, sizeof data));
    SAY(pread(fd, data, sizeof data, 0));
    /* The environment that a child sees is the one that setenv made. */
    setenv("THREE", "3", 1);
    SAY(system("env | sort"));
    environ = NULL;
    CHILD(execl(self, "show", NULL));
    SAY(system("true"));
    return 0;
}
