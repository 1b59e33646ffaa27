// A cancelled thread's C++ destructors run, through the frames of a hook.
#include <cstdio>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <csetjmp>
#include <cstdlib>
#include <dirent.h>
#include <ftw.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends[2];
static sem_t ready;

struct Noisy {
    const char *name;
    ~Noisy() { printf("destroyed %s\n", name); fflush(stdout); }
};

static void deep(int how) {
    Noisy inner{"inner"};
    char byte;
    struct iovec v = {&byte, 1};
    sem_post(&ready);
    switch (how) {
    case 0: read(ends[0], &byte, 1); break;
    case 1: readv(ends[0], &v, 1); break;
    case 2: open("fifo", O_RDONLY); break;
    case 3: fcntl(ends[0], F_SETLKW, nullptr); pause(); break;
    case 4: (void)!system("sleep 100"); break;
    case 5: { FILE *stream = fdopen(ends[0], "r"); getc(stream); break; }
    }
    printf("not reached\n");
}

static void *thread(void *how) {
    Noisy outer{"outer"};
    deep((int)(long)how);
    return nullptr;
}

static int compare(const void *, const void *) { throw std::runtime_error("thrown"); }

static int refuse(const struct dirent *) { throw std::runtime_error("a filter"); }

static jmp_buf back;

static int leave(const char *, const struct stat *, int, struct FTW *) { longjmp(back, 1); }

/* At its first entry, walks once more, and leaves that walk. */
static int walk_again(const char *path, const struct stat *, int, struct FTW *) {
    static volatile int visits = 0;
    if (++visits == 1 && !setjmp(back)) nftw(path, leave, 4, FTW_PHYS);
    return visits == 3;
}

int main() {
    sem_init(&ready, 0, 0);
    (void)!pipe(ends);
    (void)!system("mkfifo fifo");
    for (long how = 0; how < 6; how++) {
        pthread_t one;
        void *result = nullptr;
        pthread_create(&one, nullptr, thread, (void *)how);
        sem_wait(&ready);
        usleep(100000);
        pthread_cancel(one);
        pthread_join(one, &result);
        printf("%ld: cancelled %d\n", how, result == PTHREAD_CANCELED);
        fflush(stdout);
    }
    int numbers[2] = {1, 2};
    try { qsort(numbers, 2, sizeof *numbers, compare); } catch (std::exception &error) { puts(error.what()); }
    struct dirent **entries;
    try { scandirat(AT_FDCWD, "/", &entries, refuse, nullptr); } catch (std::exception &error) { puts(error.what()); }
    printf("a walk: %d\n", nftw("/etc", walk_again, 4, FTW_PHYS));
    return 0;
}
