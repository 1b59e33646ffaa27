/* Starts a program by pidfd_spawn(3) and pidfd_spawnp(3), which says whether our library is in it: one for each child, and a child
   of that. As a library it stands in for a libc that has these functions; it takes libc's own posix_spawn, not the next one in the
   order of search. */
#include "guest.h"
#include <dlfcn.h>

typedef int spawning(int *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                     char *const[]);

#ifdef LIBRARY
static int by_descriptor(const char *name, int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    spawning *spawn = (spawning *)dlsym(RTLD_NEXT, name);
    pid_t child;
    int error = spawn(&child, path, actions, attributes, arguments, environment);
    if (error == 0) *pidfd = syscall(SYS_pidfd_open, child, 0);
    return error;
}

int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return by_descriptor("posix_spawn", pidfd, path, actions, attributes, arguments, environment);
}

int pidfd_spawnp(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return by_descriptor("posix_spawnp", pidfd, path, actions, attributes, arguments, environment);
}
#else
static void start(const char *function, const char *program) {
    char *arguments[] = {"sh", "-c", "grep -c libdiscnice /proc/$$/maps; grep -c libdiscnice /proc/self/maps", NULL};
    char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    spawning *spawn = (spawning *)dlsym(RTLD_DEFAULT, function);
    int pidfd = -1, error = spawn ? spawn(&pidfd, program, NULL, NULL, arguments, environment) : ENOSYS;
    if (error == 0) {
        siginfo_t ended;
        waitid(P_PIDFD, pidfd, &ended, WEXITED);
    }
    printf("error %d, descriptor %d\n", error, error ? pidfd : pidfd > 2);
    fflush(stdout);
}

int main(void) {
    start("pidfd_spawn", "/bin/sh");
    start("pidfd_spawnp", "sh");
    return 0;
}
#endif
