/* SPDX-License-Identifier: Apache-2.0 */
/* json_check.h - is it JSON?  A strict reader that keeps nothing: RFC 8259, and that strings
 * are UTF-8. */
#ifndef TESTS_JSON_CHECK_H
#define TESTS_JSON_CHECK_H

#include <ctype.h>
#include <string.h>

static const char *json_value(const char *at, const char *end, int depth);

static const char *json_space(const char *at, const char *end)
{
    while (at < end && *at && strchr(" \t\r\n", *at))
        at++;
    return at;
}

/* Behind one character of a string; NULL: it may not stand there. */
static const char *json_character(const char *at, const char *end)
{
    const unsigned char c = (unsigned char)*at++;
    int more = c < 0x80 ? 0 : c < 0xc2 ? -1 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : -1;

    if (c < ' ' || more < 0)
        return NULL;
    if (c == '\\' && at < end && *at == 'u') {
        for (more = 4, at++; more > 0 && at < end && isxdigit((unsigned char)*at); more--)
            at++;
        return more ? NULL : at;
    }
    if (c == '\\')
        return at < end && *at && strchr("\"\\/bfnrt", *at) ? at + 1 : NULL;
    for (; more > 0; more--)
        if (at == end || ((unsigned char)*at++ & 0xc0) != 0x80)
            return NULL;
    return at;
}

static const char *json_string_at(const char *at, const char *end)
{
    if (at == end || *at++ != '"')
        return NULL;
    while (at && at < end && *at != '"')
        at = json_character(at, end);
    return at && at < end ? at + 1 : NULL;
}

static const char *json_number_at(const char *at, const char *end)
{
    const char *from;

    at += at < end && *at == '-';
    from = at;
    while (at < end && isdigit((unsigned char)*at))
        at++;
    if (at == from || (*from == '0' && at > from + 1))
        return NULL;
    if (at < end && *at == '.') {
        from = ++at;
        while (at < end && isdigit((unsigned char)*at))
            at++;
        if (at == from)
            return NULL;
    }
    return at;
}

static const char *json_members(const char *at, const char *end, char last, int depth)
{
    at = json_space(at + 1, end);
    if (at < end && *at == last)
        return at + 1;
    while (at && at < end) {
        if (last == '}') {
            at = json_string_at(json_space(at, end), end);
            at = at ? json_space(at, end) : NULL;
            if (!at || at == end || *at++ != ':')
                return NULL;
        }
        at = json_value(at, end, depth + 1);
        at = at ? json_space(at, end) : NULL;
        if (at && at < end && *at == last)
            return at + 1;
        if (!at || at == end || *at++ != ',')
            return NULL;
    }
    return NULL;
}

static const char *json_value(const char *at, const char *end, int depth)
{
    at = json_space(at, end);
    if (at == end || depth > 32)
        return NULL;
    if (*at == '{')
        return json_members(at, end, '}', depth);
    if (*at == '[')
        return json_members(at, end, ']', depth);
    if (*at == '"')
        return json_string_at(at, end);
    if (end - at >= 4 && (!memcmp(at, "true", 4) || !memcmp(at, "null", 4)))
        return at + 4;
    if (end - at >= 5 && !memcmp(at, "false", 5))
        return at + 5;
    return json_number_at(at, end);
}

static inline int is_json(const char *text, size_t size)
{
    const char *const end = text + size, *at = json_value(text, end, 0);

    return at && json_space(at, end) == end;
}

#endif
