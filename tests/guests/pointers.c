/* Bad pointers give EFAULT, never a crash of ours. Calls that libc itself makes with the pointer
   in its hand (streams, exec's search through PATH) are left out where bare libc crashes. */
#include "guest.h"
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define BAD ((void *)8)

int main(void) {
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    static char data[300000];
    write(fd, data, sizeof data);
    int to = open("t", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int ends[2];
    pipe(ends);
    lseek(fd, 0, SEEK_SET);
    struct iovec v[2] = {{BAD, 100}, {BAD, 100}};
    struct iovec half[2] = {{data, 100}, {BAD, 100}};

    SAY(read(fd, BAD, 4096));
    SAY(read(fd, BAD, 300000));
    SAY(pread(fd, BAD, 4096, 0));
    SAY(readv(fd, v, 2));
    SAY(readv(fd, half, 2));
    SAY(readv(fd, BAD, 2));
    SAY(preadv(fd, v, 2, 0));
    SAY(preadv2(fd, v, 2, 0, 0));
    SAY(preadv2(fd, BAD, 2, 0, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(write(to, BAD, 4096));
    SAY(write(to, BAD, 3000000));
    SAY(pwrite(to, BAD, 4096, 0));
    SAY(writev(to, v, 2));
    SAY(writev(to, half, 2));
    SAY(writev(to, BAD, 2));
    SAY(pwritev(to, v, 2, 0));
    SAY(pwritev2(to, v, 2, 0, 0));
    SAY(lseek(to, 0, SEEK_CUR));
    SAY(write(ends[1], BAD, 10));
    SAY(sendfile(to, fd, BAD, 4096));
    SAY(sendfile(to, fd, BAD, 4000000));
    SAY(copy_file_range(fd, BAD, to, NULL, 4096, 0));
    SAY(copy_file_range(fd, NULL, to, BAD, 4096, 0));
    SAY(splice(fd, BAD, ends[1], NULL, 4096, 0));
    SAY(getdents64(open(".", O_RDONLY), BAD, 4096));
    SAY(ioctl(to, FIDEDUPERANGE, BAD));
    SAY(ioctl(to, FICLONERANGE, BAD));
    SAY(ioctl(to, FICLONE, -1));
    SAY(ioctl(ends[0], FIONREAD, BAD));
    SAY(syscall(SYS_ioctl, ends[0], FIONREAD, BAD));
    SAY(open(BAD, O_RDONLY));
    SAY(openat(AT_FDCWD, BAD, O_RDONLY));
    SAY(creat(BAD, 0644));
    SAY(unlink(BAD));
    SAY(unlinkat(AT_FDCWD, BAD, 0));
    SAY(rmdir(BAD));
    SAY(rename(BAD, "x"));
    SAY(rename("x", BAD));
    SAY(renameat(AT_FDCWD, BAD, AT_FDCWD, "x"));
    SAY(renameat2(AT_FDCWD, BAD, AT_FDCWD, "x", 0));
    SAY(mkdir(BAD, 0755));
    SAY(truncate(BAD, 0));
    SAY(getxattr(BAD, "user.a", data, 10));
    SAY(lgetxattr("f", BAD, data, 10));
    SAY(listxattr(BAD, data, 10));
    SAY(setxattr("f", "user.a", BAD, 10, 0));
    SAY(lremovexattr(BAD, "user.a"));
    SAY(statfs("f", BAD));
    SAY(statvfs(BAD, (struct statvfs *)data));
    SAY(msync(BAD, 4096, 0));
    SAY(madvise((void *)4096, 4096, MADV_WILLNEED));
    SAY(syscall(SYS_read, fd, BAD, 10));
    SAY(syscall(SYS_writev, to, BAD, 2));
    SAY(syscall(SYS_openat, AT_FDCWD, BAD, O_RDONLY));
    SAY(syscall(SYS_openat2, AT_FDCWD, "f", BAD, 24));
    SAY(syscall(SYS_openat2, AT_FDCWD, BAD, &(uint64_t[3]){O_TRUNC | O_WRONLY}, 24));
    SAY(syscall(SYS_unlinkat, AT_FDCWD, BAD, 0));
    SAY(syscall(SYS_mkdirat, AT_FDCWD, BAD, 0755));
    SAY(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, BAD, 0));
    SAY(syscall(SYS_truncate, BAD, 0L));
    SAY(execve(BAD, BAD, BAD));
    char *arguments[] = {"true", NULL};
    char *broken[] = {"A=1", BAD, NULL};
    SAY(execve("/bin/true", BAD, NULL));
    SAY(execve("/bin/true", arguments, BAD));
    SAY(execve("/bin/true", arguments, broken));
    SAY(execv("/bin/true", BAD));
    SAY(execv(BAD, arguments));
    SAY(syscall(SYS_execve, "/bin/true", arguments, BAD));
    SAY(syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, broken, 0));
    SAY(fexecve(open("/bin/true", O_RDONLY), arguments, BAD));
    pid_t child;
    SAY(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, BAD));
    SAY(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, broken));
    /* A block that ends where memory ends. */
    char *edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(edge + 4096, 4096);
    char *unended = edge + 4096 - 3;
    memcpy(unended, "A=b", 3);
    char *runs_out[] = {unended, NULL};
    SAY(execve("/bin/true", arguments, runs_out));
    SAY(mkdir(unended, 0755));
    /* Too much of everything. */
    static char *many[40000];
    char *long_one = malloc(200000);
    memset(long_one, 'x', 199999);
    long_one[199999] = 0;
    for (int at = 0; at < 39999; at++) many[at] = "A=11111111111111111111111111111111111111111111111111"
        "1111111111111111111111111111111111111111111111111111111111111111111111111111111111111";
    char *one_long[] = {long_one, NULL};
    struct rlimit stack = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    SAY(execve("/bin/true", arguments, many));
    SAY(execve("/bin/true", arguments, one_long));
    SAY(execve("/bin/true", many, NULL));
    return 0;
}
