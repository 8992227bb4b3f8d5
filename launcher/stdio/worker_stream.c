/* SPDX-License-Identifier: Apache-2.0 */
/* worker_stream.c - see worker_stream.h.
 *
 * If a stream is only redirected to a file, the worker's descriptor is that file, and ctrun does
 * not read the bytes.  If a stream is shown, the bytes come through a pipe.  ctrun then writes the
 * bytes to the stream's file, writes them as lines to the console, and keeps the last bytes for the
 * report. */
#include "launcher/stdio/worker_stream.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/stdio/line_prefix.h"

/* ---- Where a stream goes ----------------------------------------------------- */

/* route_of() chooses the route, first by --redirects and --tee, then by whether the rank is shown,
 * then by whether lines get a prefix.  If no option changes how a stream is shown, the worker
 * inherits ctrun's descriptor.  Such a worker writes without the cost of ctrun, perhaps to a real
 * terminal. */

static const char *tee_prefix(const struct options *options)
{
    const char *template = options->log_line_prefix_template;

    if (template && *template)
        return template;
    if (!strcmp(options->prefix, "auto"))
        return "[${role_name}${local_rank}]:";
    return !strcmp(options->prefix, "none") ? "" : options->prefix;
}

static int is_kept(const struct options *options, int to)
{
    return to == STDERR_FILENO || options->status.is_on;
}

struct route route_of(const struct options *options, const struct origin *origin)
{
    const int bit = origin->to == STDOUT_FILENO ? 1 : 2;
    const int redirect =
        origin->files && stream_spec_of(&options->redirects, origin->local_rank) & bit;
    const int tee = origin->files && stream_spec_of(&options->tee, origin->local_rank) & bit;
    const int listed =
        rank_filter_has(options->local_ranks_filter, origin->local_rank)
        && (!options->show || ranks_have(options->show, origin->rank, origin->world));

    if (tee && listed)
        return (struct route){
            .file = 1, .through = 1, .shown = 1, .tee = 1, .prefix = tee_prefix(options)
        };
    if (tee || redirect)
        return (struct route){ .file = 1 };
    if (!listed && is_kept(options, origin->to)) /* the report may show the rank's last lines */
        return (struct route){ .through = 1 };
    if (!listed)
        return (struct route){ .nowhere = 1 };
    if (*options->prefix && strcmp(options->prefix, "none") && strcmp(options->prefix, "auto"))
        return (struct route){ .through = 1, .shown = 1, .prefix = options->prefix };
    if (!strcmp(options->prefix, "auto") && origin->terminal && origin->world > 1)
        return (struct route){ .through = 1, .shown = 1, .by_rank = 1 };
    if (options->status.is_on)
        return (struct route){ .through = 1, .shown = 1, .as_it_is = 1, .prefix = "" };
    return (struct route){ 0 };
}

/* ---- Lines and progress bars ------------------------------------------------- */

#define LONGEST (1 << 20) /* most bytes of a line; a longer line is cut */

/* True if the program has overwritten its progress bar with blanks, as tqdm does. */
static int is_wiped(const struct lines *lines)
{
    size_t i = 0;

    while (i < lines->held.used && lines->held.data[i] == ' ')
        i++;
    return lines->bar && i == lines->held.used;
}

static void end_line(struct lines *lines, const struct line_taker *to)
{
    to->line(to->arg, lines->held.data, lines->held.used);
    lines->held.used = 0;
    lines->bar = 0;
}

/* Handles the byte after a '\r', and returns the rest of the data.  Any byte except '\r' and '\n'
 * begins a text that replaces the line.  With `split`, the '\r' has already ended the line, so only
 * a '\n' is skipped. */
