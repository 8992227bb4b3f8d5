/* SPDX-License-Identifier: Apache-2.0 */
/* pinned_pool.c - a list of idle blocks of pinned memory.
 *
 * Pinning memory costs as much as copying it a few times.  Most programs send messages of the same
 * size, so a block is kept for the next message of about that size.  When the pool is full, idle
 * blocks are freed. */
#include "runtime/device/pinned_pool.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { FITS = 4 }; /* a message gets a block of at most FITS times its bytes */

#define LEAST ((size_t)64 << 10) /* in bytes; below, the driver's own copy costs almost nothing */
#define MOST ((size_t)64 << 20)  /* in bytes, of all blocks together */

void pinned_open(struct pinned_pool *pool)
{
    *pool = (struct pinned_pool){ .idle = NULL };
    pthread_mutex_init(&pool->lock, NULL);
}

static void block_free(struct pinned_block *block)
{
    munmap(block->data, block->bytes);
    free(block);
}

void pinned_close(struct pinned_pool *pool)
{
    while (pool->idle) {
        struct pinned_block *block = pool->idle;
        void *before;

        pool->idle = block->next;
        if (block->by.space->enter(&before) == CT_OK) {
            block->by.space->unregister_host(block->by.device, block->data, 1);
            block->by.space->leave(before);
        }
        block_free(block);
    }
    pthread_mutex_destroy(&pool->lock);
}

/* Removes a fitting idle block from the list and returns it, or NULL.  The caller has the lock. */
static struct pinned_block *find_idle(struct pinned_pool *pool, struct place place, size_t bytes)
{
    for (struct pinned_block **link = &pool->idle, *block; (block = *link); link = &block->next)
        if (block->by.device == place.device && block->bytes >= bytes
            && block->bytes / FITS <= bytes) {
            *link = block->next;
            return block;
        }
    return NULL;
}

/* Adds `bytes` to the pool's size, and frees idle blocks if needed.  Returns 0 if there is no room.
 * The caller has the lock. */
static int reserve(struct pinned_pool *pool, size_t bytes)
{
    struct pinned_block **link = &pool->idle, *block;

    while (pool->bytes + bytes > MOST && (block = *link)) {
        if (block->by.space->unregister_host(block->by.device, block->data, 0) != CT_OK) {
            link = &block->next;
            continue;
        }
        *link = block->next;
        pool->bytes -= block->bytes;
        block_free(block);
    }
    if (pool->bytes + bytes > MOST)
        return 0;
    pool->bytes += bytes;
    return 1;
}

static struct pinned_block *make(struct place place, size_t bytes)
{
    struct pinned_block *block = malloc(sizeof *block);
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block && data != MAP_FAILED
        && place.space->register_host(place.device, data, bytes) == CT_OK) {
        *block = (struct pinned_block){ .by = place, .bytes = bytes, .data = data };
        return block;
    }
    if (data != MAP_FAILED)
        munmap(data, bytes);
    free(block);
    return NULL;
}

struct pinned_block *pinned_take(struct pinned_pool *pool, struct place place, size_t bytes)
{
    size_t size = LEAST;
    struct pinned_block *block;
    int room = 0;

    if (bytes < LEAST || bytes > MOST)
        return NULL;
    while (size < bytes)
        size *= 2;
    pthread_mutex_lock(&pool->lock);
    block = find_idle(pool, place, bytes);
    if (!block)
        room = reserve(pool, size);
    pthread_mutex_unlock(&pool->lock);
    if (block || !room)
        return block;
    block = make(place, size);
    if (!block) {
        pthread_mutex_lock(&pool->lock);
        pool->bytes -= size;
        pthread_mutex_unlock(&pool->lock);
    }
    return block;
}

void pinned_give(struct pinned_pool *pool, struct pinned_block *block)
{
    if (!block)
        return;
    pthread_mutex_lock(&pool->lock);
    block->next = pool->idle;
    pool->idle = block;
    pthread_mutex_unlock(&pool->lock);
}
