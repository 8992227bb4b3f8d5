/* SPDX-License-Identifier: Apache-2.0 */
/* store_map.h - keys to values, queues and those who wait for them. */
#ifndef RUNTIME_STORE_MAP_H
#define RUNTIME_STORE_MAP_H

#include "runtime/store.h"

struct waiter_node; /* the user's: who waits for an entry */

struct queued {
    struct queued *next;
    size_t size;
    unsigned char data[];
};

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    int present; /* has a value */
    unsigned char *value;
    size_t value_size, value_room;
    struct queued *queue, **queue_end;
    int64_t queue_length;
    struct waiter_node *waiters, **waiters_end;
    size_t key_size;
    unsigned char key[];
};

struct map {
    struct entry **buckets;
    size_t bucket_count; /* a power of two */
    size_t entries;
    int64_t keys; /* entries that have a value */
    uint64_t seed;
};

int map_init(struct map *map); /* -1: no memory */
void map_done(struct map *map);

struct entry *map_find(const struct map *map, struct bytes key); /* NULL: none */
struct entry *map_get(struct map *map, struct bytes key);    /* made if missing; NULL: no memory */
void map_drop_if_idle(struct map *map, struct entry *entry); /* no value, queue or waiter left */

int entry_set(struct map *map, struct entry *entry, struct bytes value); /* -1: no memory */
int entry_append(struct map *map, struct entry *entry, struct bytes value);
void entry_delete(struct map *map, struct entry *entry); /* the value; the entry stays */
/* A decimal number as strtoll reads it plus delta, stored as text; -1: it is none, -2: no memory.
 */
int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum);
int entry_push(struct entry *entry, struct bytes value);
struct queued *entry_pop(struct entry *entry); /* the caller frees it */

static inline struct bytes entry_value(const struct entry *entry)
{
    return (struct bytes){ entry->value, entry->value_size };
}

/* Does CHECK call it ready?  A queue that is not empty counts. */
static inline int entry_ready(const struct entry *entry)
{
    return entry && (entry->present || entry->queue);
}

/* Calls fn for each entry with a value. */
void map_each(const struct map *map, void (*fn)(const struct entry *entry, void *arg), void *arg);

#endif
