/* Every way to start a process. */
#include "guest.h"

static void work(const char *path) {
    static char data[200000];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (write(fd, data, sizeof data) != sizeof data || pread(fd, data, sizeof data, 0) != sizeof data)
        _exit(99);
    close(fd);
}

static int child_main(void *argument) {
    work(argument);
    _exit(7);
}

static int child_exec(void *argument) {
    (void)argument;
    execl("/bin/sh", "sh", "-c", "exit 8", NULL);
    _exit(98);
}

static void from_thread_fork(void) {
    pid_t child = fork();
    if (child == 0) { work("tf"); _exit(5); }
    say_end("fork in a thread", child);
}
static void *thread(void *argument) { ((void (*)(void))argument)(); return NULL; }

int main(void) {
    extern char **environ;
    work("a");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { work("b"); _exit(3); }
    say_end("fork", child);
    child = fork();
    if (child == 0) {
        work("b");
        if (fork() == 0) { work("c"); _exit(0); }
        int status;
        wait(&status);
        exit(status == 0 ? 4 : 1);
    }
    say_end("fork of a fork", child);
    child = vfork();
    if (child == 0) _exit(6);
    say_end("vfork", child);
    child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "cat a > d; exit 9", NULL);
        _exit(98);
    }
    say_end("vfork and exec", child);
    child = vfork();
    if (child == 0) {
        execl("/nowhere/at/all", "x", NULL);
        _exit(errno);
    }
    say_end("vfork and a failing exec", child);
    work("a");
    static char stack[65536] __attribute__((aligned(16)));
    child = clone(child_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, "e");
    say_end("clone(CLONE_VM | CLONE_VFORK)", child);
    child = clone(child_exec, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    say_end("clone and exec", child);
    child = clone(child_main, stack + sizeof stack, SIGCHLD, "f");
    say_end("clone", child);
    char *arguments[] = {"sh", "-c", "echo $A >&5; exit 11", NULL};
    char *environment[] = {"A=spawned", "PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, 1, 5);
    int error = posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environment);
    say_end("posix_spawn", child);
    printf("error %d\n", error);
    fflush(stdout);
    error = posix_spawnp(&child, "sh", &actions, NULL, arguments, environ);
    say_end("posix_spawnp", child);
    printf("error %d\n", error);
    SAY(posix_spawn(&child, "/nowhere", NULL, NULL, arguments, environ));
    SAY(system("cat a > g; exit 12"));
    SAY(system(NULL) != 0);
    SAY(system("kill -TERM $$"));
    FILE *stream = popen("echo read", "r");
    char line[100] = "";
    fgets(line, sizeof line, stream);
    printf("popen: %s", line);
    SAY(pclose(stream));
    fflush(stdout);
    stream = popen("cat; exit 13", "w");
    fputs("written\n", stream);
    SAY(pclose(stream));
    pthread_t one;
    pthread_create(&one, NULL, thread, from_thread_fork);
    pthread_join(one, NULL);
    work("a");
    say_file("d");
    say_file("g");
    /* _Exit and a death by signal of children that did I/O. */
    child = fork();
    if (child == 0) { work("h"); raise(SIGKILL); }
    say_end("killed", child);
    child = fork();
    if (child == 0) { work("h"); abort(); }
    say_end("aborted", child);
    return 42;
}
