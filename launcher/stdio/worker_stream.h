/* SPDX-License-Identifier: Apache-2.0 */
/* worker_stream.h - standard output or error of one worker: its file, its pipe through us. */
#ifndef LAUNCHER_STDIO_WORKER_STREAM_H
#define LAUNCHER_STDIO_WORKER_STREAM_H

#include "launcher/stdio/line_splitter.h"
#include "launcher/stdio/output.h"
#include "launcher/stdio/stream_route.h"

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
    struct text last; /* of stderr: the newest bytes, for the report */
    struct event event;
    struct stream *next, **link; /* in output->streams, while fd is open */
};

void stream_setup(struct stream *stream);

/* Before the worker starts.  0; 1: the sentence is said; -1 with errno. */
int worker_stream_open(struct stream *stream, struct output *output, int rank, int local_rank,
                       int to);
/* It has started, or could not. */
void stream_given(struct stream *stream);

/* Shows what is left; a process that still holds the other end is not waited for. */
void worker_stream_close(struct stream *stream);

/* The last lines a worker wrote to stderr, at most `most`; "" if they went past
 * us (the worker has inherited our stderr, as under torchrun). */
const char *stream_last_lines(struct stream *stream, int most);
void stream_free(struct stream *stream);

#endif
