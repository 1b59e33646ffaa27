/* What interposition is known to get wrong, one way by each name that it is called with: each prints what a
   program can see of it. Those that read read all of "data". */
#include "guest.h"
#include <dlfcn.h>
#include <sys/prctl.h>

#define SIZE (2 << 20)
static unsigned char buffer[65536];

typedef ssize_t (*reader)(int, void *, size_t);

/* Reads all of the file by this function, and prints a sum. */
static void read_by(reader read_some) {
    int fd = open("data", O_RDONLY);
    unsigned long sum = 0, size = 0;
    ssize_t got;
    while ((got = read_some(fd, buffer, sizeof buffer)) > 0) {
        size += got;
        for (ssize_t at = 0; at < got; at++) sum = sum * 31 + buffer[at];
    }
    printf("%lu bytes, sum %lx, last %zd\n", size, sum, got);
    fflush(stdout);
    close(fd);
}

/* Before the constructors of any library: the dynamic linker calls this first. */
static int is_early;
static long early_size, early_last;
static void early(int count, char **arguments, char **environment) {
    (void)environment;
    if (count < 2 || strcmp(arguments[1], "early") != 0) return;
    is_early = 1;
    int fd = open("data", O_RDONLY);
    while ((early_last = read(fd, buffer, sizeof buffer)) > 0) early_size += early_last;
    close(fd);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = early;

static void before_all_constructors(void) {
    printf("early %d: %ld bytes, last %ld\n", is_early, early_size, early_last);
}

static void exec_without_environment(void) {
    char *arguments[] = {"cat", "data", NULL}, *nothing[] = {NULL};
    execve("/bin/cat", arguments, nothing);
}

static void unset_environment(void) {
    unsetenv("LD_PRELOAD");
    SAY(setenv("LD_PRELOAD", "", 1));
    SAY(system("cat data | cksum"));
    clearenv();
    SAY(system("cat data | cksum"));
    extern char **environ;
    environ = NULL;
    execl("/bin/cat", "cat", "data", (char *)NULL);
}

static void second_libc(void) {
    void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL);
    reader second = libc ? (reader)dlsym(libc, "read") : NULL;
    printf("a second libc: %d, another read: %d\n", libc != NULL, second != read);
    if (second) read_by(second);
}

static ssize_t by_syscall(int fd, void *to, size_t size) { return syscall(SYS_read, fd, to, size); }

static void through_syscall(void) { read_by(by_syscall); }

#ifdef __x86_64__
/* mov edi.. are in place by the calling convention: xor eax, eax; syscall; ret. */
static const unsigned char READS[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};
#else
/* mov x8, #63; svc #0; ret. */
static const unsigned int READS[] = {0xd28007e8, 0xd4000001, 0xd65f03c0};
#endif

/* Code made at run time; rewritten once, as programs do that translate others. */
static void made_at_run_time(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, 0, 4096);
    for (int round = 0; round < 2; round++) {
        unsigned char *code = (unsigned char *)page + round * 64;
        SAY(mprotect(page, 4096, PROT_READ | PROT_WRITE));
        memcpy(code, READS, sizeof READS);
        SAY(mprotect(page, 4096, PROT_READ | PROT_EXEC));
        __builtin___clear_cache((char *)code, (char *)code + sizeof READS);
        read_by((reader)code);
    }
}

static unsigned long hash(const void *at, size_t size) {
    unsigned long sum = 14695981039346656037u;
    for (size_t byte = 0; byte < size; byte++) sum = (sum ^ ((const unsigned char *)at)[byte]) * 1099511628211u;
    return sum;
}

/* Bytes that look like a system call and are data; and libc's own code. */
extern const unsigned char looks[16];
__asm__(".pushsection .text\n.balign 16\nlooks:\n"
        ".byte 0x0f, 0x05, 0xc3, 0x0f, 0x34, 0xcd, 0x80, 0xb8, 0x0f, 0x05, 0, 0, 0x01, 0, 0, 0xd4\n.popsection\n");
