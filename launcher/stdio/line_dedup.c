/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.c - see line_dedup.h.  The caller passes the time, so this file reads no clock.
 *
 * Pending lines form a FIFO and are numbered.  A worker's line is merged into the oldest pending
 * line with the same text that is newer than the worker's own last line.  If there is no such line,
 * the worker's line is appended.  The oldest line is shown when no worker can merge into it any
 * more.  This is the case when each worker with an open stream has written that line or a newer
 * line. */
#include "launcher/stdio/line_dedup.h"

#include <stdlib.h>
#include <string.h>

#define MOST 1024 /* most pending lines; if there are more, the oldest is shown */

struct dedup_line {
    struct dedup_line *next;
    uint64_t number;
    int64_t due;
    int to;
    uint32_t hash;
    size_t size;
    unsigned char *workers; /* bits of the workers, in memory after the text */
    char text[];
};

int line_dedup_start(struct line_dedup *dedup, int size, dedup_emit *emit, void *arg)
{
    *dedup = (struct line_dedup){ .size = size, .emit = emit, .arg = arg };
    dedup->workers = calloc((size_t)size, sizeof *dedup->workers);
    return dedup->workers ? 0 : -1;
}

void line_dedup_free(struct line_dedup *dedup)
{
    line_dedup_flush(dedup);
    free(dedup->workers);
    *dedup = (struct line_dedup){ 0 };
}

static void show_first(struct line_dedup *dedup)
{
    struct dedup_line *line = dedup->first;

    dedup->first = line->next;
    if (!dedup->first)
        dedup->last = NULL;
    dedup->held--;
    dedup->emit(dedup->arg, line->to, line->workers, line->text, line->size);
    free(line);
}

/* Shows all lines into which no worker can merge a line any more. */
static void dedup_settle(struct line_dedup *dedup)
{
    uint64_t settled = UINT64_MAX;

    for (int i = 0; i < dedup->size; i++)
        if (dedup->workers[i].streams > 0 && dedup->workers[i].newest < settled)
            settled = dedup->workers[i].newest;
    while (dedup->first && dedup->first->number <= settled)
        show_first(dedup);
}

void line_dedup_opened(struct line_dedup *dedup, int worker)
{
    dedup->workers[worker].streams++;
}

void line_dedup_closed(struct line_dedup *dedup, int worker)
{
    dedup->workers[worker].streams--;
    dedup_settle(dedup);
}

static uint32_t hash_of(const char *text, size_t size) /* FNV-1a */
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619U;
    return hash;
}

static struct dedup_line *dedup_find(struct line_dedup *dedup, int worker, int to, const char *text,
                                     size_t size, uint32_t hash)
{
    for (struct dedup_line *line = dedup->first; line; line = line->next)
        if (line->number > dedup->workers[worker].newest && line->hash == hash && line->to == to
            && line->size == size && (size == 0 || !memcmp(line->text, text, size)))
            return line;
    return NULL;
}

static struct dedup_line *dedup_append(struct line_dedup *dedup, int to, const char *text,
                                       size_t size, uint32_t hash, int64_t now)
{
    const size_t bits = (size_t)dedup->size / 8 + 1;
    struct dedup_line *line = calloc(1, sizeof *line + size + bits);

    if (!line)
        return NULL;
    line->number = ++dedup->numbered;
    line->due = now + DEDUP_MS;
    line->to = to;
    line->hash = hash;
    line->size = size;
    line->workers = (unsigned char *)line->text + size;
    if (size > 0)
        memcpy(line->text, text, size);
    if (dedup->last)
        dedup->last->next = line;
    else
        dedup->first = line;
    dedup->last = line;
    dedup->held++;
    return line;
}

void line_dedup_add(struct line_dedup *dedup, int worker, int to, const char *text, size_t size,
                    int64_t now)
{
    const uint32_t hash = hash_of(text, size);
    struct dedup_line *line = dedup_find(dedup, worker, to, text, size, hash);

    if (!line) {
        if (dedup->held == MOST)
            show_first(dedup);
        if (!(line = dedup_append(dedup, to, text, size, hash, now)))
            return; /* without memory the line is lost, as in text_add() */
    }
    line->workers[worker / 8] |= (unsigned char)(1 << worker % 8);
    dedup->workers[worker].newest = line->number;
    dedup_settle(dedup);
}

int64_t line_dedup_due(const struct line_dedup *dedup)
{
    return dedup->first ? dedup->first->due : -1;
}

void line_dedup_expire(struct line_dedup *dedup, int64_t now)
{
    while (dedup->first && dedup->first->due <= now)
        show_first(dedup);
}

void line_dedup_flush(struct line_dedup *dedup)
{
    while (dedup->first)
        show_first(dedup);
}
