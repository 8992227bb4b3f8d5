/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - connects consoles, line dedup and filtered files.
 *
 * A stream passes its lines to output_line().  A line that is prefixed with its rank waits in the
 * line dedup for a moment, so that equal lines of several workers are shown once.  Any other line
 * is written to its console with its prefix, and to the filtered file if it contains a word of the
 * filter.  log_line() writes through this file, too.  So its lines come after all earlier lines of
 * the workers, and not in the middle of a worker's line. */
#include "launcher/stdio/output.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "launcher/stdio/line_prefix.h"
#include "launcher/stdio/worker_stream.h"
#include "launcher/util/progress_line.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* ---- Words of a filter ------------------------------------------------------- */

/* True if the text at `line` begins with the filter word at `word`.  A ",," in the word means one
 * ','. */
static int begins(const char *word, const char *line, const char *end)
{
    while (*word && !(*word == ',' && word[1] != ',')) {
        if (line == end || *line++ != *word)
            return 0;
        word += *word == ',' ? 2 : 1;
    }
    return 1;
}

/* Returns the word after the next comma, or NULL after the last word. */
static const char *next_word(const char *word)
{
    while (*word && !(*word == ',' && word[1] != ','))
        word += *word == ',' ? 2 : 1;
    return *word ? word + 1 : NULL;
}

int filters_match(const char *list, const char *line, size_t size)
{
    for (const char *word = list; word; word = next_word(word))
        for (size_t i = 0; i <= size; i++)
            if (begins(word, line + i, line + size))
                return 1;
    return 0;
}

/* ---- Lines ---------------------------------------------------------------- */

/* Adds output->line to a console, and removes a progress bar there first. */
static void show_line(struct output *output, int to)
{
    console_wipe(output->to[to]);
    console_add(output->to[to], output->line.data, output->line.used);
}

static void set_dedup_timer(struct output *output)
{
    const int64_t due = line_dedup_due(&output->dedup), left = due - clock_ms();
    const struct timeval time = { 0, (left > 0 ? left : 0) * 1000 };

    if (due < 0)
        event_del(&output->dedup_timer);
    else if (!event_pending(&output->dedup_timer, EV_TIMEOUT, NULL))
        event_add(&output->dedup_timer, &time);
}

static void flush_consoles(struct output *output)
{
    for (int to = STDOUT_FILENO; to <= STDERR_FILENO; to++)
        console_flush(output->to[to]);
}

static void dedup_timer_over(evutil_socket_t fd, short what, void *arg)
{
    struct output *output = arg;

    (void)fd;
    (void)what;
    line_dedup_expire(&output->dedup, clock_ms());
    flush_consoles(output);
    set_dedup_timer(output);
}

static void show_merged(void *arg, int to, const unsigned char *workers, const char *text,
                        size_t size)
{
    struct output *output = arg;
    char prefix[160];

    prefix_ranks(workers, output->size, output->first_rank, output->colours, prefix, sizeof prefix);
    output->line.used = 0;
    text_add(&output->line, prefix, strlen(prefix));
    text_add(&output->line, text, size);
    text_add(&output->line, "\n", 1);
    show_line(output, to);
}

static const char *filter_of(const struct output *output, int to)
{
    return to == STDOUT_FILENO ? output->options->duplicate_stdout_filters
                               : output->options->duplicate_stderr_filters;
}

void output_bytes(struct output *output, const struct stream *stream, const char *data, size_t size)
{
    struct console *console = output->to[stream->to];

    console_wipe(console);
    console_add(console, data, size);
}

void output_line(struct output *output, const struct stream *stream, const char *text, size_t size)
{
    struct text *line = &output->line;
    const size_t prefix = strlen(stream->prefix);
    const char *filter = filter_of(output, stream->to);

    if (stream->is_deduped) {
        line_dedup_add(&output->dedup, stream->local_rank, stream->to, text, size, clock_ms());
        set_dedup_timer(output);
        return;
    }
    line->used = 0;
    text_add(line, stream->prefix, prefix);
    if (stream->route.tee)
        text_add_utf8(line, text, size);
    else
        text_add(line, text, size);
    text_add(line, "\n", 1);
    show_line(output, stream->to);
    /* This call must be the last, since log_file_write() may log an error, which may overwrite
     * output->line. */
    if (stream->route.tee && filter
        && filters_match(filter, line->data + prefix, line->used - prefix))
        log_file_write(&output->filtered[stream->to], line->data, line->used);
}

