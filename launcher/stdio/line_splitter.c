/* SPDX-License-Identifier: Apache-2.0 */
/* line_splitter.c - see line_splitter.h.  Pure: no descriptor is touched. */
#include "launcher/stdio/line_splitter.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20) /* a line without end is cut here */

static void end_line(struct lines *lines, const struct line_taker *to)
{
    to->line(to->arg, lines->held.data, lines->held.used);
    lines->held.used = 0;
    lines->bar = 0;
}

/* After a '\r': what stood there is written over.  Where that has ended a line
 * already, only its '\n' is left to skip. */
static const char *after_return(struct lines *lines, const char *data)
{
    if (lines->split)
        data += *data == '\n';
    else if (*data == '\r')
        return data;
    else if (*data != '\n') {
        lines->held.used = 0;
        lines->bar = 1;
    }
    lines->returned = 0;
    return data;
}

void lines_feed(struct lines *lines, const char *data, size_t size, const struct line_taker *to)
{
    const char *const end = data + size;

    while (data < end) {
        const char *stop;

        if (lines->returned && (data = after_return(lines, data)) == end)
            break;
        stop = data;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        text_add(&lines->held, data, (size_t)(stop - data));
        if (stop < end && *stop == '\r')
            lines->returned = 1;
        if (stop < end ? *stop == '\n' || lines->split : lines->held.used > LONGEST)
            end_line(lines, to);
        data = stop + (stop < end);
    }
    if (lines->held.used > 0 && (lines->bar || lines->returned)) {
        lines->bar = 1;
        to->bar(to->arg, lines->held.data, lines->held.used);
    }
}

void lines_end(struct lines *lines, const struct line_taker *to)
{
    if (lines->held.used > 0)
        end_line(lines, to);
    free(lines->held.data);
    lines->held = (struct text){ 0 };
    lines->returned = lines->bar = 0;
}
