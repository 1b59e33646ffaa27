/* Executes a program and makes one of its system calls fail, or each from one on; x86-64 only.
   Arguments: a file that gets how often each call was made ("NUMBER TIMES" a line), or "-"; "command" to leave each
   process alone once it executes anything, or "program" once it executes another program; the number of the call or -1;
   which of them, counted from 1 in all processes together, or with a minus all from that one on; the errno; the program.
   The dynamic linker's calls neither count nor fail, and nor do those by which a process ends. */
#include "guest.h"
#include <sys/ptrace.h>
#include <sys/user.h>

#define PROCESSES 256
#define CALLS 512
/* A process that is left when the first has ended is traced for so long, and then looked for so often whether a stop of it
   is not just being waited for: so many times, as that of one which makes calls without a break always is. */
#define PATIENCE_US 100000
#define AGAIN_US 10000
#define LOOKS 50

struct traced {
    pid_t id;
    unsigned long linker_start, linker_end;
    unsigned long argument;
    int fails;
};

static struct traced all[PROCESSES];
static long counts[CALLS], wanted, when;
static int failure, only_command;
static char program[PATH_MAX];

static struct traced *find(pid_t id) {
    struct traced *free_one = NULL;
    for (struct traced *one = all; one < all + PROCESSES; one++) {
        if (one->id == id) return one;
        if (!one->id && !free_one) free_one = one;
    }
    if (free_one) *free_one = (struct traced){.id = id};
    return free_one;
}

/* Where the dynamic linker lies in a process. */
static void note_linker(struct traced *one) {
    char line[PATH_MAX + 100];
    snprintf(line, sizeof line, "/proc/%d/maps", one->id);
    FILE *maps = fopen(line, "r");
    unsigned long start, end;
    one->linker_start = one->linker_end = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/ld-") || sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
        if (!one->linker_start) one->linker_start = start;
        one->linker_end = end;
    }
    if (maps) fclose(maps);
}

static int executes_the_program(pid_t id) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", id);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return !strcmp(path, program);
}

static int counts_here(const struct traced *one, const struct user_regs_struct *registers) {
    long call = (long)registers->orig_rax;
    int linker = registers->rip >= one->linker_start && registers->rip < one->linker_end;
    int ends = call == SYS_exit || call == SYS_exit_group || call == SYS_rt_sigreturn;
    return call >= 0 && call < CALLS && !linker && !ends;
}

/* At the entry to a call or at its return. */
static void at_call(struct traced *one) {
    struct user_regs_struct registers;
    struct __ptrace_syscall_info where;
    if (ptrace(PTRACE_GETREGS, one->id, 0, &registers)) return;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, one->id, sizeof where, &where) < 0) return;
    if (where.op == PTRACE_SYSCALL_INFO_ENTRY) {
        if (!counts_here(one, &registers)) return;
        long call = (long)registers.orig_rax, number = ++counts[call];
        one->fails = call == wanted && (when > 0 ? number == when : number >= -when);
        /* What close(2) and munmap(2) give back is given back even if they fail. */
        if (!one->fails || call == SYS_close || call == SYS_munmap) return;
        /* brk(2) fails by telling where the end is, as if it had been asked. */
        one->argument = registers.rdi;
        if (call == SYS_brk) registers.rdi = 0;
        else registers.orig_rax = -1;
        ptrace(PTRACE_SETREGS, one->id, 0, &registers);
    } else if (one->fails) {
        one->fails = 0;
        if (registers.orig_rax == SYS_brk) registers.rdi = one->argument;
        else registers.rax = (unsigned long)-failure;
        ptrace(PTRACE_SETREGS, one->id, 0, &registers);
    }
}

/* Lets a process go on; returns whether it is still traced. */
static int go_on(struct traced *one, int status, int is_first) {
    int signal = WSTOPSIG(status), event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
        at_call(one);
        signal = 0;
    } else if (event == PTRACE_EVENT_EXEC) {
        if (!is_first && (only_command || !executes_the_program(one->id))) {
            ptrace(PTRACE_DETACH, one->id, 0, 0);
            return 0;
        }
        note_linker(one);
        signal = 0;
    } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
        ptrace(PTRACE_LISTEN, one->id, 0, 0);
        return 1;
    } else if (event) {
        /* A new process begins with a stop. */
        if (event == PTRACE_EVENT_STOP && !one->linker_end) note_linker(one);
        signal = 0;
    }
    ptrace(PTRACE_SYSCALL, one->id, 0, signal);
    return 1;
}

static void write_counts(const char *path) {
    FILE *list = strcmp(path, "-") ? fopen(path, "w") : NULL;
    for (int call = 0; list && call < CALLS; call++)
        if (counts[call]) fprintf(list, "%d %ld\n", call, counts[call]);
    if (list) fclose(list);
}

static volatile sig_atomic_t looks;

static void look(int signal) {
    (void)signal;
    looks++;
}

/* Whether a process is in a call that is to fail, and would return with another error if it were left alone. */
static int one_fails(void) {
    for (struct traced *one = all; one < all + PROCESSES; one++)
        if (one->id && one->fails) return 1;
    return 0;
}

static int trace(pid_t first) {
    int ended = -1, executed = 0, status;
    struct sigaction action = {.sa_handler = look};
    sigaction(SIGALRM, &action, NULL);
    while (looks < LOOKS || one_fails()) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0) break;
        struct traced *one = find(id);
        if (!one) break;
        if (!WIFSTOPPED(status)) {
            one->id = 0;
            if (id == first) {
                ended = status;
                ualarm(PATIENCE_US, AGAIN_US);
            }
            continue;
        }
        int is_first = id == first && !executed && status >> 16 == PTRACE_EVENT_EXEC;
        executed |= is_first;
        if (!go_on(one, status, is_first) && id != first) one->id = 0;
    }
    return ended;
}

int main(int count, char **arguments) {
    if (count < 7 || !realpath(arguments[6], program)) return 2;
    only_command = !strcmp(arguments[2], "command");
    wanted = atol(arguments[3]), when = atol(arguments[4]), failure = atoi(arguments[5]);
    int start[2];
    if (pipe2(start, O_CLOEXEC)) return 2;
    pid_t first = fork();
    if (!first) {
        char byte;
        if (read(start[0], &byte, 1) == 1) execv(program, arguments + 6);
        _exit(127);
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACECLONE;
    find(first)->linker_end = 1;
    if (ptrace(PTRACE_SEIZE, first, 0, options) || write(start[1], "+", 1) != 1) return 2;
    close(start[0]), close(start[1]);
    int status = trace(first);
    write_counts(arguments[1]);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