void output_bar(struct output *output, const struct stream *stream, const char *text, size_t size)
{
    struct console *console = output->to[stream->to];

    line_dedup_flush(&output->dedup); /* shows the worker's earlier lines first */
    console->on_bar = 1;
    console_wipe(console);
    if (size == 0)
        return;
    console_add(console, stream->prefix, strlen(stream->prefix));
    console_add(console, text, size);
    console->on_bar = 1;
}

/* ---- Consoles ------------------------------------------------------------- */

static void relieved(void *arg)
{
    struct output *output = arg;

    for (struct stream *stream = output->streams; stream; stream = stream->next)
        if (stream->paused && !console_full(output->to[stream->to])) {
            stream->paused = 0;
            event_add(&stream->event, NULL);
        }
}

#define SAID 16384 /* bytes of ctrun's log for --status; a failure report has many lines */

static void output_say(struct output *output, const char *line, size_t size)
{
    struct console *console = output->to[STDERR_FILENO];

    if (output->options->status.is_on)
        text_add_last(&output->said, line, size, SAID);
    line_dedup_flush(&output->dedup);
    console_flush(output->to[STDOUT_FILENO]);
    console_wipe(console);
    console_add(console, line, size);
    console_flush(console);
}

static void say_for_others(struct output *output)
{
    struct other_threads *threads = &output->threads;
    struct text said;

    pthread_mutex_lock(&threads->lock);
    said = threads->said;
    threads->said = (struct text){ 0 };
    pthread_mutex_unlock(&threads->lock);
    if (said.used > 0)
        output_say(output, said.data, said.used);
    free(said.data);
}

static void woken(evutil_socket_t fd, short what, void *arg)
{
    eventfd_t count;

    (void)what;
    eventfd_read(fd, &count);
    say_for_others(arg);
}

/* Shows a log line.  Only the thread of the event loop uses the consoles.  Another thread adds its
 * line to a buffer for that thread, so no thread waits for a reader. */
static void say_from_anywhere(void *arg, const char *line, size_t size)
{
    struct output *output = arg;
    struct other_threads *threads = &output->threads;

    if (pthread_equal(pthread_self(), threads->ours)) {
        say_for_others(output);
        output_say(output, line, size);
        return;
    }
    pthread_mutex_lock(&threads->lock);
    text_add(&threads->said, line, size);
    pthread_mutex_unlock(&threads->lock);
    eventfd_write(threads->wake, 1);
}

static void listen_to_threads(struct output *output)
{
    struct other_threads *threads = &output->threads;

    threads->ours = pthread_self();
    threads->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event_assign(&threads->event, output->base, threads->wake, EV_READ | EV_PERSIST, woken, output);
    if (threads->wake >= 0) /* without it, the next log line of this thread shows them */
        event_add(&threads->event, NULL);
    log_divert(say_from_anywhere, output);
}

/* Shows the last lines of other threads.  These threads have ended, or write directly to stderr
 * from now on. */
static void leave_threads(struct output *output)
{
    log_divert(NULL, NULL);
    if (!output->to[STDERR_FILENO])
        return;
    say_for_others(output);
    event_del(&output->threads.event);
    if (output->threads.wake >= 0)
        close(output->threads.wake);
    output->threads.wake = -1;
}

void output_open_consoles(struct output *output)
{
    struct console *both = output->consoles;

    if (output->to[STDOUT_FILENO])
        return;
    console_open(&both[0], output->base, STDOUT_FILENO, relieved, output);
    output->to[STDOUT_FILENO] = output->to[STDERR_FILENO] = &both[0];
    if (!console_same(STDOUT_FILENO, STDERR_FILENO)) {
        console_open(&both[1], output->base, STDERR_FILENO, relieved, output);
        output->to[STDERR_FILENO] = &both[1];
    }
    listen_to_threads(output);
}

/* Shows ctrun's progress.  Opens the consoles, so that lines of ctrun's log go through them, too,
 * and replace the progress line. */
void output_progress(struct output *output, const char *text)
{
    const int is_wanted = *text && log_wants(LOG_WARN) && progress_room(STDERR_FILENO) > 0;

    if (is_wanted)
        output_open_consoles(output);
    if (output->to[STDERR_FILENO])
        console_progress(output->to[STDERR_FILENO], is_wanted ? text : "");
}

/* ---- Standard input ---------------------------------------------------------- */

/* Workers get standard input as a descriptor, so ctrun neither reads nor copies the input.
 *
 * Workers have their own sessions.  A process that reads a terminal of another session gets neither
 * SIGTTIN nor EIO, so workers can read ctrun's terminal.  This is right while ctrun is in the
 * foreground.  In the background (ctrun ... &), workers would read the text that the user types for
 * the shell, so they get /dev/null instead. */

