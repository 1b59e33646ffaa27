/*
 * Finds duplicate files, politely: a small Groveler (MS Manners, section 8).
 *
 *     gcc duplicates.c $(pkg-config --cflags --libs discnice) -pthread -o duplicates
 *     ./duplicates /home /data
 *
 * One thread for each directory given; say one a disk. Each reports two metrics, the count of read
 * operations and the bytes read, and declares its disk as its own resource, so that threads on
 * different disks run side by side. Prints one line for each duplicate: it, a tab, and the
 * file that it equals in size and 128-bit hash.
 */
#define _XOPEN_SOURCE 700
#include <discnice.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 128 * 1024, BUCKETS = 1 << 16, MOST_THREADS = 32 };

struct hash { uint64_t low, high; };

struct seen {
    struct hash hash;
    off_t size;
    char *path;
    struct seen *next;
};

static struct seen *table[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static int failed;

/* The testpoint's metrics of this thread: read operations and bytes. */
static _Thread_local double progress[2];
static _Thread_local int thread_number;
static _Thread_local char *block;

static void hash_block(struct hash *hash, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        hash->low = (hash->low ^ (unsigned char)bytes[i]) * 0x100000001b3u;
        hash->high = (hash->high + (unsigned char)bytes[i]) * 0x9e3779b97f4a7c15u;
    }
}

static int hash_file(const char *path, struct hash *hash)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return -1;
    *hash = (struct hash){0xcbf29ce484222325u, 0};
    while ((got = read(fd, block, BLOCK)) > 0) {
        hash_block(hash, block, (size_t)got);
        progress[0] += 1;
        progress[1] += (double)got;
        discnice_testpoint(thread_number, 2, progress);
    }
    close(fd);
    return got < 0 ? -1 : 0;
}

/* Prints the path if its contents were seen before, and remembers them otherwise. */
static void look_up(const char *path, off_t size, struct hash hash)
{
    struct seen **bucket = &table[(hash.low ^ (uint64_t)size) % BUCKETS];
    struct seen *seen;

    pthread_mutex_lock(&table_lock);
    for (seen = *bucket; seen; seen = seen->next)
        if (seen->size == size && seen->hash.low == hash.low && seen->hash.high == hash.high)
            break;
    if (seen) {
        printf("%s\t%s\n", path, seen->path);
    } else if ((seen = malloc(sizeof *seen)) && (seen->path = strdup(path))) {
        seen->hash = hash;
        seen->size = size;
        seen->next = *bucket;
        *bucket = seen;
    } else {
        free(seen);
        failed = 1;
    }
    pthread_mutex_unlock(&table_lock);
}

static int visit(const char *path, const struct stat *found, int kind, struct FTW *where)
{
    struct hash hash;

    (void)where;
    if (kind != FTW_F || !S_ISREG(found->st_mode) || found->st_size == 0)
        return 0;
    if (hash_file(path, &hash) == 0)
        look_up(path, found->st_size, hash);
    else
        fprintf(stderr, "duplicates: %s: %s\n", path, strerror(errno));
    return 0;
}

struct task { const char *directory; int number; };

static void *search(void *argument)
{
    const struct task *task = argument;
    struct stat found;

    thread_number = task->number;
    block = malloc(BLOCK);
    if (!block || stat(task->directory, &found) != 0 ||
        (discnice_set_resources(1ull << (found.st_dev % 64)),
         nftw(task->directory, visit, 64, FTW_PHYS)) != 0) {
        fprintf(stderr, "duplicates: %s: %s\n", task->directory, strerror(errno));
        failed = 1;
    }
    free(block);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST_THREADS];
    struct task tasks[MOST_THREADS];
    int count = argc - 1;

    if (count < 1 || count > MOST_THREADS) {
        fprintf(stderr, "usage: duplicates DIRECTORY...   (one thread each, at most %d)\n", MOST_THREADS);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        tasks[i] = (struct task){argv[i + 1], i};
        if (pthread_create(&threads[i], NULL, search, &tasks[i]) != 0) {
            fprintf(stderr, "duplicates: cannot start a thread\n");
            return 1;
        }
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return failed;
}
