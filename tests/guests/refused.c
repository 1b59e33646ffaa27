/* Executes a command in which a system call is refused as by an old kernel or a container.
   Arguments: the numbers of the calls, separated by commas; the errno; the command. */
#include "guest.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define CALLS 32

int main(int count, char **arguments) {
    struct sock_filter rules[2 * CALLS + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short at = 1;
    if (count < 4) return 2;
    unsigned refusal = SECCOMP_RET_ERRNO | (unsigned)atoi(arguments[2]);
    for (char *word = strtok(arguments[1], ","); word && at < 2 * CALLS; word = strtok(NULL, ",")) {
        rules[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(word), 0, 1);
        rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refusal);
    }
    rules[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {at, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    execvp(arguments[3], arguments + 3);
    return 127;
}
