/* A call that succeeds leaves errno as it was. */
#include "guest.h"
#include <aio.h>
#include <fts.h>
#include <ftw.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <wordexp.h>

static char buffer[8192];

static void descriptors(void) {
    int fd;
    SAY(fd = open("a", O_RDWR | O_CREAT | O_TRUNC, 0644));
    struct iovec v[2] = {{buffer, 100}, {buffer + 100, 200}};
    off_t in = 0, out = 0;
    SAY(write(fd, buffer, 8192));
    SAY(pwrite(fd, buffer, 4096, 8192));
    SAY(writev(fd, v, 2));
    SAY(pwritev(fd, v, 2, 0));
    SAY(pwritev2(fd, v, 2, 0, 0));
    SAY(fsync(fd));
    SAY(fdatasync(fd));
    SAY(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    SAY(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(read(fd, buffer, 4096));
    SAY(pread(fd, buffer, 100, 5000));
    SAY(readv(fd, v, 2));
    SAY(preadv(fd, v, 2, 0));
    SAY(preadv2(fd, v, 2, 0, 0));
    SAY(preadv2(fd, v, 2, -1, 0));
    SAY(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
    SAY(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    SAY(readahead(fd, 0, 4096));
    int to;
    SAY(to = creat("b", 0600));
    SAY(sendfile(to, fd, &in, 4096));
    in = 0;
    SAY(copy_file_range(fd, &in, to, &out, 4096, 0));
    int ends[2];
    SAY(pipe(ends));
    in = 0;
    SAY(splice(fd, &in, ends[1], NULL, 4096, 0));
    SAY(read(ends[0], buffer, 8192));
    SAY(write(ends[1], buffer, 10));
    SAY(syscall(SYS_read, ends[0], buffer, 10));
    SAY(syscall(SYS_pread64, fd, buffer, 10, 0));
    SAY(syscall(SYS_pwrite64, fd, buffer, 10, 0));
    SAY(dup(fd));
    SAY(dup2(fd, 40));
    SAY(dup3(fd, 41, O_CLOEXEC));
    SAY(fcntl(fd, F_DUPFD, 42));
    SAY(fcntl(fd, F_GETFL));
    SAY(close(41));
    SAY(close_range(40, 50, 0));
    SAY(ftruncate(fd, 5000));
    SAY(fallocate(fd, 0, 0, 20000));
    SAY(posix_fallocate(fd, 0, 30000));
    char *map;
    SAY_POINTER(map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    map[0]++;
    SAY(madvise(map, 4096, MADV_WILLNEED));
    SAY(msync(map, 4096, MS_SYNC));
    SAY(munmap(map, 4096));
    struct aiocb request = {.aio_fildes = fd, .aio_buf = buffer, .aio_nbytes = 100};
    const struct aiocb *list[1] = {&request};
    SAY(aio_read(&request));
    while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, NULL);
    SAY(aio_return(&request));
    SAY(close(fd));
    SAY(close(to));
}

static int visit(const char *path, const struct stat *status, int kind, struct FTW *at) {
    printf("%s: %d, %d, level %d\n", path, kind, S_ISDIR(status->st_mode), at->level);
    return 0;
}

static int visit_flatly(const char *path, const struct stat *status, int kind) {
    printf("%s: %d, %d\n", path, kind, S_ISDIR(status->st_mode));
    return 5;
}

static void names(void) {
    SAY(mkdir("d", 0755));
    SAY(close(openat(AT_FDCWD, "d/x", O_CREAT | O_WRONLY, 0644)));
    SAY(rename("d/x", "d/y"));
    SAY(renameat(AT_FDCWD, "d/y", AT_FDCWD, "d/z"));
    SAY(renameat2(AT_FDCWD, "d/z", AT_FDCWD, "d/w", 0));
    SAY(truncate("d/w", 100));
    DIR *directory;
    SAY_POINTER(directory = opendir("d"));
    SAY_POINTER(readdir(directory));
    SAY_POINTER(readdir(directory));
    SAY_POINTER(readdir(directory));
    SAY_POINTER(readdir(directory));
    SAY(closedir(directory));
    int fd = open("d", O_RDONLY | O_DIRECTORY);
    SAY(getdents64(fd, buffer, sizeof buffer) > 0);
    SAY(getdents64(fd, buffer, sizeof buffer));
    close(fd);
    struct dirent **entries;
    SAY(scandir("d", &entries, NULL, alphasort));
    char *roots[] = {"d", NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL, NULL);
    SAY_POINTER(fts_read(tree));
    SAY_POINTER(fts_children(tree, 0));
    fts_close(tree);
    SAY(nftw("d", visit, 2, FTW_PHYS | FTW_DEPTH));
    SAY(ftw("d", visit_flatly, 2));
    SAY(scandirat(AT_FDCWD, "d", &entries, NULL, alphasort));
    SAY(setxattr("d", "user.a", "value", 5, 0) | lsetxattr("d", "user.b", "", 0, 0));
    SAY(getxattr("d", "user.a", buffer, sizeof buffer));
    SAY(lgetxattr("d", "user.a", buffer, sizeof buffer));
    SAY(listxattr("d", buffer, sizeof buffer) > 0);
    SAY(llistxattr("d", buffer, sizeof buffer) > 0);
    SAY(removexattr("d", "user.a") | lremovexattr("d", "user.b"));
    SAY(statfs("d", (struct statfs *)buffer));
    SAY(statvfs("d", (struct statvfs *)buffer));
    SAY_POINTER(realpath("d/../d", NULL));
    SAY_POINTER(canonicalize_file_name("d"));
    SAY(unlinkat(AT_FDCWD, "d/w", 0));
    SAY(rmdir("d"));
    SAY(unlink("b"));
    char one[] = "mXXXXXX", two[] = "mXXXXXX.c", three[] = "mXXXXXX";
    SAY(mkstemp(one) > 2);
    SAY(mkstemps(two, 2) > 2);
    SAY(mkostemp(three, O_APPEND) > 2);
    SAY(remove(one) | remove(two) | remove(three));
}

int __dprintf_chk(int fd, int flag, const char *format, ...);

/* More arguments of each kind than registers hold. */
static void print(void) {
    const char *format = "%d %s %g %ld %c %d %d %g %g %g %g %g %g %g %g %d %s %Lg\n";
    SAY(dprintf(1, format, 1, "two", 3., 4L, '5', 6, 7, 8., 9., 10., 11., 12., 13., 14., 15., 16, "17", 18.L));
    SAY(__dprintf_chk(1, 1, format, 1, "two", 3., 4L, '5', 6, 7, 8., 9., 10., 11., 12., 13., 14., 15., 16, "17", 18.L));
    SAY(dprintf(1, "none\n"));
    SAY(dprintf(4000, "%d\n", 1));
}

static void streams(void) {
    FILE *stream;
    char *line = NULL;
    size_t size = 0;
    SAY_POINTER(stream = fopen("s", "w+"));
    SAY(fprintf(stream, "%s\n", "a line"));
    SAY(fwrite(buffer, 1, sizeof buffer, stream));
    SAY(fflush(stream));
    SAY(fseek(stream, 0, SEEK_SET));
    SAY(getline(&line, &size, stream));
    SAY(fread(buffer, 1, 100, stream));
    SAY(fgetc(stream) >= 0);
    SAY_POINTER(stream = freopen("s", "r", stream));
    SAY(fclose(stream));
    SAY_POINTER(stream = tmpfile());
    SAY(fclose(stream));
    SAY_POINTER(stream = popen("true", "r"));
    SAY(pclose(stream));
    SAY(system("exit 3"));
    wordexp_t words;
    SAY(wordexp("$(echo a b)", &words, 0));
    pid_t child;
    char *arguments[] = {"true", NULL};
    SAY(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, NULL));
    SAY(waitpid(child, NULL, 0) == child);
    SAY(posix_spawnp(&child, "true", NULL, NULL, arguments, arguments + 1));
    SAY(waitpid(child, NULL, 0) == child);
}

int main(void) {
    descriptors();
    names();
    print();
    streams();
    return 0;
}