static void data_in_code(void) {
    printf("data %lx\n", hash(looks, sizeof looks));
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    const char *names[] = {"read", "write", "pread", "openat", "fsync", "syscall", "execve", "_exit"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        printf("%s %lx\n", names[at], hash(dlsym(libc, names[at]), 64));
}

static volatile long handled, wrong;
static int ends[2];
static void on_alarm(int signal) {
    (void)signal;
    int before = errno;
    unsigned char some[512];
    int fd = open("data", O_RDONLY);
    wrong += pread(fd, some, sizeof some, 4096) != sizeof some;
    wrong += write(ends[1], some, 16) != 16 || read(ends[0], some, 16) != 16;
    wrong += close(fd) != 0;
    errno = before;
    handled++;
}

static void within_a_hook(void) {
    pipe(ends);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; round < 3 || handled < 20; round++) {
        int fd = open("data", O_RDONLY);
        long size = 0;
        ssize_t got;
        while ((got = read(fd, buffer, 4096)) > 0) size += got;
        wrong += size != SIZE || got != 0 || close(fd) != 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("wrong %ld, handled enough: %d\n", wrong, handled >= 20);
}

static int cloned(void *fd) {
    errno = 0;
    ssize_t got, all = 0;
    while ((got = read(*(int *)fd, buffer, sizeof buffer)) > 0) all += got;
    close(*(int *)fd);
    int own = open("data", O_RDONLY);
    read(own, buffer, 100);
    open("nowhere", O_RDONLY);
    _exit(all == SIZE && errno == ENOENT ? 7 : 8);
}

/* A child that shares memory, and with it thread-local storage, with its parent. */
static void shared_memory_child(void) {
    int fd = open("data", O_RDONLY);
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t child = clone(cloned, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, &fd);
    say_end("clone", child);
    printf("offset %ld, own descriptor %d\n", (long)lseek(fd, 0, SEEK_CUR), fcntl(fd, F_GETFD));
    SAY(read(fd, buffer, 10));
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(read(fd, buffer, 10));
    SAY(open("data", O_RDONLY) - fd);
}

#ifdef __x86_64__
/* Calls with a mark in each register that a function must keep, and in MXCSR; stores what is there afterwards. */
long call_with_marks(reader read_some, int fd, void *to, size_t size, unsigned long *kept);
__asm__(".pushsection .text\n"
        "call_with_marks:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %r8\n"
        "mov %rdi, %rax; mov %esi, %edi; mov %rdx, %rsi; mov %rcx, %rdx\n"
        "mov $0x1111, %rbx; mov $0x2222, %rbp; mov $0x3333, %r12\n"
        "mov $0x4444, %r13; mov $0x5555, %r14; mov $0x6666, %r15\n"
        "ldmxcsr 48(%r8)\n"
        "call *%rax\n"
        "pop %r8\n"
        "mov %rbx, (%r8); mov %rbp, 8(%r8); mov %r12, 16(%r8); mov %r13, 24(%r8); mov %r14, 32(%r8)\n"
        "mov %r15, 40(%r8); stmxcsr 48(%r8); pushfq; popq 56(%r8)\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".popsection\n");
static void registers(void) {
    int fd = open("data", O_RDONLY);
    unsigned long kept[8] = {[6] = 0x1f80 | 2 << 13 /* rounds up */};
    printf("%ld:", call_with_marks(read, fd, buffer, sizeof buffer, kept));
    for (int at = 0; at < 6; at++) printf(" %lx", kept[at]);
    printf(", control %x, direction %lx\n", (unsigned)kept[6] & 0x7fc0, kept[7] & 0x400);
}
#else
static void registers(void) { through_syscall(); }
#endif

#ifdef __x86_64__
/* The kernel keeps all of these over a system call, and what lies below the stack pointer. */
static void red_zone(void) {
    int fd = open("data", O_RDONLY);
    static const unsigned long PATTERN[4] = {0x0123456789abcdef, 0xfedcba9876543210, 5, 6};
    unsigned long vector[4] = {0}, below[2] = {0}, result;
    int wide = __builtin_cpu_supports("avx");
    for (int round = 0; round < 50; round++) {
        if (wide) __asm__ volatile("vmovdqu %0, %%ymm9" : : "m"(PATTERN) : "xmm9");
        __asm__ volatile(
            "movq $77, -8(%%rsp); movq $78, -128(%%rsp); xor %%eax, %%eax; syscall\n"
            "mov -8(%%rsp), %%r8; mov -128(%%rsp), %%r9; mov %%r8, %1; mov %%r9, %2\n"
            : "=&a"(result), "=&r"(below[0]), "=&r"(below[1])
            : "D"(fd), "S"(buffer), "d"(4096)
            : "r8", "r9", "rcx", "r11", "memory");
        if (wide) __asm__ volatile("vmovdqu %%ymm9, %0; vzeroupper" : "=m"(vector));
        wrong += result != 4096 || below[0] != 77 || below[1] != 78 || (wide && memcmp(vector, PATTERN, 32));
    }
    printf("wrong %ld\n", wrong);
}
#else
static void red_zone(void) { through_syscall(); }
#endif

static sigjmp_buf back;
static void *fault;
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    fault = info->si_addr;
    siglongjmp(back, 1);
}

/* Interposers that put their code at address 0 let such calls pass. */
static void call_of_nothing(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned long at = 0; at < 512; at += 73) {
        fault = (void *)-1;
        void (*volatile nothing)(void) = (void (*)(void))at;
        if (sigsetjmp(back, 1) == 0) nothing();
        printf("call of %lu: fault at %p\n", at, fault);
    }
    if (sigsetjmp(back, 1) == 0) printf("%d\n", *(volatile int *)NULL);
    SAY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == NULL);
}

