/* Mounts a file system of its own (FUSE) on a folder and serves it until it is killed: any name is a file of 64 MiB that reads
 * as zeroes and takes whatever is written. fuse(4) */
#include <linux/fuse.h>
#include <sys/mount.h>

#include "guest.h"

enum { SIZE = 64 << 20, LARGEST = 128 << 10 };

/* Without times: the kernel asks again for what it was told. */
union answer {
    struct fuse_init_out init;
    struct fuse_entry_out entry;
    struct fuse_attr_out attr;
    struct fuse_open_out open;
    struct fuse_write_out write;
    struct fuse_statfs_out statfs;
    char data[LARGEST];
};

static struct fuse_attr attributes(uint64_t node) {
    mode_t mode = node == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0777;
    return (struct fuse_attr){.ino = node, .size = SIZE, .mode = mode, .nlink = 1, .blksize = 4096};
}

/* The length of the answer to a request with these words behind its header, or a negative error. */
static long answer(const struct fuse_in_header *in, const void *words, union answer *out) {
    switch (in->opcode) {
    case FUSE_INIT:
        out->init = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION,
                                           .minor = FUSE_KERNEL_MINOR_VERSION,
                                           .max_readahead = LARGEST,
                                           .max_write = LARGEST};
        return sizeof out->init;
    case FUSE_LOOKUP:
        out->entry.nodeid = FUSE_ROOT_ID + *(const unsigned char *)words;
        out->entry.attr = attributes(out->entry.nodeid);
        return sizeof out->entry;
    case FUSE_GETATTR:
    case FUSE_SETATTR: out->attr.attr = attributes(in->nodeid); return sizeof out->attr;
    case FUSE_OPEN:
    case FUSE_OPENDIR: return sizeof out->open;
    case FUSE_READ: return ((const struct fuse_read_in *)words)->size;
    case FUSE_WRITE:
        out->write.size = ((const struct fuse_write_in *)words)->size;
        return sizeof out->write;
    case FUSE_STATFS: return sizeof out->statfs;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_UNLINK: return 0;
    default: return -ENOSYS;
    }
}

int main(int count, char **arguments) {
    static char request[LARGEST + 4096] __attribute__((aligned(8)));
    const struct fuse_in_header *in = (const void *)request;
    static union answer out;
    char options[128];
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (count < 2 || mount("serving", arguments[1], "fuse", MS_NOSUID | MS_NODEV, options)) return 1;
    puts("ready");
    fflush(stdout);
    while (read(device, request, sizeof request) > 0) {
        if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT) continue;
        memset(&out, 0, sizeof out);
        long length = answer(in, in + 1, &out);
        struct fuse_out_header head = {.unique = in->unique, .error = length < 0 ? length : 0};
        head.len = sizeof head + (length < 0 ? 0 : length);
        struct iovec parts[] = {{&head, sizeof head}, {&out, head.len - sizeof head}};
        writev(device, parts, 2);
    }
    return 0;
}
