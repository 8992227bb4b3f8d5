/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - changes the value and the queue of a key.  Numbers are stored as decimal text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/engine/hash_map.h"

/* ---- Values ----------------------------------------------------------------- */

static void add_to_keys(struct map *map, struct entry *entry)
{
    entry->since = ++map->now;
    entry->newer = NULL;
    entry->older = map->newest;
    *(map->newest ? &map->newest->newer : &map->oldest) = entry;
    map->newest = entry;
    map->keys++;
}

static void remove_from_keys(struct map *map, struct entry *entry)
{
    *(entry->older ? &entry->older->newer : &map->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &map->newest) = entry->older;
    map->keys--;
}

int entry_set(struct map *map, struct entry *entry, struct value *value)
{
    if (!value)
        return -1;
    if (entry->value)
        value_release(entry->value);
    else
        add_to_keys(map, entry);
    entry->value = value;
    return 0;
}

void entry_delete(struct map *map, struct entry *entry)
{
    if (!entry->value)
        return;
    remove_from_keys(map, entry);
    value_release(entry->value);
    entry->value = NULL;
}

/* Appends in place, unless a send queue still holds the old value.  Doubles the room of a full
 * value, since otherwise each of many small appends would copy the value. */
int entry_append(struct map *map, struct entry *entry, struct bytes more)
{
    struct value *value = entry->value;
    const size_t old = value ? value->size : 0, size = old + more.size;

    if (!value)
        return entry_set(map, entry, value_create(map->budget, more.data, more.size));
    if (value->holders > 1) {
        if (entry_set(map, entry, value_create(map->budget, value->data, old)) < 0)
            return -1;
        value = entry->value;
    }
    if (size > value->room) {
        value = value_reserve(value, size < 2 * old ? 2 * old : size);
        if (!value)
            return -1;
        entry->value = value;
    }
    if (more.size > 0)
        memcpy(value->data + old, more.data, more.size);
    value->size = size;
    return 0;
}

/* Reads a number in the form in which ADD stores numbers, such as "-12".  This is faster than
 * strtoll().  Returns -1 if the text has another form. */
static int plain_number(struct bytes text, int64_t *number)
{
    const char *at = text.data, *end = at + text.size;
    const int negative = text.size > 0 && *at == '-';
    int64_t sum = 0;

    at += negative;
    if (at == end || end - at > 18)
        return -1;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return -1;
        sum = 10 * sum + (*at - '0');
    }
    *number = negative ? -sum : sum;
    return 0;
}

/* Reads a number like strtoll(), which skips blanks and ignores the text behind the digits.
 * Returns -1 if there is no number or the number does not fit. */
static int entry_read_number(struct bytes text, int64_t *number)
{
    char copy[32], *end;
    const size_t size = text.size < sizeof copy - 1 ? text.size : sizeof copy - 1;

    if (plain_number(text, number) == 0)
        return 0;
    memcpy(copy, text.data, size);
    copy[size] = 0;
    errno = 0;
    *number = strtoll(copy, &end, 10);
    return end == copy || errno == ERANGE ? -1 : 0;
}

/* Writes the number as text that ends at text + 32.  Returns the beginning of the text. */
static char *print_number(int64_t number, char text[32])
{
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = text + 32;

    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        *--at = '-';
    return at;
}

int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum)
{
    struct value *value = entry->value;
    char text[32], *digits;
    int64_t old = 0;
    size_t length;

    if (value && entry_read_number(entry_value(entry), &old) < 0)
        return -1;
    *sum = (int64_t)((uint64_t)old + (uint64_t)delta); /* wraps, as PyTorch's does */
    digits = print_number(*sum, text);
    length = (size_t)(text + sizeof text - digits);
    if (value && value->holders == 1 && value->room >= length) {
        memcpy(value->data, digits, length);
        value->size = length;
        return 0;
    }
    return entry_set(map, entry, value_create(map->budget, digits, length)) < 0 ? -2 : 0;
}

/* ---- Queues ----------------------------------------------------------------- */

int entry_push(struct map *map, struct entry *entry, struct value *value)
{
    struct queued *queued = value ? budget_alloc(map->budget, sizeof *queued) : NULL;

    if (queued && !entry->queue) {
        entry->queue = budget_alloc(map->budget, sizeof *entry->queue);
        if (entry->queue)
            *entry->queue = (struct store_queue){ .end = &entry->queue->first };
    }
    if (!queued || !entry->queue) {
        budget_free(map->budget, queued, sizeof *queued);
        value_release(value);
        return -1;
    }
    *queued = (struct queued){ .value = value };
    *entry->queue->end = queued;
    entry->queue->end = &queued->next;
    entry->queue->length++;
    return 0;
}

struct value *entry_pop(struct map *map, struct entry *entry)
{
    struct store_queue *queue = entry->queue;
    struct queued *first;
    struct value *value;

    if (!queue)
        return NULL;
    first = queue->first;
    value = first->value;
    queue->first = first->next;
    budget_free(map->budget, first, sizeof *first);
    if (--queue->length == 0) {
        budget_free(map->budget, queue, sizeof *queue);
        entry->queue = NULL;
    }
    return value;
}