/* A handler on a stack that has room for little more than the frame that the kernel makes. */
static void small_signal_stack(void) {
    pipe(ends);
    size_t size = sysconf(_SC_MINSIGSTKSZ) + 4096;
    char *place = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size = (size + 4095) & ~4095ul;
    mprotect(place + 4096, size, PROT_READ | PROT_WRITE);
    stack_t stack = {.ss_sp = place + 4096, .ss_size = size};
    SAY(sigaltstack(&stack, NULL));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    for (int round = 0; round < 5; round++) raise(SIGUSR1);
    printf("wrong %ld, handled %ld\n", wrong, handled);
}

static volatile char selector;
static volatile long dispatched;
static void on_dispatch(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    (void)context;
    selector = 0;
    dispatched++;
}

/* A program that has its own system calls sent to itself, but for those that libc makes. */
static void user_dispatch(void) {
    unsigned long from = 0, to = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "r-xp") && strstr(line, "libc.so.6")) sscanf(line, "%lx-%lx", &from, &to);
    fclose(maps);
    struct sigaction action = {.sa_sigaction = on_dispatch, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    int fd = open("data", O_RDONLY);
    if (prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, from, to - from, &selector) != 0) {
        printf("not supported\n");
        return;
    }
    long size = 0;
    for (ssize_t got = 1; got > 0; size += got) {
        selector = 1;
        got = read(fd, buffer, sizeof buffer);
        selector = 0;
    }
    prctl(59, 0, 0, 0, 0);
    /* Only a process that is still there when it is looked at is charged from outside. */
    usleep(200000);
    printf("%ld bytes, %ld dispatched\n", size, dispatched);
}

static void *start_program(void *way) {
    char *words[] = {"true", NULL}, *none[] = {NULL};
    pid_t child = -1;
    if (way) posix_spawn(&child, "/bin/true", NULL, NULL, words, none);
    else if ((child = vfork()) == 0) execve("/bin/true", words, none), _exit(1);
    waitpid(child, NULL, 0);
    return NULL;
}

static long data_pages(void) {
    long pages = 0;
    char text[200] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    read(fd, text, sizeof text - 1);
    close(fd);
    sscanf(text, "%*d %*d %*d %*d %*d %ld", &pages);
    return pages;
}

/* A thread for each program that is started, as servers have: nothing is left of it. */
static void threads_that_start_programs(void) {
    long before = 0;
    for (int number = 0; number < 28; number++) {
        pthread_t thread;
        pthread_create(&thread, NULL, start_program, number % 2 ? buffer : NULL);
        pthread_join(thread, NULL);
        if (number == 7) before = data_pages();
    }
    printf("grown by %ld pages of 4 KiB\n", (data_pages() - before) / 10 * 10);
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*go)(void); } ways[] = {
        {"early", before_all_constructors}, {"exec", exec_without_environment}, {"unset", unset_environment},
        {"second-libc", second_libc}, {"syscall", through_syscall}, {"run-time", made_at_run_time},
        {"data", data_in_code}, {"handler", within_a_hook}, {"clone", shared_memory_child},
        {"registers", registers}, {"red-zone", red_zone},
        {"null", call_of_nothing}, {"small-stack", small_signal_stack}, {"dispatch", user_dispatch},
        {"threads", threads_that_start_programs},
    };
    for (size_t at = 0; count > 1 && at < sizeof ways / sizeof *ways; at++)
        if (strcmp(arguments[1], ways[at].name) == 0) {
            ways[at].go();
            return 0;
        }
    return 2;
}
