/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - standard input for workers, and the state that the output streams of all workers of
 * this node share. */
#ifndef LAUNCHER_STDIO_OUTPUT_H
#define LAUNCHER_STDIO_OUTPUT_H

#include <pthread.h>
#include <stddef.h>

#include "config/options.h"
#include "launcher/stdio/console.h"
#include "launcher/stdio/line_dedup.h"
#include "launcher/stdio/log_dir.h"
#include "launcher/stdio/log_file.h"

struct stream;

/* ---- Standard input ---------------------------------------------------------- */

struct stdin_route {
    const struct stdin_to *to;
    int away; /* 1 if ctrun runs in the background of a terminal */
    int null; /* descriptor of /dev/null for workers; -1 before it is opened */
};

/* Returns the descriptor that becomes descriptor 0 of this rank, or -1 if the rank inherits
 * ctrun's. */
int stdin_route_of(struct stdin_route *route, int rank);
/* Returns the descriptor of /dev/null, or -1 with errno set. */
int stdin_route_null(struct stdin_route *route);

/* ---- Output ------------------------------------------------------------------ */

struct output {
    const struct options *options;
    const struct run_folder *folder;
    struct event_base *base;
    int terminal[3]; /* [1], [2]: 1 if ctrun's descriptor 1, 2 is a terminal */
    int colours;
    char host[64];
    struct stdin_route input;
    int first_rank, world, size;        /* of this round; size: number of workers on this node */
    struct console consoles[2], *to[3]; /* opened before the first use; until then to[] is NULL */
    struct text line;                   /* buffer for the line that is being shown */
    struct text said;                   /* newest lines of ctrun's log, for --status */
    struct log_file filtered[3];
    struct line_dedup dedup;
    struct event dedup_timer;
    struct stream *streams; /* list of the open streams */
    struct other_threads {  /* log lines of other threads */
        pthread_t ours;
        pthread_mutex_t lock;
        struct text said; /* lines that were not shown yet, protected by `lock` */
        int wake;         /* eventfd that wakes the event loop */
        struct event event;
    } threads;
};

void output_setup(struct output *output, struct event_base *base, const struct options *options,
                  const struct run_folder *folder);

/* Prepares for the workers of a round.  Returns 0, or -1 after an error is logged. */
int output_round(struct output *output, int first_rank, int world, int size);

/* Opens the consoles.  From then on ctrun and log_line() write to descriptors 1 and 2 only through
 * the consoles. */
void output_open_consoles(struct output *output);

/* Shows bytes of a stream unchanged. */
void output_bytes(struct output *output, const struct stream *stream, const char *data,
                  size_t size);
/* Show a whole line and a progress bar of a stream. */
void output_line(struct output *output, const struct stream *stream, const char *text, size_t size);
void output_bar(struct output *output, const struct stream *stream, const char *text, size_t size);

/* Shows ctrun's progress on a terminal (console_progress()).  Does nothing if ctrun logs only
 * errors. */
void output_progress(struct output *output, const char *text);

/* Writes the remaining output, until the reader accepts no byte for patience_ms. */
void output_finish(struct output *output, int patience_ms);
void output_free(struct output *output);

/* True if the line contains a word of the list (--duplicate-stdout-filters).  Commas separate the
 * words, and two commas in a row are one comma within a word.  Every line contains the empty
 * word. */
int filters_match(const char *list, const char *line, size_t size);

#endif
