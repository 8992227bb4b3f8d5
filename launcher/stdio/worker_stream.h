/* SPDX-License-Identifier: Apache-2.0 */
/* worker_stream.h - standard output or error of one worker: its route by the options, its file, its
 * pipe through ctrun, and its lines. */
#ifndef LAUNCHER_STDIO_WORKER_STREAM_H
#define LAUNCHER_STDIO_WORKER_STREAM_H

#include "config/options.h"
#include "launcher/stdio/output.h"
#include "runtime/util/text.h"

/* ---- Where a stream goes ----------------------------------------------------- */

/* The worker to which the stream belongs. */
struct origin {
    int rank, local_rank, world;
    int to;       /* 1 or 2 */
    int terminal; /* ctrun's descriptor `to` is a terminal */
    int files;    /* the run has a folder for files */
};

/* All 0: the worker inherits ctrun's descriptor, as under torchrun. */
struct route {
    int file;           /* to stdout.log or stderr.log */
    int through;        /* through a pipe to ctrun */
    int shown;          /* ctrun shows it */
    int as_it_is;       /* bytes are shown unchanged, and read for --status */
    int tee;            /* torchrun's way */
    int nowhere;        /* to /dev/null */
    int by_rank;        /* with "[3] " before each line */
    const char *prefix; /* a template, if not by_rank */
};

struct route route_of(const struct options *options, const struct origin *origin);

/* ---- Lines and progress bars ------------------------------------------------- */

struct lines {
    int split;         /* a '\r' ends a line, as for torchrun, so there are no bars */
    struct text held;  /* a line without its end */
    int returned, bar; /* the last byte was '\r'; held is a bar, since it began after '\r' */
};

/* line() gets a line without its end.  bar() gets a progress bar each time that it has changed.
 * When a bar ends, it comes again as a line.  If its program has written blanks over it, it comes
 * as a bar of 0 bytes instead. */
struct line_taker {
    void (*line)(void *arg, const char *text, size_t size);
    void (*bar)(void *arg, const char *text, size_t size);
    void *arg;
};

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to);

/* Ends the last line, since the stream has ended. */
void lines_end(struct lines *lines, const struct line_taker *to);

/* ---- A stream ---------------------------------------------------------------- */

struct stream {
    struct output *output;
    struct route route;
    int to, rank, local_rank;
    int given; /* for the worker, until it has started; -1: it inherits ctrun's */
    int fd;    /* ctrun's end of the pipe; -1: none */
    int paused, is_deduped;
    char *prefix;
    struct log_file file;
    struct lines lines;
    int is_kept; /* the newest bytes are kept, for the report or the status page: */
    struct text last;
    struct event event;
    struct stream *next, **link; /* in output->streams while fd is open */
};

void stream_setup(struct stream *stream);

/* Opens the stream before the worker starts.  0; 1: the error is logged; -1 with errno. */
int worker_stream_open(struct stream *stream, struct output *output, int rank, int local_rank,
                       int to);
/* Closes the worker's end: the worker has started, or could not start. */
void stream_given(struct stream *stream);

/* Shows what is left.  Does not wait for other processes that hold the pipe open. */
void worker_stream_close(struct stream *stream);

/* Gives the last lines of the worker, at most `most`, without the end of the last one.  *at points
 * into the stream until more bytes come.  Returns their size; also 0 if the worker inherited
 * ctrun's descriptor, as under torchrun, so that ctrun has not seen them. */
size_t stream_last_lines(struct stream *stream, int most, const char **at);
void stream_free(struct stream *stream);

#endif
