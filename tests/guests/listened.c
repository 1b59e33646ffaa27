/* Executes a command below a filter that lets all calls pass and has a listener, as some containers have. Arguments: the
   command. */
#include "guest.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

int main(int count, char **arguments) {
    struct sock_filter rule = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &rule};
    if (count < 2) return 2;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    /* It is there as long as it is open. */
    if (listener < 0 || fcntl(listener, F_SETFD, 0)) return 3;
    execvp(arguments[1], arguments + 1);
    return 127;
}
