/* SPDX-License-Identifier: Apache-2.0 */
/* json_writer.h - writes JSON into a struct text.
 *
 * Each function writes one member with the comma before it.  name is NULL in an array.  Strings
 * become valid UTF-8, with U+FFFD in place of invalid bytes.  gap is written after each ',' and
 * ':'.  It is "" or, as Python writes JSON, " ". */
#ifndef RUNTIME_UTIL_JSON_WRITER_H
#define RUNTIME_UTIL_JSON_WRITER_H

#include <stdint.h>

#include "runtime/util/text.h"

struct json_text {
    struct text *to;
    const char *gap;
    int filled; /* true if the open object or array has a member */
};

void json_open(struct json_text *json, const char *name, char bracket); /* '{' or '[' */
void json_close(struct json_text *json, char bracket);

void json_null(struct json_text *json, const char *name);
void json_number(struct json_text *json, const char *name, long value);
void json_real(struct json_text *json, const char *name, double value);
/* Writes value / 1000 with three decimals, for instance nanoseconds as microseconds.  The result is
 * exact, where a double would round. */
void json_thousandths(struct json_text *json, const char *name, int64_t value);
void json_bool(struct json_text *json, const char *name, int value);
/* Writes null if value is NULL. */
void json_string(struct json_text *json, const char *name, const char *value);
void json_bytes(struct json_text *json, const char *name, const char *value, size_t size);

#define THOUSANDTHS_TEXT 32
/* Writes value / 1000 with three decimals, so -5 becomes "-0.005". */
void thousandths_print(int64_t value, char text[THOUSANDTHS_TEXT]);

/* Returns the length in bytes of the UTF-8 character at `at`, or 0 if it is invalid.  `left` bytes
 * may be read.  Overlong forms and surrogates are invalid, since a JSON reader would refuse the
 * whole line. */
size_t json_character(const unsigned char *at, size_t left);

#endif
