/* sockets WAY PORT SECONDS: moves as many bytes as it can, in one way, to or from a server on this
   machine, and prints them, the seconds they took, how often it was told that the socket is ready,
   and the milliseconds of processor time it used. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "guest.h"

#define LARGE (1 << 20)

static char *buffer;
static int sock, way_up;
static long told;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void no_block(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static ssize_t move(void) {
    return way_up ? send(sock, buffer, LARGE, MSG_NOSIGNAL) : recv(sock, buffer, LARGE, 0);
}

static ssize_t by_stream(void) {
    static FILE *stream;
    if (!stream) stream = fdopen(sock, "r");
    return fread(buffer, 1, 65536, stream);
}

static ssize_t by_read(void) { return read(sock, buffer, LARGE); }
static ssize_t by_write(void) { return write(sock, buffer, LARGE); }

static ssize_t by_vector(void) {
    struct iovec parts[3] = {{buffer, 100000}, {buffer + 100000, 7}, {buffer + 100007, 300000}};
    return way_up ? writev(sock, parts, 3) : readv(sock, parts, 3);
}

static ssize_t by_message(void) {
    struct iovec parts[2] = {{buffer, 100000}, {buffer + 100000, 300000}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
    return way_up ? sendmsg(sock, &header, MSG_NOSIGNAL) : recvmsg(sock, &header, 0);
}

static int a_file(void) {
    static int file = -1;
    if (file < 0) {
        file = open("/var/tmp", O_TMPFILE | O_RDWR, 0600);
        for (int part = 0; part < 8; part++) write(file, buffer, LARGE);
    }
    return file;
}

static ssize_t by_sendfile(void) {
    off_t at = 0;
    return sendfile(sock, a_file(), &at, 8 * LARGE);
}

static ssize_t by_splice(void) {
    static int ends[2] = {-1, -1}, null;
    if (ends[0] < 0) pipe(ends), null = open("/dev/null", O_WRONLY);
    ssize_t got = splice(sock, NULL, ends[1], NULL, 65536, 0);
    if (got > 0) splice(ends[0], NULL, null, NULL, got, 0);
    return got;
}

/* Moves until the kernel, or who speaks for it, says that it would block. */
static ssize_t drain(void) {
    long moved = 0;
    for (;;) {
        ssize_t part = move();
        if (part < 0 && errno == EAGAIN) return moved;
        if (part <= 0) return moved ? moved : part;
        moved += part;
    }
}

static ssize_t by_poll(void) {
    struct pollfd entry = {sock, way_up ? POLLOUT : POLLIN, 0};
    if (poll(&entry, 1, 2000) != 1) return 0;
    told++;
    return drain();
}

static ssize_t by_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(sock, &set);
    struct timeval time = {2, 0};
    if (select(sock + 1, way_up ? NULL : &set, way_up ? &set : NULL, NULL, &time) != 1) return 0;
    if (!FD_ISSET(sock, &set)) return 0;
    told++;
    return drain();
}

static ssize_t by_epoll(unsigned more) {
    static int epoll = -1;
    struct epoll_event event = {(way_up ? EPOLLOUT : EPOLLIN) | more, {.u64 = 0x123456789abcdef}};
    if (epoll < 0) {
        epoll = epoll_create1(0);
        epoll_ctl(epoll, EPOLL_CTL_ADD, sock, &event);
    } else if (more & EPOLLONESHOT) {
        epoll_ctl(epoll, EPOLL_CTL_MOD, sock, &event);
    }
    struct epoll_event got;
    if (epoll_wait(epoll, &got, 1, 2000) != 1 || got.data.u64 != 0x123456789abcdef) return 0;
    told++;
    return more & EPOLLET ? drain() : move();
}

static ssize_t by_level(void) { return by_epoll(0); }
static ssize_t by_edge(void) { return by_epoll(EPOLLET); }
static ssize_t by_one_shot(void) { return by_epoll(EPOLLONESHOT); }

/* A program that waits in a way that nobody sees. */
static ssize_t by_retry(void) {
    struct timespec nap = {0, 100000};
    ssize_t got = move();
    if (got < 0 && errno == EAGAIN) nanosleep(&nap, NULL), got = 1 - 1;
    told++;
    return got < 0 ? got : got ? got : -2;
}

static ssize_t by_datagram(void) { return send(sock, buffer, 1400, 0); }

/* Offers all that can be asked for, where only the file bounds it. */
static ssize_t by_whole_file(void) {
    off_t at = 0;
    return sendfile(sock, a_file(), &at, SSIZE_MAX);
}

static ssize_t not_waiting(void) {
    struct iovec part = {buffer, 65536};
    ssize_t got = way_up ? pwritev2(sock, &part, 1, -1, RWF_NOWAIT) : preadv2(sock, &part, 1, -1, RWF_NOWAIT);
    if (got < 0 && errno == EAGAIN) usleep(1000);
    return got < 0 && errno == EAGAIN ? -2 : got;
}

int __dprintf_chk(int fd, int flag, const char *format, ...);

static ssize_t by_print(void) { return dprintf(sock, "%0*d %s %g\n", 9000, 7, "line", 1.5); }
static ssize_t by_checked_print(void) { return __dprintf_chk(sock, 1, "%0*d %s %g\n", 9000, 7, "line", 1.5); }

