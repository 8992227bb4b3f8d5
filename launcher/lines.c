/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h.  Pure: no descriptor is touched. */
#include "launcher/lines.h"

#include <stdlib.h>
#include <string.h>

#define WIPE "\r\033[K" /* to the line's start, and nothing right of it */
#define LONGEST 65536   /* a line without end is cut here */

/* Out of memory: the bytes are dropped, the job goes on. */
void text_add(struct text *text, const char *data, size_t size)
{
    if (text->used + size > text->room) {
        const size_t room = 2 * text->room + size;
        char *grown = realloc(text->data, room);

        if (!grown)
            return;
        text->data = grown;
        text->room = room;
    }
    if (size > 0)
        memcpy(text->data + text->used, data, size);
    text->used += size;
}

static void show(struct lines *lines, const char *end, int *on_bar, struct text *out)
{
    if (*on_bar || lines->bar)
        text_add(out, WIPE, sizeof WIPE - 1);
    text_add(out, lines->prefix, strlen(lines->prefix));
    text_add(out, lines->held.data, lines->held.used);
    text_add(out, end, strlen(end));
    *on_bar = !*end;
}

static void end_line(struct lines *lines, int *on_bar, struct text *out)
{
    show(lines, "\n", on_bar, out);
    lines->held.used = 0;
    lines->returned = lines->bar = 0;
}

void lines_feed(struct lines *lines, const char *data, size_t size, int *on_bar, struct text *out)
{
    const char *const end = data + size;

    while (data < end) {
        const char *stop = data;

        if (lines->returned && *data != '\n') { /* what stood there is written over */
            lines->held.used = 0;
            lines->returned = 0;
            lines->bar = 1;
        }
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        text_add(&lines->held, data, (size_t)(stop - data));
        if (stop < end && *stop == '\r')
            lines->returned = 1;
        else if (stop < end || lines->held.used > LONGEST)
            end_line(lines, on_bar, out);
        data = stop + (stop < end);
    }
    if (lines->held.used > 0 && (lines->bar || lines->returned)) {
        lines->bar = 1;
        show(lines, "", on_bar, out);
    }
}

void lines_end(struct lines *lines, int *on_bar, struct text *out)
{
    if (lines->held.used > 0)
        end_line(lines, on_bar, out);
    free(lines->held.data);
    lines->held = (struct text){ 0 };
}
