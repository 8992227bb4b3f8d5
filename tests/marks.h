/* SPDX-License-Identifier: Apache-2.0 */
/* marks.h - ranks that wait for each other by files in scratch(), not by the group under test. */
#ifndef TESTS_COLLECTIVES_MARKS_H
#define TESTS_COLLECTIVES_MARKS_H

#include "tests/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void path_of(char *path, size_t size, const char *what, int rank)
{
    snprintf(path, size, "%s/%s.%s.%d", scratch(), what,
             getenv("CT_LINK") ? getenv("CT_LINK") : "shm", rank);
}

static inline void mark(const char *what, int rank)
{
    char path[128];

    path_of(path, sizeof path, what, rank);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static inline int has_mark(const char *what, int rank)
{
    char path[128];

    path_of(path, sizeof path, what, rank);
    return access(path, F_OK) == 0;
}

/* A mark that says a number, to who awaited it. */
static inline void mark_number(const char *what, int rank, long number)
{
    char path[128], whole[160];
    FILE *file;

    path_of(path, sizeof path, what, rank);
    snprintf(whole, sizeof whole, "%s.part", path);
    file = fopen(whole, "we");
    if (file) {
        fprintf(file, "%ld\n", number);
        fclose(file);
        rename(whole, path);
    }
}

static inline long number_of_mark(const char *what, int rank)
{
    char path[128];
    FILE *file;
    long number = 0;

    path_of(path, sizeof path, what, rank);
    file = fopen(path, "re");
    if (!file || fscanf(file, "%ld", &number) != 1)
        number = 0;
    if (file)
        fclose(file);
    return number;
}

static inline void await(const char *what, int rank)
{
    char path[128];

    path_of(path, sizeof path, what, rank);
    while (access(path, F_OK) != 0)
        nap(2);
}

/* Nobody leaves before everybody came here; the group itself is broken. */
static inline void all_marked(const ct_group *group, const char *what)
{
    mark(what, ct_rank(group));
    for (int r = 0; r < ct_size(group); r++)
        await(what, r);
}

#endif
