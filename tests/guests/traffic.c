/* traffic WAY: calls on sockets in one way; prints what a program can see of them. */
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>

#include "guest.h"

#define PAGE 4096
#define PIPE 65536
#define LARGE (1 << 20)

/* Memory of this size at whose end nothing can be read. */
static unsigned char *at_edge(size_t size) {
    unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    return pages + PAGE - size;
}

ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

/* A source address that is longer than the room for it, which the kernel cuts, but whose whole length it tells. */
static void cut_sources(void) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof own;
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    SAY(bind(sock, (void *)&own, size));
    getsockname(sock, (void *)&own, &size);
    for (socklen_t room = 0; room <= sizeof own; room++) {
        unsigned char byte, *source = at_edge(room);
        for (int message = 0; message < 4; message++) sendto(sock, "x", 1, 0, (void *)&own, sizeof own);
        socklen_t length = room;
        SAY(recvfrom(sock, &byte, 1, 0, (void *)source, &length));
        SAY(length);
        length = room;
        SAY(__recvfrom_chk(sock, &byte, 1, 1, 0, (void *)source, &length));
        struct iovec part = {&byte, 1};
        struct mmsghdr many = {{source, room, &part, 1, NULL, 0, 0}, 0};
        SAY(recvmsg(sock, &many.msg_hdr, 0));
        SAY(many.msg_hdr.msg_namelen);
        many.msg_hdr.msg_namelen = room;
        SAY(recvmmsg(sock, &many, 1, 0, NULL));
        SAY(many.msg_hdr.msg_namelen);
    }
}

/* Both ends of a TCP connection within the machine. */
static void connect_ends(int ends[2]) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof own;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&own, size);
    listen(listener, 1);
    getsockname(listener, (void *)&own, &size);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    SAY(connect(ends[0], (void *)&own, size));
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
}

static unsigned char large[LARGE];

static void *drain(void *end) {
    static char to[65536];
    while (recv(*(int *)end, to, sizeof to, 0) > 0) continue;
    return NULL;
}

/* The kernel numbers calls that copy nothing, and a program counts its own. */
static void say_uncopied(int sock) {
    struct pollfd errors = {sock, 0, 0};
    unsigned last = UNTOUCHED;
    while (poll(&errors, 1, last == UNTOUCHED ? 5000 : 500) == 1) {
        union {
            struct cmsghdr header;
            char room[200];
        } control;
        struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(sock, &header, MSG_ERRQUEUE) < 0) break;
        last = ((struct sock_extended_err *)CMSG_DATA(&control.header))->ee_data;
    }
    printf("the last call that copied nothing is number %u\n", last);
}

static void without_copies(void) {
    int ends[2], one = 1;
    connect_ends(ends);
    pthread_t reader;
    pthread_create(&reader, NULL, drain, &ends[1]);
    SAY(setsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
    SAY(send(ends[0], large, LARGE, MSG_ZEROCOPY));
    say_uncopied(ends[0]);
    struct iovec parts[2] = {{large, LARGE / 2}, {large + LARGE / 2, LARGE / 2}};
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
    SAY(sendmsg(ends[0], &header, MSG_ZEROCOPY));
    say_uncopied(ends[0]);
    close(ends[0]);
    pthread_join(reader, NULL);
}

/* A socket that one instance waits for is added to a second one just when it is not ready. */
static void register_twice(unsigned kind) {
    int ends[2], all = LARGE / 4;
    connect_ends(ends);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    int first = epoll_create1(0), second = epoll_create1(0);
    struct epoll_event in = {EPOLLIN | kind, {.u64 = 1}}, out = {EPOLLOUT, {.u64 = 2}}, got;
    SAY(epoll_ctl(first, EPOLL_CTL_ADD, ends[0], &in));
    SAY(send(ends[1], large, all, 0));
    long received = 0, once = 0;
    while (received <= all && epoll_wait(first, &got, 1, 3000) == 1) {
        ssize_t part;
        while ((part = recv(ends[0], large, 10000, 0)) > 0) received += part;
        if (!once++) {
            SAY(epoll_ctl(second, EPOLL_CTL_ADD, ends[0], &out));
            SAY(send(ends[1], large, 1, 0));
        }
    }
    printf("received %ld of %d\n", received, all + 1);
    SAY(epoll_wait(second, &got, 1, 1000));
}

static void two_instances(void) {
    register_twice(0);
    register_twice(EPOLLET);
}

/* A pipe that is empty, or full, after a part ends a call: none waits for more. */
static void pipes_end_calls(void) {
    int ends[2], pipes[2];
    connect_ends(ends);
    pipe(pipes);
    alarm(10);
    SAY(write(pipes[1], large, 8192));
    SAY(splice(pipes[0], NULL, ends[0], NULL, LARGE, 0));
    SAY(send(ends[1], large, 3 * PIPE, 0));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    SAY(splice(ends[0], NULL, pipes[1], NULL, LARGE, 0) > 0);
}

/* A message of a local socket is one write, and so is a command to the kernel, of which this one takes the beginning. */
static void long_messages(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    SAY(write(ends[0], large, 200000));
    SAY(recv(ends[1], large, LARGE, MSG_DONTWAIT));
    SAY(recv(ends[1], large, LARGE, MSG_DONTWAIT));
    for (size_t at = 0; at < LARGE; at += 8) memcpy(large + at, at < 1000 ? "beginning" : "rest....", 8);
    int name = open("/proc/self/comm", O_RDWR);
    SAY(write(name, large, 200000));
    char now[20] = "";
    SAY(pread(name, now, sizeof now - 1, 0));
    printf("named %s", now);
}

/* A second has so many parts; select(2) alone takes more. */
static void wrong_times(void) {
    struct timespec second = {0, 1000000000};
    struct timeval long_one = {0, 1500000};
    struct epoll_event event;
    SAY(ppoll(NULL, 0, &second, NULL));
    SAY(pselect(0, NULL, NULL, NULL, &second, NULL));
    SAY(epoll_pwait2(epoll_create1(0), &event, 1, &second, NULL));
    SAY(select(0, NULL, NULL, NULL, &long_one));
}

static const struct {
    const char *name;
    void (*go)(void);
} ways[] = {
    {"cut-sources", cut_sources},
    {"without-copies", without_copies},
    {"two-instances", two_instances},
    {"pipes", pipes_end_calls},
    {"long-messages", long_messages},
    {"wrong-times", wrong_times},
};

int main(int argc, char **argv) {
    for (size_t way = 0; argc == 2 && way < sizeof ways / sizeof *ways; way++)
        if (strcmp(ways[way].name, argv[1]) == 0) return ways[way].go(), 0;
    return 2;
}
