/* SPDX-License-Identifier: Apache-2.0 */
/* hash_map.h - keys to values, queues and those who wait for them. */
#ifndef RUNTIME_STORE_ENGINE_HASH_MAP_H
#define RUNTIME_STORE_ENGINE_HASH_MAP_H

#include <stdint.h>

#include "runtime/store/engine/value.h"

/* A ring of waiters: whoever is in it can leave it without knowing which it is. */
struct link {
    struct link *next, *prev;
};

struct queued {
    struct queued *next;
    struct value *value;
};

struct queue {
    struct queued *first, **end;
    int64_t length; /* never 0: an empty queue is none */
};

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    struct value *value;         /* NULL: the key has none */
    struct queue *queue;         /* NULL: none */
    struct link waiters;         /* store/engine/waiters.c's */
    size_t waiting;              /* of those, and of the ones on their way out */
    struct entry *older, *newer; /* entries with a value, by when they came to have one */
    uint64_t since;              /* that moment */
    size_t key_size;
    unsigned char key[];
};

struct map {
    struct entry **buckets;
    size_t bucket_count, bucket_room;
    size_t entries;
    int64_t keys; /* entries that have a value */
    struct entry *oldest, *newest;
    uint64_t now; /* counts the keys that ever came */
    uint64_t seed;
    struct budget *budget;
};

int map_init(struct map *map, struct budget *budget); /* -1: no memory */
void map_done(struct map *map);

struct entry *map_find(const struct map *map, struct bytes key); /* NULL: none */
struct entry *map_get(struct map *map, struct bytes key);    /* made if missing; NULL: no memory */
void map_drop_if_idle(struct map *map, struct entry *entry); /* no value, queue or waiter left */

/* Takes the value over, also when it fails; NULL fails: -1, no memory. */
int entry_set(struct map *map, struct entry *entry, struct value *value);
int entry_append(struct map *map, struct entry *entry, struct bytes more); /* -1: no memory */
void entry_delete(struct map *map, struct entry *entry); /* the value; the entry stays */
/* A decimal number as strtoll reads it plus delta, stored as text; -1: it is none, -2: no memory.
 */
int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum);
int entry_push(struct map *map, struct entry *entry, struct value *value); /* as entry_set() */
struct value *entry_pop(struct map *map, struct entry *entry); /* NULL: empty; the caller's */

static inline struct bytes entry_key(const struct entry *entry)
{
    return (struct bytes){ entry->key, entry->key_size };
}

/* Its value, empty if it has none. */
static inline struct bytes entry_value(const struct entry *entry)
{
    return entry && entry->value ? (struct bytes){ entry->value->data, entry->value->size }
                                 : (struct bytes){ NULL, 0 };
}

static inline int64_t entry_queued(const struct entry *entry)
{
    return entry && entry->queue ? entry->queue->length : 0;
}

/* Does CHECK call it ready?  A queue that is not empty counts. */
static inline int entry_ready(const struct entry *entry)
{
    return entry && (entry->value || entry->queue);
}

#endif
