/* Prints its environment, as env(1); for a program without a dynamic linker. */
#include "guest.h"

extern char **environ;

int main(void) {
    for (char **entry = environ; *entry; entry++) puts(*entry);
    return 0;
}
