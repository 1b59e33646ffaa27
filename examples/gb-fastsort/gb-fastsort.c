/*
 * Sorts records of 100 bytes from a file into another one, in two passes:
 * gb-fastsort INPUT OUTPUT [LEAST MOST]
 *
 * The first pass reads the input, the cached parts first, into as much memory as is really there
 * (from LEAST to MOST bytes; 1 MB to the size of the input), sorts it and writes it out as a run; the
 * second one merges the runs. Between runs the memory is given back, so that several sorts share what
 * there is.
 *
 *     gcc gb-fastsort.c $(pkg-config --cflags --libs discnice) -o gb-fastsort
 */
#define _GNU_SOURCE
#include <discnice.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 100 };

/* A sorted run in a file without a name, and its least record that is not yet merged. */
struct run {
    FILE *file;
    unsigned char next[RECORD];
};

static const char *output;

static void fail(const char *what)
{
    fprintf(stderr, "gb-fastsort: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int compare(const void *one, const void *other)
{
    return memcmp(one, other, RECORD);
}

/* Memory that is there; waits for it in growing pauses. */
static unsigned char *wait_for_memory(size_t least, size_t most, size_t *bytes)
{
    struct timespec pause = {0, 10000000};

    for (;;) {
        unsigned char *memory = discnice_gb_alloc(least, most, RECORD, bytes);
        if (memory != NULL)
            return memory;
        if (errno != EAGAIN)
            fail("memory");
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 500000000)
            pause.tv_nsec *= 2;
    }
}

/* Writes sorted records into a file beside the output that has no name. */
static struct run write_run(unsigned char *records, size_t bytes)
{
    struct run run;
    char *name;
    int fd;

    if (asprintf(&name, "%s.run-XXXXXX", output) < 0)
        fail("memory");
    fd = mkstemp(name);
    if (fd < 0 || unlink(name) != 0)
        fail(name);
    free(name);
    run.file = fdopen(fd, "w+");
    if (run.file == NULL)
        fail("a run");
    qsort(records, bytes / RECORD, RECORD, compare);
    if (fwrite(records, 1, bytes, run.file) != bytes || fflush(run.file) != 0)
        fail("a run");
    rewind(run.file);
    return run;
}

/* Reads the whole of what is asked for. */
static void read_all(int input, unsigned char *to, size_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        ssize_t got = pread(input, to, bytes, (off_t)offset);
        if (got <= 0) {
            errno = got == 0 ? EIO : errno;
            fail("input");
        }
        to += got;
        bytes -= (size_t)got;
        offset += (uint64_t)got;
    }
}

/* The first pass: the parts of the input in best order, sorted by memory's fill. */
static size_t make_runs(int input, const DiscnicePiece *pieces, size_t count, size_t least,
                        size_t left, size_t most, struct run **runs)
{
    size_t made = 0, room = 0, filled = 0, at = 0;
    uint64_t done = 0;
    unsigned char *memory = NULL;

    *runs = NULL;
    while (at < count) {
        size_t bytes;
        if (memory == NULL) {
            size_t wanted = left < most ? left : most;
            memory = wait_for_memory(least < wanted ? least : wanted, wanted, &room);
            filled = 0;
        }
        bytes = (size_t)(pieces[at].length - done);
        bytes = bytes < room - filled ? bytes : room - filled;
        read_all(input, memory + filled, bytes, pieces[at].offset + done);
        filled += bytes;
        done += bytes;
        left -= bytes;
        if (done == pieces[at].length) {
            at++;
            done = 0;
        }
        if (filled == room || at == count) {
            *runs = realloc(*runs, (made + 1) * sizeof **runs);
            if (*runs == NULL)
                fail("memory");
            (*runs)[made++] = write_run(memory, filled);
            discnice_gb_free(memory);
            memory = NULL;
        }
    }
    return made;
}

/* Whether the run goes on. */
static int advance(struct run *run)
{
    if (fread(run->next, RECORD, 1, run->file) == 1)
        return 1;
    if (ferror(run->file))
        fail("a run");
    fclose(run->file);
    return 0;
}

/* The second pass. */
static void merge(struct run *runs, size_t count)
{
    FILE *out = fopen(output, "w");
    size_t at;

    if (out == NULL)
        fail(output);
    for (at = 0; at < count;)
        if (advance(&runs[at]))
            at++;
        else
            runs[at] = runs[--count];
    while (count > 0) {
        size_t least = 0;
        for (at = 1; at < count; at++)
            if (compare(runs[at].next, runs[least].next) < 0)
                least = at;
        if (fwrite(runs[least].next, RECORD, 1, out) != 1)
            fail(output);
        if (!advance(&runs[least]))
            runs[least] = runs[--count];
    }
    if (fclose(out) != 0)
        fail(output);
}

int main(int count, char **words)
{
    const char *paths[1];
    DiscnicePiece *pieces;
    struct run *runs;
    struct stat status;
    size_t planned, least, most, made;
    int input, error;

    if (count != 3 && count != 5) {
        fprintf(stderr, "usage: gb-fastsort INPUT OUTPUT [LEAST MOST]\n");
        return 2;
    }
    output = words[2];
    input = open(words[1], O_RDONLY);
    if (input < 0 || fstat(input, &status) != 0)
        fail(words[1]);
    if (status.st_size % RECORD != 0) {
        fprintf(stderr, "gb-fastsort: %s: not a whole number of records of %d bytes\n", words[1], RECORD);
        return 1;
    }
    most = count == 5 ? strtoull(words[4], NULL, 10) : (size_t)status.st_size;
    least = count == 5 ? strtoull(words[3], NULL, 10) : 1000000;
    most -= most % RECORD;
    if (least < RECORD || most < least) {
        least = RECORD;
        most = most < RECORD ? RECORD : most;
    }
    paths[0] = words[1];
    /* The one line that makes it a gray-box sort: parts of whole records, the cached ones first. */
    error = discnice_plan(paths, 1, 0, RECORD, &pieces, &planned);
    if (error != 0) {
        errno = -error;
        fail(words[1]);
    }
    made = make_runs(input, pieces, planned, least, (size_t)status.st_size, most, &runs);
    free(pieces);
    close(input);
    merge(runs, made);
    free(runs);
    return 0;
}
