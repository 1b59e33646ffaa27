/* Mappings of a file, and what the program advises about them. With the argument "advice" it also
   says which of them the kernel was advised to read page by page ("rr" in /proc/self/smaps, "sr" is in order), which
   no program needs to know. With a second argument it waits for a line before it looks again. */
#include "guest.h"

enum { SIZE = 1 << 20 };

static int has(void *start, const char *flag) {
    char line[4096], wanted[64];
    snprintf(wanted, sizeof wanted, "%lx-", (unsigned long)start);
    FILE *maps = fopen("/proc/self/smaps", "r");
    int here = 0, found = -1;
    while (fgets(line, sizeof line, maps)) {
        if (strncmp(line, wanted, strlen(wanted)) == 0) here = 1;
        if (here && strncmp(line, "VmFlags:", 8) == 0) {
            found = strstr(line, flag) != NULL;
            break;
        }
    }
    fclose(maps);
    return found;
}

static int is_random(void *start) {
    return has(start, " rr");
}

static void say_sum(const char *what, const unsigned char *start, size_t size) {
    unsigned long sum = 0;
    for (size_t at = 0; at < size; at++) sum = sum * 31 + start[at];
    printf("%s: %016lx\n", what, sum);
}

int main(int count, char **arguments) {
    static unsigned char bytes[SIZE];
    int fd = open("m", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int small = open("n", O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(bytes, SIZE, 1);
    write(fd, bytes, SIZE);
    write(small, bytes, 4096);
    unsigned char *whole, *own, *populated, *little, *none, *ordered;
    SAY_POINTER(whole = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0));
    SAY_POINTER(own = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    SAY_POINTER(populated = mmap(NULL, SIZE / 2, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, SIZE / 2));
    SAY_POINTER(little = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, small, 0));
    SAY_POINTER(none = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    SAY_POINTER(ordered = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0));
    SAY(mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, 4000, 0));
    SAY(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0));
    SAY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 100));
    say_sum("whole", whole, SIZE);
    say_sum("own", own, SIZE);
    say_sum("populated", populated, SIZE / 2);
    SAY(madvise(own, SIZE, MADV_NORMAL));
    SAY(madvise(own, SIZE, 4711));
    SAY(posix_madvise(own, SIZE, POSIX_MADV_SEQUENTIAL));
    SAY(posix_madvise(own, SIZE, POSIX_MADV_WILLNEED));
    SAY(posix_madvise(own + 1, SIZE, POSIX_MADV_NORMAL));
    SAY(posix_madvise(own, SIZE, POSIX_MADV_NORMAL));
    SAY(madvise(ordered, SIZE, MADV_SEQUENTIAL));
    if (count > 1) {
        printf("random: whole %d, own %d, populated %d, little %d, none %d, ordered %d\n", is_random(whole),
               is_random(own), is_random(populated), is_random(little), is_random(none), is_random(ordered));
        fflush(stdout);
    }
    unsigned char *moved;
    SAY_POINTER(moved = mremap(whole, SIZE, SIZE / 2, MREMAP_MAYMOVE));
    SAY(mremap(moved + 1, SIZE, SIZE, 0));
    say_sum("moved", moved, SIZE / 2);
    /* Something else takes the place of a part of it. */
    SAY(mmap(moved, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == moved);
    say_sum("replaced", moved, SIZE / 2);
    pid_t child = fork();
    if (child == 0) {
        say_sum("child", populated, SIZE / 2);
        munmap(populated, SIZE / 2);
        fflush(stdout);
        _exit(0);
    }
    say_end("child", child);
    if (count > 2) {
        char line[16];
        fgets(line, sizeof line, stdin);
        munmap(little, 4096);
        printf("random: populated %d, in order: own %d, ordered %d\n", is_random(populated), has(own, " sr"),
               has(ordered, " sr"));
    }
    unsigned char *numbered;
    SAY_POINTER(numbered = (unsigned char *)syscall(SYS_mmap, NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0));
    say_sum("numbered", numbered, SIZE);
    SAY(syscall(SYS_mmap, NULL, SIZE, PROT_READ, MAP_SHARED, 4000, 0));
    SAY(syscall(SYS_madvise, numbered, SIZE, MADV_WILLNEED));
    SAY(syscall(SYS_madvise, numbered + 1, SIZE, MADV_WILLNEED));
    SAY(syscall(SYS_munmap, numbered, SIZE));
    SAY(syscall(SYS_munmap, numbered + 1, SIZE));
    SAY(syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_WILLNEED));
    SAY(syscall(SYS_fadvise64, fd, 0, 0, 4711));
    SAY(munmap(populated, SIZE / 2));
    SAY(munmap(moved + 1, SIZE / 2));
    SAY(munmap(own, SIZE));
    return 0;
}
