/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.h - the same line of many workers, shown once.
 *
 * A line waits FOLD_MS for the others to write the same, at most: it leaves as
 * soon as each of them has, or has written something after it, or can't write any
 * more.  So one worker alone is never delayed.  What a worker wrote stays in order. */
#ifndef LAUNCHER_STDIO_LINE_DEDUP_H
#define LAUNCHER_STDIO_LINE_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#define FOLD_MS 50

struct fold_line;

/* workers: a bit for each that wrote it. */
typedef void fold_emit(void *arg, int to, const unsigned char *workers, const char *text,
                       size_t size);

struct fold {
    int size;
    struct fold_worker {
        int streams;     /* open ones */
        uint64_t newest; /* the newest held line that it wrote */
    } * workers;
    struct fold_line *first, *last;
    int held;
    uint64_t numbered; /* lines so far; the first is 1 */
    fold_emit *emit;
    void *arg;
};

/* For workers 0 to size-1.  0, or -1: out of memory. */
int fold_start(struct fold *fold, int size, fold_emit *emit, void *arg);
void fold_free(struct fold *fold); /* what is held is shown first */

/* A stream of this worker begins, ends. */
void fold_opened(struct fold *fold, int worker);
void fold_closed(struct fold *fold, int worker);

/* A whole line, at a time in ms. */
void fold_add(struct fold *fold, int worker, int to, const char *text, size_t size, int64_t now);

/* When fold_expire() is needed next; -1: nothing is held. */
int64_t fold_due(const struct fold *fold);
void fold_expire(struct fold *fold, int64_t now);
void fold_flush(struct fold *fold);

#endif
