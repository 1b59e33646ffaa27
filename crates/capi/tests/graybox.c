/* The gray-box functions as a C program uses them: FILE OTHER, two files that exist. */
#include <discnice.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void cached(const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat status;
    DiscniceRegion few[1], *all;
    size_t count = 99, again, at;
    uint64_t covered = 0;
    int means;

    assert(fd >= 0 && fstat(fd, &status) == 0);
    means = discnice_residency(fd, NULL, 0, &count);
    assert(means >= DISCNICE_CACHESTAT && means <= DISCNICE_UNKNOWN);
    all = calloc(count, sizeof *all);
    assert(discnice_residency(fd, all, count, &again) == means && again <= count);
    for (at = 0; at < again; at++) {
        assert(all[at].offset == covered && all[at].cached_bytes <= all[at].length);
        covered += all[at].length;
    }
    assert(covered == (uint64_t)status.st_size);
    assert(discnice_residency(fd, few, 1, &again) == means && again <= count);
    assert(discnice_residency(fd, few, 1, NULL) == -EINVAL);
    close(fd);
    count = 7;
    assert(discnice_residency(fd, NULL, 0, &count) == -EBADF && count == 7);
    assert(discnice_residency(-1, NULL, 0, &count) == -EINVAL);
    free(all);
}

static void ordered(const char *one, const char *two)
{
    const char *paths[] = {one, "/nowhere/at/all", two};
    size_t order[3], count = 9;
    int by;

    for (by = DISCNICE_BY_CACHED; by <= DISCNICE_BY_COMPOSE; by++) {
        assert(discnice_order(paths, 3, by, order, &count) == 0 && count == 2);
        assert(order[0] + order[1] == 2 && order[0] != 1);
    }
    assert(discnice_order(paths, 3, 17, order, &count) == -EINVAL);
    assert(discnice_order(NULL, 1, 0, order, &count) == -EINVAL);
    assert(discnice_order(NULL, 0, 0, NULL, &count) == 0 && count == 0);
}

static void planned(const char *one, const char *two)
{
    const char *paths[] = {one, "/nowhere/at/all", two};
    DiscnicePiece *pieces = NULL;
    size_t count = 9, at;
    uint64_t bytes = 0;

    assert(discnice_plan(paths, 3, 1000000, 100, &pieces, &count) == 0 && count == 4);
    for (at = 0; at < count; at++) {
        assert(pieces[at].file != 1 && pieces[at].cached_bytes <= pieces[at].length);
        assert(pieces[at].offset % 100 == 0);
        bytes += pieces[at].length;
    }
    /* Less than a record, and so last. */
    assert(pieces[3].file == 2 && pieces[3].length == 10 && bytes == 3000010);
    /* The same parts, given in any order, are ordered alike; what is beyond the end is cut off. */
    pieces[3].length = 1000;
    pieces[0].cached_bytes = 7;
    assert(discnice_order_pieces(paths, 3, pieces, &count) == 0 && count == 4);
    for (at = 0, bytes = 0; at < count; at++)
        bytes += pieces[at].length;
    assert(bytes == 3000010);
    pieces[1].offset = 1 << 30;
    assert(discnice_order_pieces(paths, 3, pieces, &count) == 0 && count == 3);
    pieces[0].file = 3;
    assert(discnice_order_pieces(paths, 3, pieces, &count) == -EINVAL && count == 3);
    assert(discnice_order_pieces(paths, 3, NULL, &count) == -EINVAL);
    assert(discnice_order_pieces(paths, 3, pieces, NULL) == -EINVAL);
    count = 0;
    assert(discnice_order_pieces(NULL, 0, NULL, &count) == 0 && count == 0);
    free(pieces);
    assert(discnice_plan(paths, 0, 0, 0, &pieces, &count) == 0 && count == 0 && pieces == NULL);
    count = 7;
    assert(discnice_plan(paths, 1, 0, 0, NULL, &count) == -EINVAL && count == 7);
    assert(discnice_plan(NULL, 1, 0, 0, &pieces, &count) == -EINVAL && count == 7);
}

static void allocated(void)
{
    size_t bytes = 5, at;
    unsigned char *memory = discnice_gb_alloc(1 << 20, 8 << 20, 1 << 20, &bytes);

    assert(memory != NULL && bytes >= 1 << 20 && bytes <= 8 << 20 && bytes % (1 << 20) == 0);
    for (at = 0; at < bytes; at += 4096)
        assert(memory[at] == 0);
    memset(memory, 7, bytes);
    discnice_gb_free(memory);
    discnice_gb_free(NULL);
    discnice_gb_free(&bytes);
    errno = 0;
    assert(discnice_gb_alloc(2, 1, 1, &bytes) == NULL && errno == EINVAL);
    assert(discnice_gb_alloc((size_t)1 << 50, (size_t)1 << 51, 1, &bytes) == NULL && errno == EAGAIN);
    assert(discnice_gb_alloc(1, 1, 1, NULL) == NULL && errno == EINVAL);
}

int main(int count, char **words)
{
    assert(count == 3);
    cached(words[1]);
    ordered(words[1], words[2]);
    planned(words[1], words[2]);
    allocated();
    return 0;
}
