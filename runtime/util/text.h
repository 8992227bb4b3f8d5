/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - a growing buffer of bytes. */
#ifndef RUNTIME_UTIL_TEXT_H
#define RUNTIME_UTIL_TEXT_H

#include <stddef.h>

/* A zeroed struct is an empty buffer.  The caller frees data. */
struct text {
    char *data;
    size_t used, room;
};

/* Appends the bytes.  If memory is out, drops them, so that the job can continue. */
void text_add(struct text *text, const char *data, size_t size);

/* Appends the bytes and may drop the oldest bytes of the buffer.  At least the last `most` bytes
 * are kept, and at most twice as many. */
void text_add_last(struct text *text, const char *data, size_t size, size_t most);

/* Appends a formatted text, cut at 2 KiB. */
void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the bytes, with U+FFFD in place of each invalid byte or broken character of UTF-8. */
void text_add_utf8(struct text *text, const char *data, size_t size);

/* Calls take() with each complete line, without the newline, and removes the line from the
 * buffer. */
void text_take_lines(struct text *text, void (*take)(void *arg, char *line), void *arg);

#endif
