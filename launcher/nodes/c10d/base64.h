/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - the alphabet with + and /, padded, no line breaks. */
#ifndef LAUNCHER_NODES_C10D_BASE64_H
#define LAUNCHER_NODES_C10D_BASE64_H

#include <stddef.h>

/* How many bytes `size` letters hold at most, and how many letters `size` bytes take. */
#define BASE64_BYTES(size) ((size) / 4 * 3)
#define BASE64_LETTERS(size) (((size) + 2) / 3 * 4)

/* Returns the number of bytes written, or -1: not base64.  Bits that mean nothing must be 0. */
ptrdiff_t base64_decode(const char *text, size_t size, unsigned char *bytes);
/* Writes BASE64_LETTERS(size) letters and no 0 after them. */
void base64_encode(const unsigned char *bytes, size_t size, char *text);

#endif
