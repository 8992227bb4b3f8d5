/* SPDX-License-Identifier: Apache-2.0 */
/* parse_deadline.c - parses a time of day, a time since the epoch, or a duration. */
#include "config/values/parse_deadline.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define EARLIEST INT64_C(1000000000) /* seconds since the epoch; a smaller number is a duration */
#define LATEST INT64_C(9000000000)   /* the year 2255; a later time in nanoseconds overflows */

static int deadline_whole(const char *text, char end_with, int64_t *value, const char **end)
{
    char *after;

    errno = 0;
    *value = isdigit((unsigned char)*text) ? strtoll(text, &after, 10) : -1;
    if (*value < 0 || errno || *value > LATEST || *after != end_with)
        return -1;
    *end = after;
    return 0;
}

int deadline_of_epoch(const char *text, int64_t *at)
{
    const char *end;
    int64_t value;

    if (deadline_whole(text + (*text == '@'), 0, &value, &end) < 0 || value < EARLIEST)
        return -1;
    *at = value;
    return 0;
}

/* Parses "HH:MM".  *at becomes the next time at which the local clock shows this time of day. */
static int of_clock(const char *text, int64_t now, int64_t *at)
{
    const time_t start = (time_t)now;
    const char *end;
    int64_t hour, minute, then;
    struct tm day;

    if (deadline_whole(text, ':', &hour, &end) < 0 || deadline_whole(end + 1, 0, &minute, &end) < 0
        || hour > 23 || minute > 59 || !localtime_r(&start, &day))
        return -1;
    day.tm_hour = (int)hour;
    day.tm_min = (int)minute;
    day.tm_sec = 0;
    day.tm_isdst = -1;
    then = mktime(&day);
    if (then <= now) {
        day.tm_mday++;
        day.tm_isdst = -1;
        then = mktime(&day);
    }
    *at = then;
    return 0;
}

static int of_duration(const char *text, int64_t now, int64_t *at)
{
    static const struct {
        char letter;
        int seconds;
    } units[] = { { 0, 1 }, { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    const char *end;
    int64_t value;

    for (int i = 0; i < 5; i++)
        if (deadline_whole(text, units[i].letter, &value, &end) == 0 && (!*end || !end[1])
            && value > 0 && value <= (LATEST - now) / units[i].seconds) {
            *at = now + value * units[i].seconds;
            return 0;
        }
    return -1;
}

int64_t deadline_before(int64_t end, int64_t now)
{
    const int64_t half = end > now ? (end - now) / 2 : 0;

    return end - (half < DEADLINE_MARGIN ? half : DEADLINE_MARGIN);
}

int deadline_of_words(const char *text, int64_t now, int64_t *at)
{
    if (*text == '@' || deadline_of_epoch(text, at) == 0)
        return deadline_of_epoch(text, at);
    return of_duration(text, now, at) == 0 ? 0 : of_clock(text, now, at);
}

int parse_deadline(const char *text, void *field, struct why *why)
{
    int64_t at;

    if (deadline_of_words(text, 0, &at) < 0)
        return value_wrong(why,
                           "'%s' is not a deadline; write 90s, 30m, 2h or 1d from now, HH:MM by "
                           "the clock, or @SECONDS since the epoch",
                           text);
    *(const char **)field = text;
    return 0;
}
