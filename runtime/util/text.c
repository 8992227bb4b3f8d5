/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - appends bytes to a buffer.  Invalid UTF-8 is replaced as by Python's errors="replace",
 * which torchrun uses for its output. */
#include "runtime/util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *data, size_t size)
{
    if (text->used + size > text->room) {
        const size_t room = 2 * text->room + size;
        char *grown = realloc(text->data, room);

        if (!grown)
            return;
        text->data = grown;
        text->room = room;
    }
    if (size > 0)
        memcpy(text->data + text->used, data, size);
    text->used += size;
}

void text_add_last(struct text *text, const char *data, size_t size, size_t most)
{
    if (size > most) {
        data += size - most;
        size = most;
    }
    text_add(text, data, size);
    if (text->used > 2 * most) {
        memmove(text->data, text->data + text->used - most, most);
        text->used = most;
    }
}

void text_print(struct text *text, const char *format, ...)
{
    char words[2048];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(words, sizeof words, format, args);
    va_end(args);
    text_add(text, words, (size_t)used < sizeof words ? (size_t)used : sizeof words - 1);
}

/* Returns how many bytes follow the first byte of a UTF-8 character, or -1 if no character begins
 * with that byte.  Sets the bounds of the second byte in low and high, which exclude overlong
 * forms, surrogates and characters above U+10FFFF. */
static int bytes_after(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80)
        return 0;
    if (first >= 0xC2 && first <= 0xDF)
        return 1;
    if ((first & 0xF0) == 0xE0)
        return 2;
    return first >= 0xF0 && first <= 0xF4 ? 3 : -1;
}

/* Returns the length in bytes of the UTF-8 character at data and sets *whole to 1.  If the
 * character is broken, returns the length of its valid part, at least 1, and sets *whole to 0. */
static size_t text_character(const unsigned char *data, size_t size, int *whole)
{
    unsigned char low, high;
    const int more = bytes_after(data[0], &low, &high);
    size_t length = 1;

    while ((int)length <= more && length < size && data[length] >= low && data[length] <= high) {
        low = 0x80;
        high = 0xBF;
        length++;
    }
    *whole = (int)length == more + 1;
    return length;
}

void text_add_utf8(struct text *text, const char *data, size_t size)
{
    const char *good = data, *const end = data + size;

    while (data < end) {
        int whole = 1;
        size_t length = 1;

        if ((unsigned char)*data >= 0x80)
            length = text_character((const unsigned char *)data, (size_t)(end - data), &whole);
        if (!whole) {
            text_add(text, good, (size_t)(data - good));
            text_add(text, "\xEF\xBF\xBD", 3);
            good = data + length;
        }
        data += length;
    }
    text_add(text, good, (size_t)(end - good));
}

void text_take_lines(struct text *text, void (*take)(void *arg, char *line), void *arg)
{
    char *end;

    while (text->used && (end = memchr(text->data, '\n', text->used))) {
        const size_t length = (size_t)(end - text->data) + 1;

        *end = 0;
        take(arg, text->data);
        memmove(text->data, end + 1, text->used - length);
        text->used -= length;
    }
}
