/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - writes to ctrun's standard output or error without waiting for the reader.
 *
 * A queue stores the bytes that the reader does not read at once, so the event loop still notices
 * deaths and signals.  When the queue is full, ctrun stops reading from the workers.  The workers
 * then wait, as they would without ctrun if the reader were slow. */
#ifndef LAUNCHER_STDIO_CONSOLE_H
#define LAUNCHER_STDIO_CONSOLE_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "runtime/util/text.h"

struct console {
    int to, fd;      /* 1 or 2; descriptor to write to, which is `to` or `to` opened again */
    int is_terminal; /* 1 if `to` is a terminal */
    int on_bar;      /* 1 if the last line on the terminal is a progress bar or progress line */
    enum console_way { WAY_OWN, WAY_SOCKET, WAY_CAREFUL, WAY_PLAIN } way;
    int unread;     /* errno of the write that showed that the reader is gone, else 0 */
    int complained; /* number of failed writes; only the first is logged */
    uint64_t dropped;
    struct text queue;
    size_t from; /* index in the queue of the first unwritten byte */
    struct event writable;
    void (*relieved)(void *arg); /* called when the queue has room, even if it was not full */
    void *arg;
};

void console_open(struct console *console, struct event_base *base, int to,
                  void (*relieved)(void *arg), void *arg);

/* True if `a` and `b` are the same terminal, pipe or file.  One console must then write to both of
 * them. */
int console_same(int a, int b);

/* Adds bytes to the queue.  console_flush() writes as many bytes as the reader accepts now. */
void console_add(struct console *console, const char *data, size_t size);
void console_flush(struct console *console);

/* True if the queue is full.  The caller must not add more bytes until relieved() is called. */
int console_full(const struct console *console);

/* Removes a progress bar in the last line, before a log line of ctrun or a worker's line is written
 * there. */
void console_wipe(struct console *console);

/* Shows ctrun's progress in a line that any later output replaces.  An empty text removes the line.
 * Does nothing if the console is not a terminal. */
void console_progress(struct console *console, const char *text);

/* Waits until all bytes are written.  Gives up if the reader accepts no byte for patience_ms, or if
 * a signal asks ctrun to stop.  console_close() then logs how many bytes were dropped. */
void console_finish(struct console *console, int patience_ms);
void console_close(struct console *console);

#endif
