/* Threads with the smallest stacks do every kind of I/O; a cancelled one runs its handlers. */
#include "guest.h"
#include <semaphore.h>

#define THREADS 8

static char shared[THREADS][100000];

static void *work(void *argument) {
    long number = (long)argument;
    char path[20], *data = shared[number];
    snprintf(path, sizeof path, "t%ld", number);
    long good = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct iovec v[2] = {{data, 50000}, {data + 50000, 50000}};
    for (int round = 0; round < 10; round++) {
        good += write(fd, data, 100000) == 100000;
        good += pwritev(fd, v, 2, 0) == 100000;
        good += pread(fd, data, 100000, 0) == 100000;
        good += preadv(fd, v, 2, 0) == 100000;
        off_t at = 0;
        int to = open("/dev/null", O_WRONLY);
        good += sendfile(to, fd, &at, 100000) == 100000;
        good += close(to) == 0;
        good += fsync(fd) == 0;
    }
    good += close(fd) == 0;
    pid_t child;
    char *arguments[] = {"true", NULL};
    char *environment[] = {NULL};
    good += posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment) == 0;
    good += waitpid(child, NULL, 0) == child;
    return (void *)good;
}

static int ends[2];
static sem_t ready;

static void clean(void *argument) { printf("cleanup %s\n", (char *)argument); }

static void *blocked(void *argument) {
    char byte;
    pthread_cleanup_push(clean, "outer");
    pthread_cleanup_push(clean, "inner");
    sem_post(&ready);
    if (argument) {
        struct iovec v = {&byte, 1};
        readv(ends[0], &v, 1);
    } else {
        read(ends[0], &byte, 1);
    }
    printf("not reached\n");
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *writing(void *argument) {
    static char data[1 << 20];
    (void)argument;
    pthread_cleanup_push(clean, "writer");
    sem_post(&ready);
    while (write(ends[1], data, sizeof data) >= 0) {}
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void *(*function)(void *), void *argument) {
    pthread_t one;
    void *result = NULL;
    pthread_create(&one, NULL, function, argument);
    sem_wait(&ready);
    usleep(20000);
    pthread_cancel(one);
    pthread_join(one, &result);
    printf("cancelled: %d\n", result == PTHREAD_CANCELED);
}

static void *exits(void *argument) {
    (void)argument;
    char data[100];
    read(open("t0", O_RDONLY), data, sizeof data);
    pthread_exit((void *)5);
}

int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    pthread_t threads[THREADS];
    for (long at = 0; at < THREADS; at++) pthread_create(&threads[at], &small, work, (void *)at);
    for (int at = 0; at < THREADS; at++) {
        void *good;
        pthread_join(threads[at], &good);
        printf("thread %d: %ld good\n", at, (long)good);
    }
    sem_init(&ready, 0, 0);
    pipe(ends);
    cancel(blocked, NULL);
    cancel(blocked, ends);
    cancel(writing, NULL);
    pthread_t one;
    void *result;
    pthread_create(&one, NULL, exits, NULL);
    pthread_join(one, &result);
    printf("exited with %ld\n", (long)result);
    for (int at = 0; at < 300; at++) {
        pthread_create(&one, &small, exits, NULL);
        pthread_join(one, NULL);
    }
    say_file("t7");
    return 0;
}