static const char *after_return(struct lines *lines, const char *data)
{
    if (lines->split)
        data += *data == '\n';
    else if (*data == '\r')
        return data;
    else if (*data != '\n') {
        lines->held.used = 0;
        lines->bar = 1;
    }
    lines->returned = 0;
    return data;
}

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to)
{
    const char *const end = data + size;

    while (data < end) {
        const char *stop;

        if (lines->returned && (data = after_return(lines, data)) == end)
            break;
        stop = data;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        text_add(&lines->held, data, (size_t)(stop - data));
        if (stop < end && *stop == '\r')
            lines->returned = 1;
        if (stop < end ? *stop == '\n' || lines->split : lines->held.used > LONGEST)
            end_line(lines, to);
        data = stop + (stop < end);
    }
    if (lines->held.used > 0 && (lines->bar || lines->returned)) {
        lines->bar = 1;
        to->bar(to->arg, lines->held.data, is_wiped(lines) ? 0 : lines->held.used);
    }
}

void lines_end(struct lines *lines, const struct line_taker *to)
{
    if (lines->held.used > 0 && !is_wiped(lines))
        end_line(lines, to);
    free(lines->held.data);
    lines->held = (struct text){ 0 };
    lines->returned = lines->bar = 0;
}

#define KEPT 8192  /* most bytes that are kept, for the report or the status page */
#define READ 65536 /* bytes per read(); the capacity of a pipe */

void stream_setup(struct stream *stream)
{
    *stream = (struct stream){ .given = -1, .fd = -1, .file.fd = -1 };
}

/* ---- What arrives --------------------------------------------------------- */

static void stream_take_line(void *arg, const char *text, size_t size)
{
    const struct stream *stream = arg;

    output_line(stream->output, stream, text, size);
}

static void take_bar(void *arg, const char *text, size_t size)
{
    const struct stream *stream = arg;

    output_bar(stream->output, stream, text, size);
}

static void feed(struct stream *stream, const char *data, size_t size)
{
    const struct line_taker taker = { stream_take_line, take_bar, stream };

    if (stream->is_kept)
        text_add_last(&stream->last, data, size, KEPT);
    log_file_write(&stream->file, data, size);
    if (!stream->route.shown)
        return;
    if (stream->route.as_it_is)
        output_bytes(stream->output, stream, data, size);
    else
        lines_feed(&stream->lines, data, size, &taker);
    console_flush(stream->output->to[stream->to]);
}

/* Closes the stream at the end of its data, or when its data are no longer wanted. */
static void stream_shut(struct stream *stream)
{
    const struct line_taker taker = { stream_take_line, take_bar, stream };

    if (stream->fd < 0)
        return;
    event_del(&stream->event);
    close(stream->fd);
    stream->fd = -1;
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    lines_end(&stream->lines, &taker);
    if (stream->is_deduped)
        line_dedup_closed(&stream->output->dedup, stream->local_rank);
    if (stream->route.shown)
        console_flush(stream->output->to[stream->to]);
    log_file_close(&stream->file);
}

/* Reads from the pipe.  Closes the pipe if the reader of ctrun's output is gone and the bytes do
 * not go to a file.  The worker then gets SIGPIPE, like every process that writes to a pipe without
 * a reader. */
static void readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *stream = arg;
    const struct console *console = stream->output->to[stream->to];
    char data[READ];
    const ssize_t got = read(fd, data, sizeof data);

    (void)what;
    if (got < 0)
        return;
    if (got > 0)
        feed(stream, data, (size_t)got);
    if (got == 0 || (stream->route.shown && !stream->route.file && console->unread == EPIPE))
        stream_shut(stream);
    else if (stream->route.shown && console_full(console)) {
        event_del(&stream->event);
        stream->paused = 1;
    }
}

/* ---- Opening -------------------------------------------------------------- */

static int stream_open_file(struct stream *stream)
{
    char path[PATH_MAX];

    run_folder_file(stream->output->folder, stream->local_rank,
                    stream->to == STDOUT_FILENO ? "stdout.log" : "stderr.log", path, sizeof path);
    return log_file_open(&stream->file, path) < 0 ? 1 : 0;
}

