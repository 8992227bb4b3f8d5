/* SPDX-License-Identifier: Apache-2.0 */
/* console.c - see console.h.
 *
 * Setting O_NONBLOCK on the inherited descriptor would affect every process that shares the open
 * file, including the shell and the workers.  So ctrun opens a pipe or a terminal again, by its
 * name in /proc.  If the kernel refuses this, as for another user's terminal, ctrun writes small
 * pieces, each when poll() reports room.  For a socket, each send() has the flag MSG_DONTWAIT.
 * ctrun writes to a file directly, since a file has no reader to wait for. */
#include "launcher/stdio/console.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/util/progress_line.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define FULL (1 << 20)
#define PIECE 512 /* POSIX's smallest PIPE_BUF; a pipe with room accepts a whole piece */

int console_same(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev
           && one.st_ino == other.st_ino && one.st_rdev == other.st_rdev;
}

static void choose_way(struct console *console)
{
    struct stat found;
    char name[32];

    console->fd = console->to;
    console->way = WAY_PLAIN;
    if (fstat(console->to, &found) < 0)
        return;
    if (S_ISSOCK(found.st_mode))
        console->way = WAY_SOCKET;
    else if (S_ISFIFO(found.st_mode) || console->is_terminal) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", console->to);
        console->fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        console->way = console->fd >= 0 ? WAY_OWN : WAY_CAREFUL;
        if (console->fd < 0)
            console->fd = console->to;
    }
}

static void writable(evutil_socket_t fd, short what, void *arg)
{
    struct console *console = arg;

    (void)fd;
    (void)what;
    console_flush(console);
    /* Call relieved() even if the queue was not full at the start of this function.  A flush
     * between two turns of the loop may have made room, and only this call wakes the streams that
     * wait for room. */
    if (!console_full(console))
        console->relieved(console->arg);
}

void console_open(struct console *console, struct event_base *base, int to,
                  void (*relieved)(void *arg), void *arg)
{
    *console = (struct console){ .to = to, .relieved = relieved, .arg = arg };
    console->is_terminal = isatty(to);
    choose_way(console);
    event_assign(&console->writable, base, console->fd, EV_WRITE, writable, console);
}

int console_full(const struct console *console)
{
    return console->queue.used - console->from > FULL;
}

void console_add(struct console *console, const char *data, size_t size)
{
    if (console->unread)
        console->dropped += size;
    else
        text_add(&console->queue, data, size);
}

void console_wipe(struct console *console)
{
    if (console->on_bar)
        console_add(console, "\r\033[K", 4);
    console->on_bar = 0;
}

/* Shows a progress line.  Moves the cursor back to the start of the line, so that the text of
 * another process, such as ssh or the terminal's ^C, does not follow the text of the progress
 * line. */
void console_progress(struct console *console, const char *text)
{
    const int room = progress_room(console->to);
    char line[256];

    if (room == 0)
        return;
    console_wipe(console);
    if (*text) {
        snprintf(line, sizeof line, "ctrun: %s", text);
        console_add(console, line, strnlen(line, (size_t)room));
        console_add(console, "\r", 1);
        console->on_bar = 1;
    }
    console_flush(console);
}

static ssize_t console_write_some(const struct console *console, const char *data, size_t size)
{
    switch (console->way) {
    case WAY_SOCKET:
        return send(console->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case WAY_CAREFUL:
        if (poll(&(struct pollfd){ console->fd, POLLOUT, 0 }, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        return write(console->fd, data, size < PIECE ? size : PIECE);
    default:
        return write(console->fd, data, size);
    }
}

/* Drops the queue after an error.  If the reader is gone, later bytes are dropped, too, since no
 * reader will come back.  After other errors ctrun continues to write, since a full disk may have
 * room again. */
static void console_give_up(struct console *console, int cause)
{
    console->unread = cause == EPIPE || cause == EIO || cause == ECONNRESET ? cause : 0;
    console->dropped += console->queue.used - console->from;
    console->queue.used = console->from = 0;
    if (console->complained++ || console->to != STDOUT_FILENO)
        return;
    log_line(LOG_ERROR, "cannot write to standard output: %s",
             cause == EPIPE ? "its reader is gone" : strerror(cause));
}

void console_flush(struct console *console)
{
    struct text *queue = &console->queue;

    while (console->from < queue->used) {
        const ssize_t wrote =
            console_write_some(console, queue->data + console->from, queue->used - console->from);

        if (wrote >= 0)
            console->from += (size_t)wrote;
        else if (errno == EAGAIN) {
            event_add(&console->writable, NULL);
            if (console->from > FULL / 4) { /* removes the written part, to make room */
                memmove(queue->data, queue->data + console->from, queue->used - console->from);
                queue->used -= console->from;
                console->from = 0;
            }
            return;
        } else if (errno != EINTR) {
            console_give_up(console, errno);
            return;
        }
    }
    queue->used = console->from = 0;
}

/* True if a signal asks ctrun to stop.  Signals are blocked here, and the event loop no longer
 * reads them. */
static int told_to_stop(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1
           || sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1;
}

void console_finish(struct console *console, int patience_ms)
{
    int64_t deadline = clock_ms() + patience_ms;

    for (;;) {
        const size_t before = console->queue.used - console->from;

        console_flush(console);
        if (console->queue.used == console->from)
            break;
        if (console->queue.used - console->from < before)
            deadline = clock_ms() + patience_ms;
        else if (told_to_stop() || clock_ms() >= deadline) {
            console->dropped += before;
            console->queue.used = console->from = 0;
            break;
        }
        poll(&(struct pollfd){ console->fd, POLLOUT, 0 }, 1, 50);
    }
    event_del(&console->writable);
}

/* Logs how many bytes were dropped.  Logs nothing if ctrun would have to wait for the reader of
 * stderr. */
static void say_what_was_dropped(const struct console *console)
{
    if (console->dropped == 0 || console->complained
        || poll(&(struct pollfd){ STDERR_FILENO, POLLOUT, 0 }, 1, 0) != 1)
        return;
    log_line(LOG_ERROR, "standard %s was not read: %llu bytes of it were dropped",
             console->to == STDOUT_FILENO ? "output" : "error",
             (unsigned long long)console->dropped);
}

void console_close(struct console *console)
{
    event_del(&console->writable);
    if (console->fd != console->to)
        close(console->fd);
    free(console->queue.data);
    console->queue = (struct text){ 0 };
    say_what_was_dropped(console);
}
