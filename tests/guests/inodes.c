/* Looks at all files of a folder in one way, by calls of libc's that look at inodes by name. */
#include "guest.h"
#include <fts.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

static char value[100];
static long visited;

static void for_each(const char *folder, void (*with)(const char *)) {
    DIR *directory = opendir(folder);
    struct dirent *entry;
    char path[PATH_MAX];
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        with(path);
        visited++;
    }
    closedir(directory);
}

static void get(const char *path) { getxattr(path, "user.a", value, sizeof value); }
static void lget(const char *path) { lgetxattr(path, "user.a", value, sizeof value); }
static void list(const char *path) { listxattr(path, value, sizeof value); }
static void llist(const char *path) { llistxattr(path, value, sizeof value); }
static void set(const char *path) { setxattr(path, "user.a", "1", 1, 0); }
static void lset(const char *path) { lsetxattr(path, "user.a", "1", 1, 0); }
static void drop(const char *path) { removexattr(path, "user.a"); }
static void ldrop(const char *path) { lremovexattr(path, "user.a"); }
static void number(const char *path) { syscall(SYS_getxattr, path, "user.a", value, sizeof value); }
/* Calls that only older machines have numbers for. */
#ifdef SYS_open
static void old_look(const char *path) { struct stat at; syscall(SYS_lstat, path, &at); }
static void old_open(const char *path) { close(syscall(SYS_open, path, O_RDONLY)); }
static void old_change(const char *path) { syscall(SYS_chmod, path, 0600); }
#else
static void old_look(const char *path) { struct stat at; syscall(SYS_newfstatat, AT_FDCWD, path, &at, 0); }
static void old_open(const char *path) { close(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY)); }
static void old_change(const char *path) { syscall(SYS_fchmodat, AT_FDCWD, path, 0600); }
#endif
static void number_change(const char *path) { syscall(SYS_fchmodat, AT_FDCWD, path, 0600); }
static void number_times(const char *path) { syscall(SYS_utimensat, AT_FDCWD, path, NULL, 0); }
static void space(const char *path) { struct statfs at; statfs(path, &at); }
static void vspace(const char *path) { struct statvfs at; statvfs(path, &at); }
static void scan(const char *path) { struct dirent **found; scandirat(AT_FDCWD, path, &found, NULL, NULL); }
static void resolve(const char *path) { free(realpath(path, NULL)); }

static void walk(const char *folder) {
    char *roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL, NULL);
    while (fts_read(tree)) visited++;
    fts_close(tree);
}

int main(int count, char **arguments) {
    static const struct { const char *way; void (*with)(const char *); } ways[] = {
        {"getxattr", get}, {"lgetxattr", lget}, {"listxattr", list}, {"llistxattr", llist},
        {"setxattr", set}, {"lsetxattr", lset}, {"removexattr", drop}, {"lremovexattr", ldrop},
        {"syscall", number},
        {"number-lstat", old_look}, {"number-open", old_open}, {"number-chmod", old_change},
        {"number-fchmodat", number_change}, {"number-utimensat", number_times},
        {"statfs", space}, {"statvfs", vspace}, {"scandirat", scan}, {"realpath", resolve},
    };
    if (count < 3) return 2;
    const char *way = arguments[1], *folder = arguments[2];
    errno = UNTOUCHED;
    if (strcmp(way, "fts") == 0) walk(folder);
    for (size_t at = 0; at < sizeof ways / sizeof *ways; at++)
        if (strcmp(way, ways[at].way) == 0) for_each(folder, ways[at].with);
    printf("%ld\n", visited);
    return 0;
}
