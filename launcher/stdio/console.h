/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - ctrun's standard output or error, written without ever waiting for its reader.
 *
 * Bytes that the reader does not take at once stand in a queue, and the event loop goes on noticing
 * deaths and signals.  When the queue is full ctrun stops reading from the workers, which then wait
 * as they would for a slow reader of their own. */
#ifndef LAUNCHER_STDIO_CONSOLE_H
#define LAUNCHER_STDIO_CONSOLE_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "runtime/util/text.h"

struct console {
    int to, fd;      /* 1 or 2; where its bytes go: the same, or another way to the same */
    int is_terminal; /* and then: */
    int on_bar;      /* a progress bar or line stands in its last line */
    enum console_way { WAY_OWN, WAY_SOCKET, WAY_CAREFUL, WAY_PLAIN } way;
    int unread;     /* its reader is gone: the errno that said so, else 0 */
    int complained; /* how often it failed; the first time is said */
    uint64_t dropped;
    struct text queue;
    size_t from; /* what of it is written already */
    struct event writable;
    void (*relieved)(void *arg); /* there is room, and may not have been */
    void *arg;
};

void console_open(struct console *console, struct event_base *base, int to,
                  void (*relieved)(void *arg), void *arg);

/* Are both the same terminal, pipe or file?  Then one console must serve them. */
int console_same(int a, int b);

/* Into the queue; console_flush() sends what goes. */
void console_add(struct console *console, const char *data, size_t size);
void console_flush(struct console *console);

/* Enough is queued: feed it no more until it is relieved. */
int console_full(const struct console *console);

/* Wipes a bar that ctrun or a line is about to be written over. */
void console_wipe(struct console *console);

/* How far ctrun is, in a line that the next one and all that is written later take the place of.
 * "": no more.  Not where it is no terminal. */
void console_progress(struct console *console, const char *text);

/* Waits until all is written, as long as bytes are taken every patience_ms and no
 * signal tells us to stop; says what could not be written. */
void console_finish(struct console *console, int patience_ms);
void console_close(struct console *console);

#endif
