/*
 * grep for a word in files, the cached ones first: gb-grep WORD FILE...
 *
 * Of data that is larger than memory, a run in the usual order throws out what the next would have
 * found in the cache. This one begins with what is there, so lines come in that order, and not in that
 * of the arguments.
 *
 *     gcc gb-grep.c $(pkg-config --cflags --libs discnice) -o gb-grep
 *
 * Exit status as grep's: 0 if a line was found, 1 if none, 2 if a file could not be read.
 */
#define _GNU_SOURCE
#include <discnice.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Prints the lines of a file that contain the word; whether there were any, or -1. */
static int search(const char *word, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, length = strlen(word);
    ssize_t got;
    int found = 0;

    if (file == NULL) {
        fprintf(stderr, "gb-grep: %s: %s\n", path, strerror(errno));
        return -1;
    }
    while ((got = getline(&line, &room, file)) > 0) {
        if (memmem(line, (size_t)got, word, length) == NULL)
            continue;
        found = 1;
        printf("%s:", path);
        fwrite(line, 1, (size_t)got, stdout);
        if (line[got - 1] != '\n')
            putchar('\n');
    }
    if (ferror(file)) {
        fprintf(stderr, "gb-grep: %s: %s\n", path, strerror(errno));
        found = -1;
    }
    free(line);
    fclose(file);
    return found;
}

int main(int count, char **words)
{
    size_t files = count > 2 ? (size_t)count - 2 : 0, ordered = 0, at;
    const char *const *paths = (const char *const *)words + 2;
    size_t *order;
    bool *known;
    int found = 0, failed = 0;

    if (files == 0) {
        fprintf(stderr, "usage: gb-grep WORD FILE...\n");
        return 2;
    }
    order = calloc(files, sizeof *order);
    known = calloc(files, sizeof *known);
    if (order == NULL || known == NULL)
        return 2;
    /* The three lines that make it a gray-box grep. */
    discnice_order(paths, files, DISCNICE_BY_COMPOSE, order, &ordered);
    for (at = 0; at < ordered; at++)
        known[order[at]] = true;
    /* Those that were left out come last, and say why. */
    for (at = 0; at < files; at++)
        if (!known[at])
            order[ordered++] = at;
    for (at = 0; at < ordered; at++) {
        int result = search(words[1], paths[order[at]]);
        found |= result > 0;
        failed |= result < 0;
    }
    free(known);
    free(order);
    return failed || fflush(stdout) != 0 ? 2 : !found;
}
