/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - pipes from the workers to the terminal.
 *
 * Only where ctrun's own descriptor is a terminal.  Into a pipe or a file the
 * workers inherit it and write for themselves, as under torchrun, so what they
 * said last is not known here.  What arrives is shown at once; a slow terminal
 * makes ctrun, and through the full pipe the worker, wait. */
#include "launcher/output.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 8192 /* bytes of stderr, for the report */

void terminal_setup(struct terminal *terminal, struct event_base *base)
{
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");

    *terminal = (struct terminal){ .base = base };
    terminal->shared[STDOUT_FILENO] = isatty(STDOUT_FILENO);
    terminal->shared[STDERR_FILENO] = isatty(STDERR_FILENO);
    terminal->colours = !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
}

void terminal_free(struct terminal *terminal)
{
    free(terminal->out.data);
    terminal->out = (struct text){ 0 };
}

static void flush(struct terminal *terminal, int to)
{
    const char *data = terminal->out.data;
    size_t left = terminal->out.used;

    while (left > 0) {
        const ssize_t wrote = write(to, data, left);

        if (wrote < 0 && errno == EAGAIN) /* somebody made our terminal non-blocking */
            poll(&(struct pollfd){ to, POLLOUT, 0 }, 1, -1);
        else if (wrote < 0 && errno != EINTR)
            break; /* the terminal is gone; SIGHUP will tell */
        data += wrote > 0 ? wrote : 0;
        left -= wrote > 0 ? (size_t)wrote : 0;
    }
    terminal->out.used = 0;
}

void terminal_wipe(struct terminal *terminal)
{
    if (terminal->on_bar) {
        text_add(&terminal->out, "\r\033[K", 4);
        flush(terminal, STDERR_FILENO);
    }
    terminal->on_bar = 0;
}

static void keep_last(struct stream *stream, const char *data, size_t size)
{
    struct text *last = &stream->last;

    text_add(last, data, size);
    if (last->used > 2 * KEPT) {
        memmove(last->data, last->data + last->used - KEPT, KEPT);
        last->used = KEPT;
    }
}

/* > 0: there may be more; 0: the end; -1: nothing now. */
static int read_some(struct stream *stream)
{
    char data[16384];
    const ssize_t got = read(stream->fd, data, sizeof data);

    if (got <= 0)
        return (int)got;
    if (stream->to == STDERR_FILENO)
        keep_last(stream, data, (size_t)got);
    lines_feed(&stream->lines, data, (size_t)got, &stream->terminal->on_bar,
               &stream->terminal->out);
    flush(stream->terminal, stream->to);
    return 1;
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *stream = arg;

    (void)fd;
    (void)what;
    if (read_some(stream) == 0)
        event_del(&stream->event); /* else it would be told again and again */
}

int stream_open(struct stream *stream, struct terminal *terminal, int rank, int to, int *worker_end)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    stream->terminal = terminal;
    stream->fd = ends[0];
    stream->to = to;
    *worker_end = ends[1];
    fcntl(stream->fd, F_SETFL, O_NONBLOCK);
    if (terminal->colours)
        snprintf(stream->lines.prefix, sizeof stream->lines.prefix, "\033[3%dm[%d]\033[0m ",
                 1 + rank % 6, rank);
    else
        snprintf(stream->lines.prefix, sizeof stream->lines.prefix, "[%d] ", rank);
    event_assign(&stream->event, terminal->base, stream->fd, EV_READ | EV_PERSIST, readable,
                 stream);
    return event_add(&stream->event, NULL);
}

void stream_close(struct stream *stream)
{
    if (stream->fd < 0)
        return;
    while (read_some(stream) > 0)
        continue;
    lines_end(&stream->lines, &stream->terminal->on_bar, &stream->terminal->out);
    flush(stream->terminal, stream->to);
    event_del(&stream->event);
    close(stream->fd);
    stream->fd = -1;
}

const char *stream_last_lines(struct stream *stream, int most)
{
    struct text *last = &stream->last;
    const char *at;

    if (last->used == 0)
        return "";
    text_add(last, "", 1);
    last->used--;
    while (last->used > 0 && last->data[last->used - 1] == '\n')
        last->data[--last->used] = '\0';
    at = last->data + last->used;
    for (int lines = 0; at > last->data; at--)
        if (at[-1] == '\n' && ++lines == most)
            break;
    return at;
}

void stream_free(struct stream *stream)
{
    free(stream->last.data);
    stream->last = (struct text){ 0 };
}
