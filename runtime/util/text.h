/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - a growing buffer of bytes. */
#ifndef RUNTIME_UTIL_TEXT_H
#define RUNTIME_UTIL_TEXT_H

#include <stddef.h>

/* Zeroed, it is empty.  The caller frees data. */
struct text {
    char *data;
    size_t used, room;
};

/* Out of memory: the bytes are dropped, the job goes on. */
void text_add(struct text *text, const char *data, size_t size);

/* The same, and of all bytes so far only the last ones are kept: `most`, or up to twice as many. */
void text_add_last(struct text *text, const char *data, size_t size, size_t most);

/* The same for words, cut at 2 KiB. */
void text_print(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, with U+FFFD for each invalid byte or broken character of UTF-8. */
void text_add_utf8(struct text *text, const char *data, size_t size);

/* Calls it with each line that is there as a whole, without its end, and takes it off. */
void text_take_lines(struct text *text, void (*take)(void *arg, char *line), void *arg);

#endif
