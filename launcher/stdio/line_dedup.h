/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.h - the same line of many workers, shown once.
 *
 * A line waits DEDUP_MS for the others to write the same, at most: it leaves as
 * soon as each of them has, or has written something after it, or can't write any
 * more.  So one worker alone is never delayed.  What a worker wrote stays in order. */
#ifndef LAUNCHER_STDIO_LINE_DEDUP_H
#define LAUNCHER_STDIO_LINE_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#define DEDUP_MS 50

struct dedup_line;

/* workers: a bit for each that wrote it. */
typedef void dedup_emit(void *arg, int to, const unsigned char *workers, const char *text,
                        size_t size);

struct line_dedup {
    int size;
    struct dedup_worker {
        int streams;     /* open ones */
        uint64_t newest; /* the newest held line that it wrote */
    } * workers;
    struct dedup_line *first, *last;
    int held;
    uint64_t numbered; /* lines so far; the first is 1 */
    dedup_emit *emit;
    void *arg;
};

/* For workers 0 to size-1.  0, or -1: out of memory. */
int line_dedup_start(struct line_dedup *dedup, int size, dedup_emit *emit, void *arg);
void line_dedup_free(struct line_dedup *dedup); /* what is held is shown first */

/* A stream of this worker begins, ends. */
void line_dedup_opened(struct line_dedup *dedup, int worker);
void line_dedup_closed(struct line_dedup *dedup, int worker);

/* A whole line, at a time in ms. */
void line_dedup_add(struct line_dedup *dedup, int worker, int to, const char *text, size_t size,
                    int64_t now);

/* When line_dedup_expire() is needed next; -1: nothing is held. */
int64_t line_dedup_due(const struct line_dedup *dedup);
void line_dedup_expire(struct line_dedup *dedup, int64_t now);
void line_dedup_flush(struct line_dedup *dedup);

#endif
