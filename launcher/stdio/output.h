/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - standard input, and the state that the output of all workers of this node shares. */
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

/* Gives the descriptor 0 of this rank; -1: ctrun's own. */
int stdin_route_of(struct stdin_route *route, int rank);
int stdin_route_null(struct stdin_route *route); /* -1 with errno */

/* ---- Output ------------------------------------------------------------------ */

struct output {
    const struct options *options;
    const struct run_folder *folder;
    struct event_base *base;
    int terminal[3]; /* [1], [2]: is ctrun's descriptor 1, 2 a terminal? */
    int colours;
    char host[64];
    struct stdin_route input;
    int first_rank, world, size;        /* of this round */
    struct console consoles[2], *to[3]; /* opened with the first stream */
    struct text line;                   /* the line that is being made */
    struct text said;                   /* for --status: the newest lines of ctrun's log */
    struct log_file filtered[3];
    struct line_dedup dedup;
    struct event dedup_timer;
    struct stream *streams; /* open ones */
    struct other_threads {  /* lines of other threads, until this thread shows them */
        pthread_t ours;
        pthread_mutex_t lock;
        struct text said; /* under lock */
        int wake;         /* an eventfd */
        struct event event;
    } threads;
};

void output_setup(struct output *output, struct event_base *base, const struct options *options,
                  const struct run_folder *folder);

/* Prepares for the workers of a round.  0; -1: the error is logged. */
int output_round(struct output *output, int first_rank, int world, int size);

/* From here on ctrun writes to 1 and 2 only through consoles; so does log_line(). */
void output_open_consoles(struct output *output);

/* Takes bytes of a stream and shows them unchanged. */
void output_bytes(struct output *output, const struct stream *stream, const char *data,
                  size_t size);
/* Take a whole line, and a progress bar, of a stream. */
void output_line(struct output *output, const struct stream *stream, const char *text, size_t size);
void output_bar(struct output *output, const struct stream *stream, const char *text, size_t size);

/* Shows ctrun's progress on a terminal (console_progress()).  Does nothing if ctrun logs only
 * errors. */
void output_progress(struct output *output, const char *text);

/* Writes what is left, as long as the reader takes it. */
void output_finish(struct output *output, int patience_ms);
void output_free(struct output *output);

/* Says whether the line contains a word of list (--duplicate-stdout-filters).  Commas separate the
 * words; two commas stand for one comma in a word.  Every line contains the empty word. */
int filters_match(const char *list, const char *line, size_t size);

#endif
