/* SPDX-License-Identifier: Apache-2.0 */
/* line_filter.c - see line_filter.h. */
#include "launcher/stdio/line_filter.h"

#include <string.h>

/* Does the line go on with the word at word?  A ",," of the word is one ','. */
static int begins(const char *word, const char *line, const char *end)
{
    while (*word && !(*word == ',' && word[1] != ',')) {
        if (line == end || *line++ != *word)
            return 0;
        word += *word == ',' ? 2 : 1;
    }
    return 1;
}

/* Behind its comma; NULL: it is the last one. */
static const char *next_word(const char *word)
{
    while (*word && !(*word == ',' && word[1] != ','))
        word += *word == ',' ? 2 : 1;
    return *word ? word + 1 : NULL;
}

int filters_match(const char *list, const char *line, size_t size)
{
    for (const char *word = list; word; word = next_word(word))
        for (size_t i = 0; i <= size; i++)
            if (begins(word, line + i, line + size))
                return 1;
    return 0;
}
