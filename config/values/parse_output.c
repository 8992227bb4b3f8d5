/* SPDX-License-Identifier: Apache-2.0 */
/* parse_output.c - parses lists of ranks, and the options that say where the workers' input and
 * output go. */
#include "config/values/parse_output.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses "3" for all ranks, or "0:3,1:1" for single local ranks.  The local rank and its value are
 * one decimal digit each. */
int parse_streams(const char *text, void *field, struct why *why)
{
    struct stream_spec spec = { 0 };
    const char *at = text;

    if (*at >= '0' && *at <= '3' && !at[1]) {
        memset(&spec, *at - '0', sizeof spec);
        *(struct stream_spec *)field = spec;
        return 0;
    }
    do {
        if (!isdigit((unsigned char)at[0]) || at[1] != ':' || at[2] < '0' || at[2] > '3'
            || (at[3] && at[3] != ','))
            return value_wrong(why,
                               "%s does not match: write 0 to 3 (1 is stdout, 2 stderr, 3 both) "
                               "for all ranks, or a "
                               "list such as 0:3,1:1 for local ranks 0 to 9",
                               text);
        spec.ranks[*at - '0'] = (unsigned char)(at[2] - '0');
        at += 3;
    } while (*at++ == ',');
    *(struct stream_spec *)field = spec;
    return 0;
}

int parse_rank_filter(const char *text, void *field, struct why *why)
{
    for (const char *at = text; *text;) {
        char item[32];
        const size_t length = strcspn(at, ",");
        int rank;

        snprintf(item, sizeof item, "%.*s", (int)length, at);
        if (value_int(item, &rank) < 0)
            return value_wrong(why, "'%s' is not a comma-separated list of integers", text);
        if (!at[length])
            break;
        at += length + 1;
    }
    return parse_text(text, field, why);
}

int rank_filter_has(const char *text, int local_rank)
{
    if (!text || !*text)
        return 1;
    for (;; text++) {
        if (strtol(text, (char **)&text, 10) == local_rank)
            return 1;
        text += strcspn(text, ",");
        if (!*text)
            return 0;
    }
}

/* Reads one rank of a list, which is a number or @last.  Returns -1 if the text is neither. */
static int one_rank(const char **at, int world)
{
    int rank = 0;

    if (!strncmp(*at, "@last", 5)) {
        *at += 5;
        return world - 1;
    }
    if (!isdigit((unsigned char)**at))
        return -1;
    while (isdigit((unsigned char)**at)) {
        rank = rank < 100000000 ? rank * 10 + (**at - '0') : rank;
        ++*at;
    }
    return rank;
}

/* Reads an item of a list ("4", "4-7", "@last" or "*") and the separator behind the item.  Returns
 * 1, or 0 at the end of the list, or -1 if the text is not an item. */
static int next_range(const char **at, int world, int *first, int *last)
{
    if (!**at || **at == ':')
        return 0;
    if (**at == '*') {
        ++*at;
        *first = 0;
        *last = world - 1;
    } else {
        if ((*first = *last = one_rank(at, world)) < 0)
            return -1;
        if (**at == '-') {
            ++*at;
            if ((*last = one_rank(at, world)) < 0)
                return -1;
        }
    }
    if (**at == ',' && (*at)[1] && (*at)[1] != ':')
        ++*at;
    else if (**at && **at != ':')
        return -1;
    return 1;
}

int ranks_have(const char *text, int rank, int world)
{
    int first, last;

    while (next_range(&text, world, &first, &last) > 0)
        if (rank >= first && rank <= last)
            return 1;
    return 0;
}

static int output_check_ranks(const char *text, const char *whole, struct why *why)
{
    const char *at = text;
    int first, last, more;

    while ((more = next_range(&at, 1 << 30, &first, &last)) > 0)
        continue;
    if (more < 0 || at == text)
        return value_wrong(why, "'%s' is not a list of ranks; write 0,4-7,@last or *", whole);
    return 0;
}

int parse_ranks(const char *text, void *field, struct why *why)
{
    if (strchr(text, ':'))
        return value_wrong(why, "'%s' is not a list of ranks; write 0,4-7,@last or *", text);
    return output_check_ranks(text, text, why) < 0 ? -1 : parse_text(text, field, why);
}

int parse_stdin(const char *text, void *field, struct why *why)
{
    struct stdin_to to = { STDIN_RANK, 0 };

    if (!strcmp(text, "all"))
        to.kind = STDIN_ALL;
    else if (!strcmp(text, "none"))
        to.kind = STDIN_NONE;
    else if (value_int(text, &to.rank) < 0 || to.rank < 0)
        return value_wrong(why, "'%s' is not a rank; write a rank, all or none", text);
    *(struct stdin_to *)field = to;
    return 0;
}

int parse_exec_on(const char *text, void *field, struct why *why)
{
    const char *colon = strchr(text, ':');
    const char *command = colon ? colon + 1 + strspn(colon + 1, " ") : "";

    if (!*command)
        return value_wrong(
            why, "'%s': write ranks, a colon and a command, as --exec-on='3:gdb --args'", text);
    if (output_check_ranks(text, text, why) < 0)
        return -1;
    *(struct exec_on *)field = (struct exec_on){ text, command };
    return 0;
}
