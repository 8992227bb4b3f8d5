/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - writes ctrun's standard output or error without ever waiting for the reader.
 *
 * Bytes that the reader does not take at once go to a queue, and the event loop keeps noticing
 * deaths and signals.  When the queue is full, ctrun stops reading from the workers.  Then they
 * wait, as they would for a slow reader without ctrun. */
#ifndef LAUNCHER_STDIO_CONSOLE_H
#define LAUNCHER_STDIO_CONSOLE_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "runtime/util/text.h"

struct console {
    int to, fd;      /* 1 or 2; descriptor to write to: the same, or another for it */
    int is_terminal; /* if so: */
    int on_bar;      /* its last line shows a progress bar or a progress line */
    enum console_way { WAY_OWN, WAY_SOCKET, WAY_CAREFUL, WAY_PLAIN } way;
    int unread;     /* errno by which the reader was found gone; 0: it is there */
    int complained; /* number of failures; the first one is logged */
    uint64_t dropped;
    struct text queue;
    size_t from; /* where the unwritten part of the queue starts */
    struct event writable;
    void (*relieved)(void *arg); /* called when there is room; perhaps there always was */
    void *arg;
};

void console_open(struct console *console, struct event_base *base, int to,
                  void (*relieved)(void *arg), void *arg);

/* Says whether both are the same terminal, pipe or file.  Then one console must serve both. */
int console_same(int a, int b);

/* Adds bytes to the queue; console_flush() writes what can be written. */
void console_add(struct console *console, const char *data, size_t size);
void console_flush(struct console *console);

/* Says whether the queue is full.  Then add no more until relieved() is called. */
int console_full(const struct console *console);

/* Removes the bar in the last line, before ctrun or a line is written there. */
void console_wipe(struct console *console);

/* Shows ctrun's progress in a line that any later output replaces.  "": removes the line.  Does
 * nothing if the console is not a terminal. */
void console_progress(struct console *console, const char *text);

/* Waits until all is written.  Gives up if no byte is taken for patience_ms, or a signal asks ctrun
 * to stop; logs how much could not be written. */
void console_finish(struct console *console, int patience_ms);
void console_close(struct console *console);

#endif
