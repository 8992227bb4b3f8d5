/* SPDX-License-Identifier: Apache-2.0 */
/* worker_stream.h - standard output or error of one worker, with its route (chosen by the options),
 * its file, its pipe through ctrun, and its lines. */
#ifndef LAUNCHER_STDIO_WORKER_STREAM_H
#define LAUNCHER_STDIO_WORKER_STREAM_H

#include "config/options.h"
#include "launcher/stdio/output.h"
#include "runtime/util/text.h"

/* ---- Where a stream goes ----------------------------------------------------- */

/* The worker to which the stream belongs. */
struct origin {
    int rank, local_rank, world;
    int to;       /* 1 for stdout, 2 for stderr */
    int terminal; /* 1 if ctrun's descriptor `to` is a terminal */
    int files;    /* 1 if the run has a folder for files */
};

/* Where the bytes of a stream go.  If all members are 0, the worker inherits ctrun's descriptor, as
 * under torchrun. */
struct route {
    int file;           /* 1 if the bytes go to stdout.log or stderr.log */
    int through;        /* 1 if the bytes go through a pipe to ctrun */
    int shown;          /* 1 if ctrun shows the bytes */
    int as_it_is;       /* 1 if ctrun shows the bytes unchanged, and reads them for --status */
    int tee;            /* 1 if ctrun shows lines as torchrun's --tee does */
    int nowhere;        /* 1 if the bytes go to /dev/null */
    int by_rank;        /* 1 if each line begins with its rank, such as "[3] " */
    const char *prefix; /* template of the prefix; not used with by_rank */
};

struct route route_of(const struct options *options, const struct origin *origin);

/* ---- Lines and progress bars ------------------------------------------------- */

struct lines {
    int split;        /* 1 if a '\r' ends a line, as under torchrun, so there are no bars */
    struct text held; /* a line that has no newline yet */
    /* returned: 1 if the last byte was '\r'.  bar: 1 if `held` is a progress bar, since it began
     * after a '\r'. */
    int returned, bar;
};

/* Receives lines and progress bars.  line() gets a line without its newline.  bar() gets a progress
 * bar each time that the bar has changed.  At the end of a bar, line() gets the bar's last text.
 * If the program has overwritten the bar with blanks, bar() gets 0 bytes instead. */
struct line_taker {
    void (*line)(void *arg, const char *text, size_t size);
    void (*bar)(void *arg, const char *text, size_t size);
    void *arg;
};

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to);

/* Ends the last line.  Must be called at the end of the stream. */
void lines_end(struct lines *lines, const struct line_taker *to);

/* ---- A stream ---------------------------------------------------------------- */

struct stream {
    struct output *output;
    struct route route;
    int to, rank, local_rank;
    /* Descriptor for the worker, open until the worker has started; -1 if the worker inherits
     * ctrun's descriptor. */
    int given;
    int fd; /* ctrun's end of the pipe; -1 if there is no pipe */
    int paused, is_deduped;
    char *prefix;
    struct log_file file;
    struct lines lines;
    /* 1 if `last` has the newest bytes of the stream, for the report or the status page. */
    int is_kept;
    struct text last;
    struct event event;
    struct stream *next, **link; /* links in the list output->streams, while fd is open */
};

void stream_setup(struct stream *stream);

/* Opens the stream before the worker starts.  Returns 0, 1 after an error is logged, or -1 with
 * errno set. */
int worker_stream_open(struct stream *stream, struct output *output, int rank, int local_rank,
                       int to);
/* Closes the worker's end of the stream.  Must be called after the worker has started or could not
 * start. */
void stream_given(struct stream *stream);

/* Shows the bytes that are in the pipe, and closes the stream.  Does not wait for other processes
 * that have the pipe open. */
void worker_stream_close(struct stream *stream);

/* Sets *at to the last lines of the stream, at most `most`, without the newline of the last line.
 * *at points into the stream, and is valid until more bytes arrive.  Returns the size of the lines.
 * Returns 0 if the worker inherited ctrun's descriptor, as under torchrun, since ctrun then does
 * not see the lines. */
size_t stream_last_lines(struct stream *stream, int most, const char **at);
void stream_free(struct stream *stream);

#endif
