/* SPDX-License-Identifier: Apache-2.0 */
/* json_writer.h - writes JSON into a struct text.
 *
 * A call writes one member, with its comma; name is NULL in an array.  Strings become valid UTF-8
 * (U+FFFD for invalid bytes).  gap follows ',' and ':': "" or, as Python writes it, " ". */
#ifndef RUNTIME_UTIL_JSON_WRITER_H
#define RUNTIME_UTIL_JSON_WRITER_H

#include <stdint.h>

#include "runtime/util/text.h"

struct json_text {
    struct text *to;
    const char *gap;
    int filled; /* the open object or array has a member */
};

void json_open(struct json_text *json, const char *name, char bracket); /* '{' or '[' */
void json_close(struct json_text *json, char bracket);

void json_null(struct json_text *json, const char *name);
void json_number(struct json_text *json, const char *name, long value);
void json_real(struct json_text *json, const char *name, double value);
/* Exact where a double would round: nanoseconds as microseconds. */
void json_thousandths(struct json_text *json, const char *name, int64_t value);
void json_bool(struct json_text *json, const char *name, int value);
void json_string(struct json_text *json, const char *name, const char *value); /* NULL: null */
void json_bytes(struct json_text *json, const char *name, const char *value, size_t size);

#define THOUSANDTHS_TEXT 32
void thousandths_print(int64_t value, char text[THOUSANDTHS_TEXT]); /* "-0.005" */

/* The length of the UTF-8 character at this place; 0: invalid.  Overlong forms and surrogates are
 * invalid, since a reader would refuse the whole line. */
size_t json_character(const unsigned char *at, size_t left);

#endif