static int set_prefix(struct stream *stream)
{
    const struct output *output = stream->output;
    const struct prefix_words words = { output->options->role, output->host, stream->rank,
                                        stream->local_rank };
    char by_rank[64];

    prefix_ranks(&(unsigned char){ 1 }, 1, stream->rank, output->colours, by_rank, sizeof by_rank);
    stream->prefix =
        stream->route.by_rank ? strdup(by_rank) : prefix_expand(stream->route.prefix, &words);
    return stream->prefix ? 0 : -1;
}

static void begin_showing(struct stream *stream)
{
    struct output *output = stream->output;

    output_open_consoles(output);
    stream->lines.split = !output->to[stream->to]->is_terminal;
    stream->is_deduped = stream->route.by_rank && output->dedup.workers;
    if (stream->is_deduped)
        line_dedup_opened(&output->dedup, stream->local_rank);
}

static int stream_open_pipe(struct stream *stream)
{
    struct output *output = stream->output;
    int ends[2];

    if (stream->route.shown && set_prefix(stream) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    stream->fd = ends[0];
    stream->given = ends[1];
    fcntl(stream->fd, F_SETFL, O_NONBLOCK);
    stream->link = &output->streams;
    if ((stream->next = output->streams))
        stream->next->link = &stream->next;
    output->streams = stream;
    if (stream->route.shown)
        begin_showing(stream);
    event_assign(&stream->event, output->base, stream->fd, EV_READ | EV_PERSIST, readable, stream);
    return event_add(&stream->event, NULL);
}

int worker_stream_open(struct stream *stream, struct output *output, int rank, int local_rank,
                       int to)
{
    const struct origin origin = { rank, local_rank,           output->world,
                                   to,   output->terminal[to], output->folder->kept };

    stream_free(stream);
    stream->output = output;
    stream->rank = rank;
    stream->local_rank = local_rank;
    stream->to = to;
    stream->route = route_of(output->options, &origin);
    stream->is_kept = is_kept(output->options, to);
    if (stream->route.file && stream_open_file(stream) != 0)
        return 1;
    if (stream->route.through)
        return stream_open_pipe(stream);
    if (stream->route.nowhere)
        return (stream->given = fcntl(stdin_route_null(&output->input), F_DUPFD_CLOEXEC, 3)) < 0
                   ? -1
                   : 0;
    stream->given = stream->file.fd;
    stream->file.fd = -1;
    return 0;
}

void stream_given(struct stream *stream)
{
    if (stream->given >= 0)
        close(stream->given);
    stream->given = -1;
}

/* Reads only the bytes that are in the pipe now, since processes outside the job may continue to
 * write. */
void worker_stream_close(struct stream *stream)
{
    int left = 0;

    stream_given(stream);
    if (stream->fd >= 0)
        ioctl(stream->fd, FIONREAD, &left);
    while (left > 0) {
        char data[READ];
        const ssize_t got = read(stream->fd, data, left < READ ? (size_t)left : READ);

        if (got <= 0)
            break;
        feed(stream, data, (size_t)got);
        left -= (int)got;
    }
    stream_shut(stream);
}

/* ---- For the report ------------------------------------------------------- */

/* Reads the last bytes of a stream from its file, if the stream does not go through ctrun. */
static void read_last(struct stream *stream)
{
    char data[KEPT];

    if (!stream->route.file || stream->route.through)
        return;
    stream->last.used = 0;
    text_add(&stream->last, data, log_file_tail(&stream->file, data, sizeof data));
}

size_t stream_last_lines(struct stream *stream, int most, const char **at)
{
    const struct text *last = &stream->last;
    const char *begin, *end;

    read_last(stream);
    *at = "";
    if (last->used == 0)
        return 0;
    end = last->data + last->used;
    while (end > last->data && end[-1] == '\n')
        end--;
    begin = end;
    for (int lines = 0; begin > last->data; begin--)
        if (begin[-1] == '\n' && ++lines == most)
            break;
    *at = begin;
    return (size_t)(end - begin);
}

void stream_free(struct stream *stream)
{
    stream_shut(stream);
    log_file_free(&stream->file);
    free(stream->prefix);
    free(stream->last.data);
    stream_setup(stream);
}
