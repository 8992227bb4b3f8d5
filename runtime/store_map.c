/* SPDX-License-Identifier: Apache-2.0 */
/* store_map.c - a chained hash table that doubles, with a seed nobody outside knows. */
#include "runtime/store_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_BUCKETS 256

/* wyhash's mixing step over 8 bytes at a time; the seed keeps keys that collide unguessable. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_key(const struct map *map, struct bytes key)
{
    const unsigned char *at = key.data;
    uint64_t hash = map->seed ^ key.size, word;
    size_t left = key.size;

    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash = mix(hash ^ word, 0xa0761d6478bd642fu);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    return mix(hash ^ word, 0xe7037ed1a0b428dbu ^ map->seed);
}

int map_init(struct map *map)
{
    memset(map, 0, sizeof *map);
    if (getrandom(&map->seed, sizeof map->seed, 0) != (ssize_t)sizeof map->seed)
        map->seed = (uint64_t)(uintptr_t)map;
    map->bucket_count = FIRST_BUCKETS;
    map->buckets = calloc(map->bucket_count, sizeof *map->buckets);
    return map->buckets ? 0 : -1;
}

static void entry_free(struct entry *entry)
{
    while (entry->queue)
        free(entry_pop(entry));
    free(entry->value);
    free(entry);
}

void map_done(struct map *map)
{
    for (size_t i = 0; i < map->bucket_count && map->buckets; i++)
        while (map->buckets[i]) {
            struct entry *next = map->buckets[i]->next;

            entry_free(map->buckets[i]);
            map->buckets[i] = next;
        }
    free(map->buckets);
    map->buckets = NULL;
}

static struct entry **place(const struct map *map, uint64_t hash)
{
    return &map->buckets[hash & (map->bucket_count - 1)];
}

struct entry *map_find(const struct map *map, struct bytes key)
{
    const uint64_t hash = hash_key(map, key);
    struct entry *entry = *place(map, hash);

    while (entry
           && (entry->hash != hash || entry->key_size != key.size
               || (key.size > 0 && memcmp(entry->key, key.data, key.size))))
        entry = entry->next;
    return entry;
}

static void grow(struct map *map)
{
    struct map larger = *map;

    larger.bucket_count *= 2;
    larger.buckets = calloc(larger.bucket_count, sizeof *larger.buckets);
    if (!larger.buckets)
        return; /* chains get longer, nothing breaks */
    for (size_t i = 0; i < map->bucket_count; i++)
        while (map->buckets[i]) {
            struct entry *entry = map->buckets[i], **to = place(&larger, entry->hash);

            map->buckets[i] = entry->next;
            entry->next = *to;
            *to = entry;
        }
    free(map->buckets);
    *map = larger;
}

struct entry *map_get(struct map *map, struct bytes key)
{
    struct entry *entry = map_find(map, key), **to;

    if (entry)
        return entry;
    entry = calloc(1, sizeof *entry + key.size);
    if (!entry)
        return NULL;
    if (map->entries >= map->bucket_count)
        grow(map);
    entry->hash = hash_key(map, key);
    entry->key_size = key.size;
    if (key.size > 0)
        memcpy(entry->key, key.data, key.size);
    entry->queue_end = &entry->queue;
    entry->waiters_end = &entry->waiters;
    to = place(map, entry->hash);
    entry->next = *to;
    *to = entry;
    map->entries++;
    return entry;
}

void map_drop_if_idle(struct map *map, struct entry *entry)
{
    struct entry **link = place(map, entry->hash);

    if (entry->present || entry->queue || entry->waiters)
        return;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    map->entries--;
    entry_free(entry);
}

static int make_room(struct entry *entry, size_t size)
{
    unsigned char *value;

    if (size <= entry->value_room)
        return 0;
    value = realloc(entry->value, size);
    if (!value)
        return -1;
    entry->value = value;
    entry->value_room = size;
    return 0;
}

static void make_present(struct map *map, struct entry *entry)
{
    map->keys += !entry->present;
    entry->present = 1;
}

int entry_set(struct map *map, struct entry *entry, struct bytes value)
{
    if (make_room(entry, value.size) < 0)
        return -1;
    if (value.size > 0)
        memmove(entry->value, value.data, value.size);
    entry->value_size = value.size;
    make_present(map, entry);
    return 0;
}

int entry_append(struct map *map, struct entry *entry, struct bytes value)
{
    const size_t old = entry->present ? entry->value_size : 0, size = old + value.size;

    /* Doubled, or many small appends would copy the value each time. */
    if (size > entry->value_room && make_room(entry, size < 2 * old ? 2 * old : size) < 0)
        return -1;
    if (value.size > 0)
        memcpy(entry->value + old, value.data, value.size);
    entry->value_size = size;
    make_present(map, entry);
    return 0;
}

void entry_delete(struct map *map, struct entry *entry)
{
    map->keys -= entry->present;
    entry->present = 0;
    free(entry->value);
    entry->value = NULL;
    entry->value_size = entry->value_room = 0;
}

int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum)
{
    char text[32];
    int64_t old = 0;
    int length;

    if (entry->present) {
        const size_t size =
            entry->value_size < sizeof text - 1 ? entry->value_size : sizeof text - 1;
        char *end;

        memcpy(text, entry->value, size);
        text[size] = 0;
        errno = 0;
        old = strtoll(text, &end, 10);
        if (end == text || errno == ERANGE)
            return -1;
    }
    *sum = (int64_t)((uint64_t)old + (uint64_t)delta); /* wraps, as PyTorch's does */
    length = snprintf(text, sizeof text, "%" PRId64, *sum);
    return entry_set(map, entry, (struct bytes){ text, (size_t)length }) < 0 ? -2 : 0;
}

int entry_push(struct entry *entry, struct bytes value)
{
    struct queued *queued = malloc(sizeof *queued + value.size);

    if (!queued)
        return -1;
    queued->next = NULL;
    queued->size = value.size;
    if (value.size > 0)
        memcpy(queued->data, value.data, value.size);
    *entry->queue_end = queued;
    entry->queue_end = &queued->next;
    entry->queue_length++;
    return 0;
}

struct queued *entry_pop(struct entry *entry)
{
    struct queued *first = entry->queue;

    if (!first)
        return NULL;
    entry->queue = first->next;
    if (!entry->queue)
        entry->queue_end = &entry->queue;
    entry->queue_length--;
    return first;
}

void map_each(const struct map *map, void (*fn)(const struct entry *entry, void *arg), void *arg)
{
    for (size_t i = 0; i < map->bucket_count; i++)
        for (struct entry *entry = map->buckets[i]; entry; entry = entry->next)
            if (entry->present)
                fn(entry, arg);
}
