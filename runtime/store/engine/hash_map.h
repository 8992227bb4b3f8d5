/* SPDX-License-Identifier: Apache-2.0 */
/* hash_map.h - the map from keys to their values, queues and waiters, and the doubly linked list
 * that this folder uses. */
#ifndef RUNTIME_STORE_ENGINE_HASH_MAP_H
#define RUNTIME_STORE_ENGINE_HASH_MAP_H

#include <stdint.h>

#include "runtime/store/engine/value.h"

/* A circular list.  The head of a list and its members are nodes.  A node that is in no list points
 * to itself, so list_unlink() may be called for any initialized node. */
struct list_node {
    struct list_node *next, *prev;
};

static inline void list_init(struct list_node *node)
{
    *node = (struct list_node){ node, node };
}

/* Returns 1 if the list is empty.  If `list` is a member node, returns 1 if it is in no list. */
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
    int64_t length; /* at least 1, since an empty queue is freed */
};

struct entry {
    struct entry *next; /* the next entry in the bucket */
    uint64_t hash;
    struct value *value;       /* NULL if the key has no value */
    struct store_queue *queue; /* NULL if the key has no queue */
    struct list_node waiters;  /* waiters for the key that are not released (waiters.c) */
    size_t waiting;            /* number of waiters, with released ones that are not removed yet */
    struct entry *older, *newer; /* entries with a value, in the order in which they got a value */
    uint64_t since;              /* map->now when the entry got its value */
    size_t key_size;
    unsigned char key[];
};

struct map {
    struct entry **buckets;
    size_t bucket_count, bucket_room;
    size_t entries;
    int64_t keys; /* number of entries that have a value */
    struct entry *oldest, *newest;
    uint64_t now; /* counts how often an entry without a value got a value */
    uint64_t seed;
    struct budget *budget;
};

int map_init(struct map *map, struct budget *budget); /* returns -1 if out of memory */
void map_done(struct map *map);

/* Returns the key's entry; NULL if the map has no entry for the key. */
struct entry *map_find(const struct map *map, struct bytes key);
/* Returns the key's entry, and creates a missing entry.  Returns NULL if out of memory. */
struct entry *map_get(struct map *map, struct bytes key);
/* Frees the entry if it has no value, no queue and no waiter. */
void map_drop_if_idle(struct map *map, struct entry *entry);

/* Sets the value, and takes over the caller's hold on it.  Returns -1 if the value is NULL, which
 * means that the caller could not allocate it. */
int entry_set(struct map *map, struct entry *entry, struct value *value);
/* Appends bytes to the value, or sets a missing value.  Returns -1 if out of memory. */
int entry_append(struct map *map, struct entry *entry, struct bytes more);
/* Deletes the value, but not the queue and the waiters. */
void entry_delete(struct map *map, struct entry *entry);
/* Adds delta to the number in the value and stores the sum as decimal text.  A missing value counts
 * as 0.  Returns -1 if strtoll() finds no number in the value, and -2 if out of memory. */
int entry_add(struct map *map, struct entry *entry, int64_t delta, int64_t *sum);
/* Adds the value to the queue, and takes over the caller's hold on it, even on a failure.  Returns
 * -1 if out of memory or if the value is NULL. */
int entry_push(struct map *map, struct entry *entry, struct value *value);
/* Takes the first value off the queue.  The caller must release the value.  Returns NULL if the
 * queue is empty. */
struct value *entry_pop(struct map *map, struct entry *entry);

static inline struct bytes entry_key(const struct entry *entry)
{
    return (struct bytes){ entry->key, entry->key_size };
}

/* Returns the bytes of the entry's value; no bytes if entry is NULL or has no value. */
static inline struct bytes entry_value(const struct entry *entry)
{
    return entry && entry->value ? (struct bytes){ entry->value->data, entry->value->size }
                                 : (struct bytes){ NULL, 0 };
}

static inline int64_t entry_queued(const struct entry *entry)
{
    return entry && entry->queue ? entry->queue->length : 0;
}

/* Returns 1 if the key exists for CHECK and WAIT, that is, if it has a value or a queue. */
static inline int entry_ready(const struct entry *entry)
{
    return entry && (entry->value || entry->queue);
}

#endif