static int is_away(void)
{
    const pid_t foreground = isatty(STDIN_FILENO) ? tcgetpgrp(STDIN_FILENO) : -1;

    return foreground > 0 && foreground != getpgrp();
}

static void stdin_route_setup(struct stdin_route *route, const struct options *options)
{
    *route = (struct stdin_route){ &options->stdin_to, is_away(), -1 };
}

int stdin_route_null(struct stdin_route *route)
{
    if (route->null < 0)
        route->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return route->null;
}

int stdin_route_of(struct stdin_route *route, int rank)
{
    const struct stdin_to *to = route->to;
    const int is_it = to->kind == STDIN_ALL || (to->kind == STDIN_RANK && to->rank == rank);

    return is_it && !route->away ? -1 : stdin_route_null(route);
}

/* Logs a warning if --stdin has a rank that does not exist, so that no worker gets standard
 * input. */
static void stdin_route_check(const struct stdin_route *route, int world)
{
    if (route->to->kind == STDIN_RANK && route->to->rank >= world)
        log_line(LOG_WARN, "--stdin=%d: the ranks are 0 to %d; no rank reads standard input",
                 route->to->rank, world - 1);
}

static void stdin_route_close(struct stdin_route *route)
{
    if (route->null >= 0)
        close(route->null);
    route->null = -1;
}

/* ---- Life ----------------------------------------------------------------- */

void output_setup(struct output *output, struct event_base *base, const struct options *options,
                  const struct run_folder *folder)
{
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");

    *output = (struct output){ .options = options,
                               .folder = folder,
                               .base = base,
                               .threads = { .lock = PTHREAD_MUTEX_INITIALIZER } };
    output->terminal[STDOUT_FILENO] = isatty(STDOUT_FILENO) || options->surroundings.terminals & 1;
    output->terminal[STDERR_FILENO] = isatty(STDERR_FILENO) || options->surroundings.terminals & 2;
    stdin_route_setup(&output->input, options);
    output->colours = !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
    gethostname(output->host, sizeof output->host - 1);
    output->host[strcspn(output->host, ".")] = '\0';
    output->filtered[STDOUT_FILENO].fd = output->filtered[STDERR_FILENO].fd = -1;
    evtimer_assign(&output->dedup_timer, base, dedup_timer_over, output);
}

static int open_filtered(struct output *output, int to, const char *name)
{
    char path[PATH_MAX];

    log_file_free(&output->filtered[to]);
    run_folder_file(output->folder, -1, name, path, sizeof path);
    return filter_of(output, to) && *path ? log_file_open(&output->filtered[to], path) : 0;
}

int output_round(struct output *output, int first_rank, int world, int size)
{
    output->first_rank = first_rank;
    output->world = world;
    output->size = size;
    stdin_route_check(&output->input, world);
    if (open_filtered(output, STDOUT_FILENO, "filtered_stdout.log") < 0
        || open_filtered(output, STDERR_FILENO, "filtered_stderr.log") < 0)
        return -1;
    line_dedup_free(&output->dedup);
    /* If memory runs out, lines are not deduplicated. */
    if (!output->options->no_fold && world > 1)
        line_dedup_start(&output->dedup, size, show_merged, output);
    return 0;
}

void output_finish(struct output *output, int patience_ms)
{
    if (!output->to[STDOUT_FILENO])
        return;
    leave_threads(output);
    line_dedup_flush(&output->dedup);
    console_wipe(output->to[STDERR_FILENO]);
    console_finish(output->to[STDOUT_FILENO], patience_ms);
    if (output->to[STDERR_FILENO] != output->to[STDOUT_FILENO])
        console_finish(output->to[STDERR_FILENO], patience_ms);
}

void output_free(struct output *output)
{
    if (!output->base) /* output_setup() was not called */
        return;
    event_del(&output->dedup_timer);
    line_dedup_free(&output->dedup);
    log_file_free(&output->filtered[STDOUT_FILENO]);
    log_file_free(&output->filtered[STDERR_FILENO]);
    stdin_route_close(&output->input);
    if (output->to[STDERR_FILENO] != output->to[STDOUT_FILENO])
        console_close(output->to[STDERR_FILENO]);
    if (output->to[STDOUT_FILENO])
        console_close(output->to[STDOUT_FILENO]);
    free(output->line.data);
    free(output->said.data);
}
