/* SPDX-License-Identifier: Apache-2.0 */
/* hash_map.c - a hash table that grows by one bucket at a time.
 *
 * This is linear hashing (Litwin, "Linear hashing: a new tool for file and table addressing", VLDB
 * 1980).  If the table is full, an insertion adds one bucket and splits one bucket, so it never
 * moves all entries while clients wait.  The seed is random, so that no client can choose keys that
 * collide. */
#include "runtime/store/engine/hash_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_BUCKETS 64

/* The mixing step of wyhash.  hash_key() calls it once for each 8 bytes of a key. */
static uint64_t map_mix(uint64_t a, uint64_t b)
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
        hash = map_mix(hash ^ word, 0xa0761d6478bd642fu ^ map->seed);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    return map_mix(hash ^ word, 0xe7037ed1a0b428dbu ^ map->seed);
}

int map_init(struct map *map, struct budget *budget)
{
    *map = (struct map){ .budget = budget, .bucket_count = 1, .bucket_room = FIRST_BUCKETS };
    if (getrandom(&map->seed, sizeof map->seed, 0) != (ssize_t)sizeof map->seed)
        map->seed = (uint64_t)(uintptr_t)map;
    map->buckets = budget_alloc(budget, map->bucket_room * sizeof(struct entry *));
    if (!map->buckets)
        return -1;
    map->buckets[0] = NULL;
    return 0;
}

/* ---- Buckets ---------------------------------------------------------------- */

/* Returns the largest power of two that is not above the number of buckets. */
static size_t level(const struct map *map)
{
    return (size_t)1 << (63 - __builtin_clzll(map->bucket_count));
}

static struct entry **map_place(const struct map *map, uint64_t hash)
{
    const size_t base = level(map), wide = hash & (2 * base - 1);

    return &map->buckets[wide < map->bucket_count ? wide : hash & (base - 1)];
}

/* Adds a bucket, and moves the entries that belong to the new bucket into it. */
static void split_one(struct map *map)
{
    const size_t added = map->bucket_count;
    struct entry **from, **to;

    if (added == map->bucket_room) {
        struct entry **more = budget_resize(map->budget, map->buckets, added * sizeof *more,
                                            2 * added * sizeof *more);

        if (!more)
            return; /* the map still works, but with more entries per bucket */
        map->buckets = more;
        map->bucket_room = 2 * added;
    }
    from = &map->buckets[added - level(map)];
    to = &map->buckets[added];
    map->bucket_count++;
    while (*from) {
        struct entry *entry = *from;

        if (map_place(map, entry->hash) == &map->buckets[added]) {
            *from = entry->next;
            *to = entry;
            to = &entry->next;
        } else {
            from = &entry->next;
        }
    }
    *to = NULL;
}

struct entry *map_find(const struct map *map, struct bytes key)
{
    const uint64_t hash = hash_key(map, key);
    struct entry *entry = *map_place(map, hash);

    while (entry
           && (entry->hash != hash || entry->key_size != key.size
               || (key.size > 0 && memcmp(entry->key, key.data, key.size))))
        entry = entry->next;
    return entry;
}

struct entry *map_get(struct map *map, struct bytes key)
{
    struct entry *entry = map_find(map, key), **to;

    if (entry)
        return entry;
    entry = budget_alloc(map->budget, sizeof *entry + key.size);
    if (!entry)
        return NULL;
    if (map->entries >= map->bucket_count)
        split_one(map);
    *entry = (struct entry){ .hash = hash_key(map, key), .key_size = key.size };
    list_init(&entry->waiters);
    if (key.size > 0)
        memcpy(entry->key, key.data, key.size);
    to = map_place(map, entry->hash);
    entry->next = *to;
    *to = entry;
    map->entries++;
    return entry;
}

static void entry_free(struct map *map, struct entry *entry)
{
    while (entry->queue)
        value_release(entry_pop(map, entry));
    value_release(entry->value);
    budget_free(map->budget, entry, sizeof *entry + entry->key_size);
}

void map_drop_if_idle(struct map *map, struct entry *entry)
{
    struct entry **at = map_place(map, entry->hash);

    if (entry->value || entry->queue || entry->waiting > 0)
        return;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    map->entries--;
    entry_free(map, entry);
}

void map_done(struct map *map)
{
    for (size_t i = 0; map->buckets && i < map->bucket_count; i++)
        while (map->buckets[i]) {
            struct entry *next = map->buckets[i]->next;

            entry_free(map, map->buckets[i]);
            map->buckets[i] = next;
        }
    budget_free(map->budget, map->buckets, map->bucket_room * sizeof(struct entry *));
    map->buckets = NULL;
    while (budget_sweep(map->budget))
        ;
}
