/* SPDX-License-Identifier: Apache-2.0 */
/* worker_stream.h - standard output or error of one worker: where it goes by the options, its file,
 * its pipe through ctrun, its lines. */
#ifndef LAUNCHER_STDIO_WORKER_STREAM_H
#define LAUNCHER_STDIO_WORKER_STREAM_H

#include "config/options.h"
#include "launcher/stdio/output.h"
#include "runtime/util/text.h"

/* ---- Where a stream goes ----------------------------------------------------- */

/* Whose stream it is. */
struct origin {
    int rank, local_rank, world;
    int to;       /* 1 or 2 */
    int terminal; /* is ours of that number one? */
    int files;    /* there is a folder for files */
};

/* All 0: the worker inherits ours, as under torchrun. */
struct route {
    int file;           /* into stdout.log or stderr.log */
    int through;        /* by a pipe through ctrun, */
    int shown;          /* which shows it */
    int as_it_is;       /* byte by byte, without lines: ctrun reads along for --status */
    int tee;            /* the torchrun's way */
    int nowhere;        /* into /dev/null */
    int by_rank;        /* after "[3] ", else: */
    const char *prefix; /* a template */
};

struct route route_of(const struct options *options, const struct origin *origin);

/* ---- Lines and progress bars ------------------------------------------------- */

struct lines {
    int split;         /* a '\r' ends a line, as for torchrun: then there are no bars */
    struct text held;  /* the line that has no end yet */
    int returned, bar; /* a '\r' came last; held is a progress bar: it began after a '\r' */
};

/* line() gets a line without its end, bar() a progress bar each time that it changed.  When a bar
 * has come to its end it comes once more as a line, unless its program has written blanks over it:
 * then it comes as a bar of no bytes. */
struct line_taker {
    void (*line)(void *arg, const char *text, size_t size);
    void (*bar)(void *arg, const char *text, size_t size);
    void *arg;
};

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to);

/* The stream ended: so does its last line. */
void lines_end(struct lines *lines, const struct line_taker *to);

/* ---- A stream ---------------------------------------------------------------- */

struct stream {
    struct output *output;
    struct route route;
    int to, rank, local_rank;
    int given; /* the worker's descriptor, until it has it; -1: it inherits ours */
    int fd;    /* our end of the pipe; -1: none */
    int paused, is_deduped;
    char *prefix;
    struct log_file file;
    struct lines lines;
    int is_kept; /* the newest bytes are, for the report or the status page: */
    struct text last;
    struct event event;
    struct stream *next, **link; /* in output->streams, while fd is open */
};

void stream_setup(struct stream *stream);

/* Before the worker starts.  0; 1: the error is logged; -1 with errno. */
int worker_stream_open(struct stream *stream, struct output *output, int rank, int local_rank,
                       int to);
/* It has started, or could not. */
void stream_given(struct stream *stream);

/* Shows what is left; a process that still holds the other end is not waited for. */
void worker_stream_close(struct stream *stream);

/* The last lines that a worker wrote, at most `most`, without the last one's end: *at points into
 * the stream, until it is fed again.  Gives their bytes; 0 also if they went past us (the worker
 * has inherited our descriptor, as under torchrun). */
size_t stream_last_lines(struct stream *stream, int most, const char **at);
void stream_free(struct stream *stream);

#endif
