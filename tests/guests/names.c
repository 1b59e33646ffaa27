/* In each turn it makes a file of so many KiB, and then one call, by name or by number, that changes or empties it, or
   makes or changes a name. */
#include "guest.h"
#include <linux/fs.h>
#include <linux/openat2.h>

#define AT AT_FDCWD
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static char data[1 << 10];
static int turn;

static const char *name(const char *letter) {
    static char names[2][32];
    static unsigned next;
    char *one = names[next++ % 2];
    snprintf(one, sizeof names[0], "%s%d", letter, turn);
    return one;
}

static const char *make(const char *path, int size) {
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    while (size-- > 0) write(fd, data, sizeof data);
    close(fd);
    return path;
}

static long fresh(long fd) { return fd < 0 ? fd : close(fd); }

static long open_how(const char *path, unsigned long long flags) {
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0600 : 0};
    return fresh(syscall(SYS_openat2, AT, path, &how, sizeof how));
}

static long mkdirat_(const char *f) { return syscall(SYS_mkdirat, AT, name("d"), 0700); }
static long mknodat_(const char *f) { return syscall(SYS_mknodat, AT, name("d"), S_IFREG | 0600, 0); }
static long symlinkat_(const char *f) { return syscall(SYS_symlinkat, "x", AT, name("d")); }
static long linkat_(const char *f) { return syscall(SYS_linkat, AT, f, AT, name("d"), 0); }
static long fchmodat_(const char *f) { return syscall(SYS_fchmodat, AT, f, 0640); }
static long fchmodat2_(const char *f) { long r = syscall(SYS_fchmodat2, AT, f, 0640, 0); return r && errno == ENOSYS ? 0 : r; }
static long fchownat_(const char *f) { return syscall(SYS_fchownat, AT, f, -1, -1, 0); }
static long utimensat_(const char *f) { return syscall(SYS_utimensat, AT, f, NULL, 0); }
static long setxattr_(const char *f) { return syscall(SYS_setxattr, f, "user.a", "1", 1, 0); }
static long lsetxattr_(const char *f) { return syscall(SYS_lsetxattr, f, "user.a", "1", 1, 0); }
static long exclusive(const char *f) { return fresh(syscall(SYS_openat, AT, name("d"), O_CREAT | O_EXCL | O_WRONLY, 0600)); }
static long exclusive2(const char *f) { return open_how(name("d"), O_CREAT | O_EXCL | O_WRONLY); }
static long exchange(const char *f) { return syscall(SYS_renameat2, AT, make("other", 0), AT, f, RENAME_EXCHANGE); }
/* These take what is in the file away. */
static long unlinkat_(const char *f) { return syscall(SYS_unlinkat, AT, f, 0); }
static long renameat_(const char *f) { return syscall(SYS_renameat2, AT, make("other", 0), AT, f, 0); }
static long truncate_(const char *f) { return syscall(SYS_truncate, f, 0L); }
static long empty(const char *f) { return fresh(syscall(SYS_openat, AT, f, O_WRONLY | O_TRUNC)); }
static long empty2(const char *f) { return open_how(f, O_WRONLY | O_TRUNC); }
static long cut(const char *f) { int fd = open(f, O_WRONLY); long r = syscall(SYS_ftruncate, fd, 0L); close(fd); return r; }
/* By name. */
static long unlink_named(const char *f) { return unlink(f); }
static long truncate_named(const char *f) { return truncate(f, 0); }
#ifdef SYS_open
/* Calls that only older machines have numbers for. */
static long mkdir_(const char *f) { return syscall(SYS_mkdir, name("d"), 0700); }
static long mknod_(const char *f) { return syscall(SYS_mknod, name("d"), S_IFREG | 0600, 0); }
static long symlink_(const char *f) { return syscall(SYS_symlink, "x", name("d")); }
static long link_(const char *f) { return syscall(SYS_link, f, name("d")); }
static long chmod_(const char *f) { return syscall(SYS_chmod, f, 0640); }
static long lchown_(const char *f) { return syscall(SYS_lchown, f, -1, -1); }
static long unlink_(const char *f) { return syscall(SYS_unlink, f); }
static long rename_(const char *f) { return syscall(SYS_rename, make("other", 0), f); }
static long creat_(const char *f) { return fresh(syscall(SYS_creat, f, 0600)); }
static long open_(const char *f) { return fresh(syscall(SYS_open, f, O_WRONLY | O_TRUNC)); }
#endif

static const struct { const char *way; long (*with)(const char *); } ways[] = {
    {"mkdirat", mkdirat_}, {"mknodat", mknodat_}, {"symlinkat", symlinkat_}, {"linkat", linkat_},
    {"fchmodat", fchmodat_}, {"fchmodat2", fchmodat2_}, {"fchownat", fchownat_}, {"utimensat", utimensat_},
    {"setxattr", setxattr_}, {"lsetxattr", lsetxattr_}, {"openat-excl", exclusive}, {"openat2-excl", exclusive2},
    {"exchange", exchange}, {"unlinkat", unlinkat_}, {"renameat2", renameat_}, {"truncate", truncate_},
    {"openat-trunc", empty}, {"openat2-trunc", empty2}, {"ftruncate", cut},
    {"unlink-by-name", unlink_named}, {"truncate-by-name", truncate_named},
#ifdef SYS_open
    {"mkdir", mkdir_}, {"mknod", mknod_}, {"symlink", symlink_}, {"link", link_}, {"chmod", chmod_},
    {"lchown", lchown_}, {"unlink", unlink_}, {"rename", rename_}, {"creat", creat_}, {"open-trunc", open_},
#endif
};

int main(int count, char **arguments) {
    if (count < 4) return 2;
    for (size_t at = 0; at < sizeof ways / sizeof *ways; at++) {
        if (strcmp(arguments[1], ways[at].way) != 0) continue;
        for (turn = 0; turn < atoi(arguments[2]); turn++)
            if (ways[at].with(make(name("f"), atoi(arguments[3]))) < 0) {
                perror(ways[at].way);
                return 1;
            }
        return 0;
    }
    return 2;
}
