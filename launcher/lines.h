/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - bytes of one worker's stream into what a shared terminal shows. */
#ifndef LAUNCHER_LINES_H
#define LAUNCHER_LINES_H

#include <stddef.h>

/* Bytes on their way out; whoever writes them sets used to 0. */
struct text {
    char *data;
    size_t used, room;
};

struct lines {
    char prefix[32];   /* "[3] ", with its colours */
    struct text held;  /* the line that has no end yet */
    int returned, bar; /* a '\r' came last; held is a progress bar: it began after a '\r' */
};

/* Whole lines go out at once, each after its prefix.  A line that began with
 * '\r' (a progress bar) goes out at once too, over itself: *on_bar is then set,
 * and the next whole line, of whatever stream, wipes it first. */
void lines_feed(struct lines *lines, const char *data, size_t size, int *on_bar, struct text *out);

/* The stream ended: so does its last line. */
void lines_end(struct lines *lines, int *on_bar, struct text *out);

void text_add(struct text *text, const char *data, size_t size);

#endif
