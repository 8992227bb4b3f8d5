/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - four letters are three bytes.
 *
 * The reader is strict: one text for one row of bytes, so that what it accepted
 * is what everybody else reads. */
#include "launcher/nodes/c10d/base64.h"

#include <stdint.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0 to 63, or 64: no letter. */
static unsigned value_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return (unsigned)(letter - 'A');
    if (letter >= 'a' && letter <= 'z')
        return (unsigned)(letter - 'a' + 26);
    if (letter >= '0' && letter <= '9')
        return (unsigned)(letter - '0' + 52);
    return letter == '+' ? 62 : letter == '/' ? 63 : 64;
}

/* Four letters, of which the last `padding` are "=". */
static int decode_four(const char *text, int padding, unsigned char *bytes)
{
    uint32_t sum = 0;

    for (int i = 0; i < 4; i++) {
        const unsigned value = i < 4 - padding ? value_of(text[i]) : 0;

        if (value == 64)
            return -1;
        sum = sum << 6 | value;
    }
    for (int i = 0; i < 3 - padding; i++)
        bytes[i] = (unsigned char)(sum >> (16 - 8 * i));
    return sum & ((1u << (8 * padding)) - 1) ? -1 : 0;
}

ptrdiff_t base64_decode(const char *text, size_t size, unsigned char *bytes)
{
    size_t used = 0;

    if (size % 4)
        return -1;
    for (size_t i = 0; i < size; i += 4) {
        const int is_last = i + 4 == size;
        const int padding = !is_last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;

        if (decode_four(text + i, padding, bytes + used) < 0)
            return -1;
        used += 3 - (size_t)padding;
    }
    return (ptrdiff_t)used;
}

void base64_encode(const unsigned char *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i += 3, text += 4) {
        const size_t left = size - i;
        const uint32_t sum = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0)
                             | (left > 2 ? bytes[i + 2] : 0u);

        text[0] = letters[sum >> 18];
        text[1] = letters[sum >> 12 & 63];
        text[2] = '=';
        text[3] = '=';
        if (left > 1)
            text[2] = letters[sum >> 6 & 63];
        if (left > 2)
            text[3] = letters[sum & 63];
    }
}
