/* Sends to 127.0.0.1:PORT, and prints which rate the kernel has for the socket, and which one the program finds. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "guest.h"

/* getsockopt(2) by an instruction of its own, past everything that stands in the place of libc's. */
static long ask(int fd, uint64_t *rate, socklen_t *length) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = (long)rate;
    register long r8 __asm__("r8") = (long)length;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getsockopt), "D"(fd), "S"(SOL_SOCKET), "d"(SO_MAX_PACING_RATE), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x0 __asm__("x0") = fd;
    register long x1 __asm__("x1") = SOL_SOCKET;
    register long x2 __asm__("x2") = SO_MAX_PACING_RATE;
    register long x3 __asm__("x3") = (long)rate;
    register long x4 __asm__("x4") = (long)length;
    register long x8 __asm__("x8") = SYS_getsockopt;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8) : "memory");
    return x0;
#else
#error "no such instruction is known"
#endif
}

static uint64_t kernel(int fd) {
    uint64_t rate = 0;
    socklen_t length = sizeof rate;
    return ask(fd, &rate, &length) ? 0 : rate;
}

static uint64_t own(int fd) {
    uint64_t rate = 0;
    socklen_t length = sizeof rate;
    return getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &length) ? 0 : rate;
}

static void set(int fd, uint64_t rate) {
    SAY(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate));
}

static void say(const char *what, uint64_t rate) {
    printf("%s: %lld\n", what, (long long)rate);
    fflush(stdout);
}

int main(int count, char **arguments) {
    static char data[20000];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
    if (write(fd, data, sizeof data) < 0) return 1;
    say("paced", kernel(fd));
    say("found", own(fd));
    SAY(getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, NULL, NULL));
    if (send(fd, data, sizeof data, 0) < 0) return 1;
    say("paced again", kernel(fd));
    set(fd, 5000000);
    say("found", own(fd));
    if (send(fd, data, sizeof data, 0) < 0) return 1;
    say("its own", kernel(fd));
    set(fd, UINT64_MAX);
    if (send(fd, data, sizeof data, 0) < 0) return 1;
    say("paced again", kernel(fd));
    if (getchar() == EOF) return 1;
    if (send(fd, data, sizeof data, 0) < 0) return 1;
    say("changed", kernel(fd));
    if (getchar() == EOF) return 1;
    for (int calls = 0; calls < 20000 && kernel(fd) != UINT64_MAX; calls++)
        if (write(fd, data, 1) < 0) return 1;
    say("without a limit", kernel(fd));
    return 0;
}
