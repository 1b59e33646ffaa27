/* Loads a library by a name that only its own run path leads to, as dlopen(3) does for the object
   that calls it; from the program, or from a library that lies elsewhere. */
#include "guest.h"
#include <dlfcn.h>

static void load(const char *name) {
    void *library = dlopen(name, RTLD_NOW);
    void (*call)(void) = library ? (void (*)(void))dlsym(library, "from_library") : NULL;
    printf("%s: %s\n", name, library ? "loaded" : "not found");
    if (call) call();
}

#ifdef LIBRARY
void from_library(void) { load("libconstructed.so"); }
#else
int main(int count, char **arguments) {
    SAY_POINTER(dlopen(NULL, RTLD_NOW));
    SAY_POINTER(dlopen("libc.so.6", RTLD_NOW));
    SAY_POINTER(dlopen("/nonexistent/library.so", RTLD_NOW));
    SAY_POINTER(dlopen("", RTLD_NOW));
    SAY_POINTER(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW));
    for (int at = 1; at < count; at++) load(arguments[at]);
    return 0;
}
#endif
