/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.h - shows a line once if several workers write the same line.
 *
 * A line waits at most DEDUP_MS for the same line of other workers.  It is shown as soon as each
 * other worker has written the same line, has written a newer line, or has closed its streams.  So
 * with a single worker, no line is delayed.  The lines of a worker stay in order. */
#ifndef LAUNCHER_STDIO_LINE_DEDUP_H
#define LAUNCHER_STDIO_LINE_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#define DEDUP_MS 50

struct dedup_line;

/* Shows a line on stdout or stderr (`to` is 1 or 2).  Bit i of `workers` is 1 if worker i wrote the
 * line. */
typedef void dedup_emit(void *arg, int to, const unsigned char *workers, const char *text,
                        size_t size);

struct line_dedup {
    int size;
    struct dedup_worker {
        int streams;     /* number of open streams */
        uint64_t newest; /* number of the newest line that the worker wrote */
    } * workers;
    struct dedup_line *first, *last;
    int held;
    uint64_t numbered; /* number of the newest line; the first is 1 */
    dedup_emit *emit;
    void *arg;
};

/* Starts the dedup for the workers 0 to size - 1.  Returns 0, or -1 if memory runs out. */
int line_dedup_start(struct line_dedup *dedup, int size, dedup_emit *emit, void *arg);
void line_dedup_free(struct line_dedup *dedup); /* shows held lines first */

/* Must be called when a stream of a worker is opened and when it is closed. */
void line_dedup_opened(struct line_dedup *dedup, int worker);
void line_dedup_closed(struct line_dedup *dedup, int worker);

/* Adds a whole line of a worker.  `now` is the time in ms. */
void line_dedup_add(struct line_dedup *dedup, int worker, int to, const char *text, size_t size,
                    int64_t now);

/* Returns the time in ms at which line_dedup_expire() must be called next, or -1 if no line is
 * held. */
int64_t line_dedup_due(const struct line_dedup *dedup);
void line_dedup_expire(struct line_dedup *dedup, int64_t now);
void line_dedup_flush(struct line_dedup *dedup);

#endif
