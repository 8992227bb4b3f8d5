/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - workers' output on a terminal: whole lines, each after its rank. */
#ifndef LAUNCHER_OUTPUT_H
#define LAUNCHER_OUTPUT_H

#include <event2/event_struct.h>

#include "launcher/lines.h"

/* What the streams of all workers share. */
struct terminal {
    struct event_base *base;
    int shared[3]; /* are descriptors 1 and 2 terminals? */
    int colours;
    int on_bar; /* see lines_feed() */
    struct text out;
};

/* Standard output or error of one worker.  fd -1: it inherits ours. */
struct stream {
    struct terminal *terminal;
    struct event event;
    int fd, to; /* to: 1 or 2 */
    struct lines lines;
    struct text last; /* of stderr: the newest bytes, for the report */
};

void terminal_setup(struct terminal *terminal, struct event_base *base);
void terminal_free(struct terminal *terminal);

/* ctrun is about to write a line of its own: wipes a progress bar. */
void terminal_wipe(struct terminal *terminal);

/* Opens a pipe; *worker_end is for the worker, to be closed here after its start.
 * -1 with errno. */
int stream_open(struct stream *stream, struct terminal *terminal, int rank, int to,
                int *worker_end);
/* Shows what is left; a process that still holds the other end is not waited for. */
void stream_close(struct stream *stream);

/* The last lines a worker wrote to stderr, at most `most`; "" if they went past
 * us (stderr is no terminal: the worker has inherited it, as under torchrun). */
const char *stream_last_lines(struct stream *stream, int most);
void stream_free(struct stream *stream);

#endif
