/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.h - shows the same line of many workers once.
 *
 * A line waits for the same line of other workers, at most DEDUP_MS.  It is shown as soon as every
 * other worker has written it too, has written something after it, or has no stream left.  So the
 * lines of a single worker are never delayed.  The lines of one worker stay in order. */
#ifndef LAUNCHER_STDIO_LINE_DEDUP_H
#define LAUNCHER_STDIO_LINE_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#define DEDUP_MS 50

struct dedup_line;

/* workers: a bit for each worker that wrote the line. */
typedef void dedup_emit(void *arg, int to, const unsigned char *workers, const char *text,
                        size_t size);

struct line_dedup {
    int size;
    struct dedup_worker {
        int streams;     /* number of open streams */
        uint64_t newest; /* number of the newest held line that it wrote */
    } * workers;
    struct dedup_line *first, *last;
    int held;
    uint64_t numbered; /* number of the newest line; the first is 1 */
    dedup_emit *emit;
    void *arg;
};

/* For workers 0 to size - 1.  0; -1: out of memory. */
int line_dedup_start(struct line_dedup *dedup, int size, dedup_emit *emit, void *arg);
void line_dedup_free(struct line_dedup *dedup); /* shows held lines first */

/* Take the begin and the end of a worker's stream. */
void line_dedup_opened(struct line_dedup *dedup, int worker);
void line_dedup_closed(struct line_dedup *dedup, int worker);

/* Takes a whole line; now: in ms. */
void line_dedup_add(struct line_dedup *dedup, int worker, int to, const char *text, size_t size,
                    int64_t now);

/* Gives when line_dedup_expire() must be called next; -1: no line is held. */
int64_t line_dedup_due(const struct line_dedup *dedup);
void line_dedup_expire(struct line_dedup *dedup, int64_t now);
void line_dedup_flush(struct line_dedup *dedup);

#endif
