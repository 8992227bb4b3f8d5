/* SPDX-License-Identifier: Apache-2.0 */
/* hash_map.h - keys to values, queues and waiters; and the doubly linked list of this folder. */
#ifndef RUNTIME_STORE_ENGINE_HASH_MAP_H
#define RUNTIME_STORE_ENGINE_HASH_MAP_H

#include <stdint.h>

#include "runtime/store/engine/value.h"

/* A circular list: its head and its members are nodes.  A node that is in no list points to
 * itself, so it can be unlinked without knowing which list it is in, or whether it is in one. */
struct list_node {
    struct list_node *next, *prev;
};

static inline void list_init(struct list_node *node)
{
    *node = (struct list_node){ node, node };
}

/* Also says whether a node is in no list. */
static inline int list_is_empty(const struct list_node *list)
{
    return list->next == list;
}

static inline void list_unlink(struct list_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

static inline void list_append(struct list_node *list, struct list_node *node)
{
    *node = (struct list_node){ list, list->prev };
    list->prev->next = node;
    list->prev = node;
}

/* Moves all of `from` behind the last node of `list`. */
static inline void list_splice(struct list_node *list, struct list_node *from)
{
    if (list_is_empty(from))
        return;
    from->next->prev = list->prev;
    list->prev->next = from->next;
    from->prev->next = list;
    list->prev = from->prev;
    list_init(from);
}

struct queued {
    struct queued *next;
    struct value *value;
};

struct store_queue {
    struct queued *first, **end;
    int64_t length; /* never 0: an empty queue is freed */
};

struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    struct value *value;         /* NULL: the key has none */
    struct store_queue *queue;   /* NULL: none */
    struct list_node waiters;    /* the sessions that wait for the key: engine/waiters.c */
    size_t waiting;              /* number of waiters, including released ones without an answer */
    struct entry *older, *newer; /* entries with a value, in the order in which they got it */
    uint64_t since;              /* map->now when it got its value */
    size_t key_size;
    unsigned char key[];
};

struct map {
    struct entry **buckets;
    size_t bucket_count, bucket_room;
    size_t entries;
    int64_t keys; /* entries that have a value */
    struct entry *oldest, *newest;
    uint64_t now; /* how many keys ever got a value */
    uint64_t seed;
    struct budget *budget;
};

int map_init(struct map *map, struct budget *budget); /* -1: no memory */
void map_done(struct map *map);

struct entry *map_find(const struct map *map, struct bytes key); /* NULL: none */
struct entry *map_get(struct map *map, struct bytes key); /* made if missing; NULL: no memory */
/* Drops the entry if it has no value, queue or waiter. */
void map_drop_if_idle(struct map *map, struct entry *entry);

/* Takes over the value, even on a failure.  -1: no memory, or the value is NULL. */
int entry_set(struct map *map, struct entry *entry, struct value *value);
int entry_append(struct map *map, struct entry *entry, struct bytes more); /* -1: no memory */
/* Deletes only the value. */
void entry_delete(struct map *map, struct entry *entry);
/* Adds delta to a decimal number and stores the sum as text; -1: strtoll() finds no number in the
 * value; -2: no memory. */
int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum);
int entry_push(struct map *map, struct entry *entry, struct value *value); /* as entry_set() */
/* Takes the first value, which the caller releases.  NULL: the queue is empty. */
struct value *entry_pop(struct map *map, struct entry *entry);

static inline struct bytes entry_key(const struct entry *entry)
{
    return (struct bytes){ entry->key, entry->key_size };
}

/* The entry's value; empty if the entry or its value is missing. */
static inline struct bytes entry_value(const struct entry *entry)
{
    return entry && entry->value ? (struct bytes){ entry->value->data, entry->value->size }
                                 : (struct bytes){ NULL, 0 };
}

static inline int64_t entry_queued(const struct entry *entry)
{
    return entry && entry->queue ? entry->queue->length : 0;
}

/* Whether CHECK and WAIT find the key: a queue that is not empty counts. */
static inline int entry_ready(const struct entry *entry)
{
    return entry && (entry->value || entry->queue);
}

#endif
