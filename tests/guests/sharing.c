/* Threads that read and write files of their own, and share nothing but what they are joined by.
 *
 * sharing FOLDER: four threads write and read 200 blocks each, by read(2) and by streams.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

static void *work(void *number)
{
    char name[4096], block[4096];
    snprintf(name, sizeof name, "%s/file-%ld", folder, (long)number);
    memset(block, 7, sizeof block);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    for (int at = 0; at < 200; at++) {
        pwrite(fd, block, sizeof block, at * 4096L);
        pread(fd, block, sizeof block, at * 4096L);
    }
    close(fd);
    FILE *stream = fopen(name, "r");
    while (fread(block, 1, sizeof block, stream) > 0)
        ;
    fclose(stream);
    unlink(name);
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[4];
    folder = count > 1 ? words[1] : ".";
    for (long number = 0; number < 4; number++)
        pthread_create(&threads[number], NULL, work, (void *)number);
    for (int number = 0; number < 4; number++)
        pthread_join(threads[number], NULL);
    return 0;
}
