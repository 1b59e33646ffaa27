/* A library that does I/O and looks at its environment when it is loaded and when it goes. */
#include "guest.h"

static void io(const char *when) {
    char data[20000] = "", path[] = "libXXXXXX";
    int fd = mkstemp(path);
    long written = write(fd, data, sizeof data), got = pread(fd, data, sizeof data, 0);
    close(fd);
    unlink(path);
    FILE *stream = fopen("/proc/self/comm", "r");
    char name[64] = "";
    fgets(name, sizeof name, stream);
    fclose(stream);
    const char *preload = getenv("LD_PRELOAD"), *class = getenv("DISCNICE");
    printf("%s: %ld %ld %s  LD_PRELOAD %s, DISCNICE %s\n", when, written, got, name,
           preload ? preload : "unset", class ? class : "unset");
    fflush(stdout);
}

__attribute__((constructor)) static void begin(void) { io("constructor"); }
__attribute__((destructor)) static void end(void) { io("destructor"); }
void from_library(void) { io("call"); }
