/* SPDX-License-Identifier: Apache-2.0 */
/* line_dedup.c - see line_dedup.h.  Pure: the clock is the caller's.
 *
 * Held lines stand in a queue, numbered as they came.  A worker joins the first one
 * that says what it says and is younger than its own newest; if there is none, it
 * adds one.  So the oldest is settled when no worker that can still write has its
 * newest before it, and lines leave from the old end only. */
#include "launcher/stdio/line_dedup.h"

#include <stdlib.h>
#include <string.h>

#define MOST 1024 /* held at a time: who writes faster than that folds less */

struct fold_line {
    struct fold_line *next;
    uint64_t number;
    int64_t due;
    int to;
    uint32_t hash;
    size_t size;
    unsigned char *workers; /* behind the text */
    char text[];
};

int fold_start(struct fold *fold, int size, fold_emit *emit, void *arg)
{
    *fold = (struct fold){ .size = size, .emit = emit, .arg = arg };
    fold->workers = calloc((size_t)size, sizeof *fold->workers);
    return fold->workers ? 0 : -1;
}

void fold_free(struct fold *fold)
{
    fold_flush(fold);
    free(fold->workers);
    *fold = (struct fold){ 0 };
}

static void show_first(struct fold *fold)
{
    struct fold_line *line = fold->first;

    fold->first = line->next;
    if (!fold->first)
        fold->last = NULL;
    fold->held--;
    fold->emit(fold->arg, line->to, line->workers, line->text, line->size);
    free(line);
}

/* Shows all that nobody can join any more. */
static void settle(struct fold *fold)
{
    uint64_t settled = UINT64_MAX;

    for (int i = 0; i < fold->size; i++)
        if (fold->workers[i].streams > 0 && fold->workers[i].newest < settled)
            settled = fold->workers[i].newest;
    while (fold->first && fold->first->number <= settled)
        show_first(fold);
}

void fold_opened(struct fold *fold, int worker)
{
    fold->workers[worker].streams++;
}

void fold_closed(struct fold *fold, int worker)
{
    fold->workers[worker].streams--;
    settle(fold);
}

static uint32_t hash_of(const char *text, size_t size) /* FNV-1a */
{
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619U;
    return hash;
}

static struct fold_line *find(struct fold *fold, int worker, int to, const char *text, size_t size,
                              uint32_t hash)
{
    for (struct fold_line *line = fold->first; line; line = line->next)
        if (line->number > fold->workers[worker].newest && line->hash == hash && line->to == to
            && line->size == size && (size == 0 || !memcmp(line->text, text, size)))
            return line;
    return NULL;
}

static struct fold_line *append(struct fold *fold, int to, const char *text, size_t size,
                                uint32_t hash, int64_t now)
{
    const size_t bits = (size_t)fold->size / 8 + 1;
    struct fold_line *line = calloc(1, sizeof *line + size + bits);

    if (!line)
        return NULL;
    line->number = ++fold->numbered;
    line->due = now + FOLD_MS;
    line->to = to;
    line->hash = hash;
    line->size = size;
    line->workers = (unsigned char *)line->text + size;
    if (size > 0)
        memcpy(line->text, text, size);
    if (fold->last)
        fold->last->next = line;
    else
        fold->first = line;
    fold->last = line;
    fold->held++;
    return line;
}

void fold_add(struct fold *fold, int worker, int to, const char *text, size_t size, int64_t now)
{
    const uint32_t hash = hash_of(text, size);
    struct fold_line *line = find(fold, worker, to, text, size, hash);

    if (!line) {
        if (fold->held == MOST)
            show_first(fold);
        if (!(line = append(fold, to, text, size, hash, now)))
            return; /* out of memory: as in text_add() */
    }
    line->workers[worker / 8] |= (unsigned char)(1 << worker % 8);
    fold->workers[worker].newest = line->number;
    settle(fold);
}

int64_t fold_due(const struct fold *fold)
{
    return fold->first ? fold->first->due : -1;
}

void fold_expire(struct fold *fold, int64_t now)
{
    while (fold->first && fold->first->due <= now)
        show_first(fold);
}

void fold_flush(struct fold *fold)
{
    while (fold->first)
        show_first(fold);
}
