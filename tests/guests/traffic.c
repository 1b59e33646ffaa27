/* traffic WAY: calls on sockets in one way; prints what a program can see of them. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "guest.h"

#define PAGE 4096

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

static const struct {
    const char *name;
    void (*go)(void);
} ways[] = {
    {"cut-sources", cut_sources},
};

int main(int argc, char **argv) {
    for (size_t way = 0; argc == 2 && way < sizeof ways / sizeof *ways; way++)
        if (strcmp(ways[way].name, argv[1]) == 0) return ways[way].go(), 0;
    return 2;
}