/* The same by number, as programs do that know their calls better than their libc. */
static ssize_t by_number_with_flags(void) {
    struct iovec part = {buffer, 65536};
    return syscall(way_up ? SYS_pwritev2 : SYS_preadv2, sock, &part, 1, -1L, -1L, 0);
}

static ssize_t by_number_many(void) {
    struct iovec parts[8];
    struct mmsghdr messages[8];
    memset(messages, 0, sizeof messages);
    for (int at = 0; at < 8; at++) {
        parts[at] = (struct iovec){buffer, 1400};
        messages[at].msg_hdr.msg_iov = &parts[at];
        messages[at].msg_hdr.msg_iovlen = 1;
    }
    long count = way_up ? syscall(SYS_sendmmsg, sock, messages, 8, MSG_NOSIGNAL)
                        : syscall(SYS_recvmmsg, sock, messages, 8, MSG_WAITFORONE, NULL);
    ssize_t bytes = count < 0 ? count : 0;
    for (long at = 0; at < count; at++) bytes += messages[at].msg_len;
    return bytes;
}

static ssize_t by_number_file(void) {
    off_t at = 0;
    return syscall(SYS_sendfile, sock, a_file(), &at, 8 * LARGE);
}

static ssize_t by_number_pipe(void) {
    static int ends[2] = {-1, -1};
    if (ends[0] < 0) pipe(ends);
    ssize_t got = syscall(SYS_splice, sock, NULL, ends[1], NULL, 65536, 0);
    for (ssize_t left = got; left > 0;) left -= read(ends[0], buffer, left);
    return got;
}

static const struct {
    const char *name;
    ssize_t (*step)(void);
    int up, no_block, kind;
} ways[] = {
    {"recv", move, 0, 0, SOCK_STREAM},          {"send", move, 1, 0, SOCK_STREAM},
    {"read", by_read, 0, 0, SOCK_STREAM},       {"write", by_write, 1, 0, SOCK_STREAM},
    {"fread", by_stream, 0, 0, SOCK_STREAM},    {"splice", by_splice, 0, 0, SOCK_STREAM},
    {"readv", by_vector, 0, 0, SOCK_STREAM},    {"writev", by_vector, 1, 0, SOCK_STREAM},
    {"recvmsg", by_message, 0, 0, SOCK_STREAM}, {"sendmsg", by_message, 1, 0, SOCK_STREAM},
    {"sendfile", by_sendfile, 1, 0, SOCK_STREAM},
    {"poll-in", by_poll, 0, 1, SOCK_STREAM},    {"poll-out", by_poll, 1, 1, SOCK_STREAM},
    {"select-in", by_select, 0, 1, SOCK_STREAM},{"select-out", by_select, 1, 1, SOCK_STREAM},
    {"level-in", by_level, 0, 1, SOCK_STREAM},  {"level-out", by_level, 1, 1, SOCK_STREAM},
    {"edge-in", by_edge, 0, 1, SOCK_STREAM},    {"edge-out", by_edge, 1, 1, SOCK_STREAM},
    {"oneshot-in", by_one_shot, 0, 1, SOCK_STREAM},
    {"oneshot-out", by_one_shot, 1, 1, SOCK_STREAM},
    {"retry-in", by_retry, 0, 1, SOCK_STREAM},  {"retry-out", by_retry, 1, 1, SOCK_STREAM},
    {"datagram", by_datagram, 1, 0, SOCK_DGRAM},
    {"whole-file", by_whole_file, 1, 0, SOCK_STREAM},
    {"dprintf", by_print, 1, 0, SOCK_STREAM},
    {"checked-dprintf", by_checked_print, 1, 0, SOCK_STREAM},
    {"not-waiting-in", not_waiting, 0, 0, SOCK_STREAM},
    {"not-waiting-out", not_waiting, 1, 0, SOCK_STREAM},
    {"number-flags-in", by_number_with_flags, 0, 0, SOCK_STREAM},
    {"number-flags-out", by_number_with_flags, 1, 0, SOCK_STREAM},
    {"number-many-in", by_number_many, 0, 0, SOCK_STREAM},
    {"number-many-out", by_number_many, 1, 0, SOCK_DGRAM},
    {"number-file", by_number_file, 1, 0, SOCK_STREAM},
    {"number-pipe", by_number_pipe, 0, 0, SOCK_STREAM},
};

static double used(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    size_t way = 0;
    while (way < sizeof ways / sizeof *ways && strcmp(ways[way].name, argv[1])) way++;
    if (argc != 4 || way == sizeof ways / sizeof *ways) return 2;
    buffer = calloc(1, LARGE);
    way_up = ways[way].up;
    int six = strchr(argv[2], ':') != NULL;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2] + six))};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = four.sin_port};
    inet_pton(AF_INET, "127.0.0.1", &four.sin_addr);
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    sock = socket(six ? AF_INET6 : AF_INET, ways[way].kind, 0);
    if (six ? connect(sock, (void *)&mapped, sizeof mapped) : connect(sock, (void *)&four, sizeof four))
        return 3;
    if (ways[way].no_block) no_block(sock);
    /* Without what the start took, which is the machine's. */
    double begun = now(), before = used(), seconds = atof(argv[3]);
    long moved = 0, failures = 0;
    while (now() - begun < seconds && failures < 3) {
        ssize_t part = ways[way].step();
        if (part == -2) continue;
        if (part <= 0) failures++; else moved += part, failures = 0;
    }
    printf("%ld %.3f %ld %.0f\n", moved, now() - begun, told, (used() - before) * 1000);
    return 0;
}
