/* SPDX-License-Identifier: Apache-2.0 */
/* json_writer.c - appends JSON to a text. */
#include "runtime/util/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void json_add(struct json_text *json, const char *text)
{
    text_add(json->to, text, strlen(text));
}

size_t json_character(const unsigned char *at, size_t left)
{
    const size_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;

    if (size == 0 || size > left || *at > 0xf4)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)
        || (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

static void add_quoted(struct json_text *json, const char *value, size_t size)
{
    const unsigned char *at = (const unsigned char *)value, *const end = at + size;

    json_add(json, "\"");
    while (at < end) {
        const size_t length = json_character(at, (size_t)(end - at));
        char escape[8];

        if (length == 0) {
            json_add(json, "\\ufffd");
        } else if (*at == '"' || *at == '\\') {
            snprintf(escape, sizeof escape, "\\%c", *at);
            json_add(json, escape);
        } else if (*at == '\n') {
            json_add(json, "\\n");
        } else if (*at < ' ' || *at == 127) {
            snprintf(escape, sizeof escape, "\\u%04x", *at);
            json_add(json, escape);
        } else {
            text_add(json->to, (const char *)at, length);
        }
        at += length ? length : 1;
    }
    json_add(json, "\"");
}

static void begin_member(struct json_text *json, const char *name)
{
    if (json->filled) {
        json_add(json, ",");
        json_add(json, json->gap);
    }
    json->filled = 1;
    if (name) {
        add_quoted(json, name, strlen(name));
        json_add(json, ":");
        json_add(json, json->gap);
    }
}

void json_open(struct json_text *json, const char *name, char bracket)
{
    begin_member(json, name);
    text_add(json->to, &bracket, 1);
    json->filled = 0;
}

void json_close(struct json_text *json, char bracket)
{
    text_add(json->to, &bracket, 1);
    json->filled = 1;
}

static void member(struct json_text *json, const char *name, const char *value)
{
    begin_member(json, name);
    json_add(json, value);
}

void json_null(struct json_text *json, const char *name)
{
    member(json, name, "null");
}

void json_bool(struct json_text *json, const char *name, int value)
{
    member(json, name, value ? "true" : "false");
}

void json_number(struct json_text *json, const char *name, long value)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%ld", value);
    member(json, name, digits);
}

void json_real(struct json_text *json, const char *name, double value)
{
    char digits[64];

    snprintf(digits, sizeof digits, "%.3f", value);
    member(json, name, digits);
}

void thousandths_print(int64_t value, char text[THOUSANDTHS_TEXT])
{
    const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    snprintf(text, THOUSANDTHS_TEXT, "%s%" PRIu64 ".%03" PRIu64, value < 0 ? "-" : "", size / 1000,
             size % 1000);
}

void json_thousandths(struct json_text *json, const char *name, int64_t value)
{
    char text[THOUSANDTHS_TEXT];

    thousandths_print(value, text);
    member(json, name, text);
}

void json_bytes(struct json_text *json, const char *name, const char *value, size_t size)
{
    begin_member(json, name);
    add_quoted(json, value, size);
}

void json_string(struct json_text *json, const char *name, const char *value)
{
    if (value)
        json_bytes(json, name, value, strlen(value));
    else
        json_null(json, name);
}
