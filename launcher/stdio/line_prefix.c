/* SPDX-License-Identifier: Apache-2.0 */
/* line_prefix.c - replaces names in torchrun's templates, which have the syntax of Python's
 * string.Template.  $x and ${x} are names, and $$ is a dollar sign.  Everything else is unchanged,
 * including a name that has no value. */
#include "launcher/stdio/line_prefix.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/text.h"
#include "runtime/util/ranges.h"

static int prefix_is_word(char c, int first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

/* Returns the length of the name that begins at `text`, or 0 if no name begins there. */
static size_t name_length(const char *text)
{
    size_t length = 0;

    while (prefix_is_word(text[length], length == 0))
        length++;
    return length;
}

static int prefix_named(const char *name, size_t length, const char *wanted)
{
    return strlen(wanted) == length && !strncmp(name, wanted, length);
}

/* Adds the value of a name.  Returns 1, or 0 if the name has no value. */
static int add_value(struct text *out, const char *name, size_t length,
                     const struct prefix_words *words)
{
    char number[16];
    const char *value = number;

    if (prefix_named(name, length, "role_name"))
        value = words->role;
    else if (prefix_named(name, length, "hostname"))
        value = words->host;
    else if (prefix_named(name, length, "rank"))
        snprintf(number, sizeof number, "%d", words->rank);
    else if (prefix_named(name, length, "local_rank"))
        snprintf(number, sizeof number, "%d", words->local_rank);
    else
        return 0;
    text_add(out, value, strlen(value));
    return 1;
}

/* Expands the text after a '$'.  Returns the number of bytes that were expanded, or 0 if the '$' is
 * plain text. */
static size_t prefix_macro(struct text *out, const char *at, const struct prefix_words *words)
{
    const int braces = *at == '{';
    const size_t length = name_length(at + braces);

    if (*at == '$') {
        text_add(out, "$", 1);
        return 1;
    }
    if (length == 0 || (braces && at[1 + length] != '}'))
        return 0;
    return add_value(out, at + braces, length, words) ? length + 2 * (size_t)braces : 0;
}

char *prefix_expand(const char *template, const struct prefix_words *words)
{
    struct text out = { 0 };

    for (const char *at = template; *at; at++) {
        const size_t used = *at == '$' ? prefix_macro(&out, at + 1, words) : 0;

        if (used == 0)
            text_add(&out, at, 1);
        at += used;
    }
    text_add(&out, "", 1);
    return out.data;
}

static int is_in(const void *set, int i)
{
    return ((const unsigned char *)set)[i / 8] >> i % 8 & 1;
}

void prefix_ranks(const unsigned char *set, int size, int base, int coloured, char *text,
                  size_t bytes)
{
    char ranks[96];
    const int count = ranges_print(base, size, is_in, set, ranks, sizeof ranks);

    if (!coloured)
        snprintf(text, bytes, "[%s] ", ranks);
    else if (count == 1)
        snprintf(text, bytes, "\033[3%dm[%s]\033[0m ", 2 + atoi(ranks) % 5, ranks); /* never red */
    else
        snprintf(text, bytes, "\033[1m[%s]\033[0m ", ranks);
}
