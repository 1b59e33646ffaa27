/* Calls a library that it is linked with, or loads it itself. */
#include "guest.h"
#include <dlfcn.h>

#ifdef LINKED
void from_library(void);
int main(void) { from_library(); return 0; }
#else
int main(int count, char **arguments) {
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    void (*call)(void) = (void (*)(void))dlsym(library, "from_library");
    call();
    /* A function that a program looks up by itself. */
    ssize_t (*reading)(int, void *, size_t) = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_DEFAULT, "read");
    char byte;
    printf("looked up: %zd\n", reading(open("/dev/zero", O_RDONLY), &byte, 1));
    printf("closed: %d\n", dlclose(library));
    return 0;
}
#endif
