/* Opens a file that is closed when a program is executed. As soon as a second file is there, children execute a program, for 100
 * seconds, in quick succession: as many as told, and then the process itself. */
#include "guest.h"

int main(int count, char **arguments) {
    if (count < 5 || open(arguments[1], O_RDONLY | O_CLOEXEC) < 0) return 1;
    puts("ready");
    fflush(stdout);
    while (access(arguments[2], F_OK)) usleep(10000);
    for (int children = atoi(arguments[4]); children > 0; children--) {
        if (fork() == 0) break;
        usleep(1000);
    }
    execl(arguments[3], arguments[3], "100", (char *)NULL);
    return 1;
}
