/* SPDX-License-Identifier: Apache-2.0 */
/* line_splitter.h - bytes of one worker's stream into whole lines and progress bars. */
#ifndef LAUNCHER_STDIO_LINE_SPLITTER_H
#define LAUNCHER_STDIO_LINE_SPLITTER_H

#include "runtime/util/text.h"

struct lines {
    int split;         /* a '\r' ends a line, as for torchrun: then there are no bars */
    struct text held;  /* the line that has no end yet */
    int returned, bar; /* a '\r' came last; held is a progress bar: it began after a '\r' */
};

/* Who takes them.  A line comes without its end; a bar each time that it changed, and
 * once more as a line when that came to its end. */
struct line_taker {
    void (*line)(void *arg, const char *text, size_t size);
    void (*bar)(void *arg, const char *text, size_t size);
    void *arg;
};

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to);

/* The stream ended: so does its last line. */
void lines_end(struct lines *lines, const struct line_taker *to);

#endif
