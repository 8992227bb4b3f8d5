/* SPDX-License-Identifier: Apache-2.0 */
/* parse_duration.c - parses a duration such as 10s or 5m. */
#include "config/values/parse_duration.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int duration_seconds(const char *text)
{
    static const struct {
        char letter;
        int seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    char *end;
    const long value = strtol(text, &end, 10);

    if (!isdigit((unsigned char)*text) || value < 1 || value > 1000000)
        return -1;
    if (!*end)
        return (int)value;
    for (int i = 0; i < 4; i++)
        if (*end == units[i].letter && !end[1] && value <= 0x7fffffff / units[i].seconds)
            return (int)value * units[i].seconds;
    return -1;
}

int parse_duration(const char *text, void *field, struct why *why)
{
    const int seconds = strcmp(text, "0") != 0 ? duration_seconds(text) : 0;

    if (seconds < 0)
        return value_wrong(why, "'%s' is not a time; write 10s or 5m (s, m, h, d), or 0", text);
    *(int *)field = seconds;
    return 0;
}
