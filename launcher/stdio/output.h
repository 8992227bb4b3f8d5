/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - standard input, and what the output of all workers of this node shares. */
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
    int away; /* ctrun runs in the background of a terminal */
    int null; /* /dev/null, for workers; -1: not opened yet */
};

/* What this rank gets as its descriptor 0; -1: ours. */
int stdin_route_of(struct stdin_route *route, int rank);
int stdin_route_null(struct stdin_route *route); /* -1 with errno */

/* ---- Output ------------------------------------------------------------------ */

struct output {
    const struct options *options;
    const struct run_folder *folder;
    struct event_base *base;
    int terminal[3]; /* are our descriptors 1 and 2 terminals? */
    int colours;
    char host[64];
    struct stdin_route input;
    int first_rank, world, size;        /* of this round */
    struct console consoles[2], *to[3]; /* opened when the first stream needs them */
    struct text line;                   /* the one that is being put together */
    struct text said;                   /* with --status: the newest lines of ctrun itself */
    struct log_file filtered[3];
    struct line_dedup dedup;
    struct event dedup_timer;
    struct stream *streams; /* open ones */
    struct other_threads {  /* their lines, until ours shows them */
        pthread_t ours;
        pthread_mutex_t lock;
        struct text said; /* under lock */
        int wake;         /* an eventfd */
        struct event event;
    } threads;
};

void output_setup(struct output *output, struct event_base *base, const struct options *options,
                  const struct run_folder *folder);

/* New workers are about to be started.  0, or -1 and the error is logged. */
int output_round(struct output *output, int first_rank, int world, int size);

/* From here on ctrun writes to 1 and 2 through consoles only, log_line() too. */
void output_open_consoles(struct output *output);

/* Bytes of a stream as they are. */
void output_bytes(struct output *output, const struct stream *stream, const char *data,
                  size_t size);
/* A whole line, a bar of a stream. */
void output_line(struct output *output, const struct stream *stream, const char *text, size_t size);
void output_bar(struct output *output, const struct stream *stream, const char *text, size_t size);

/* How far ctrun is, on a terminal and unless ctrun says errors only (console_progress()). */
void output_progress(struct output *output, const char *text);

/* Shows what is left, as long as it is read. */
void output_finish(struct output *output, int patience_ms);
void output_free(struct output *output);

/* Words of --duplicate-stdout-filters: has the line one of the words of list in it?  They are
 * separated by commas, two commas stand for one in a word, and the empty word is in every line. */
int filters_match(const char *list, const char *line, size_t size);

#endif
