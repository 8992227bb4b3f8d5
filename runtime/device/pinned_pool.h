/* SPDX-License-Identifier: Apache-2.0 */
/* pinned_pool.h - a group's pinned host memory, for messages in device memory (device_staging.c).
 */
#ifndef RUNTIME_DEVICE_PINNED_POOL_H
#define RUNTIME_DEVICE_PINNED_POOL_H

#include <pthread.h>

#include "runtime/device/memory_kind.h"

struct pinned_block {
    struct pinned_block *next;
    struct place by; /* the device for which the memory is pinned */
    size_t bytes;
    unsigned char *data;
};

struct pinned_pool {
    pthread_mutex_t lock;
    struct pinned_block *idle;
    size_t bytes; /* total size of all blocks, in use or idle */
};

void pinned_open(struct pinned_pool *pool);
void pinned_close(struct pinned_pool *pool); /* no block may be in use */

/* Returns a block, or NULL if the message is too small or too large, the pool is full, or the
 * driver can't pin memory now.  Without a block, the caller can use malloc(), which is slower.
 * Called from any thread, after the space's enter(). */
struct pinned_block *pinned_take(struct pinned_pool *pool, struct place place, size_t bytes);
void pinned_give(struct pinned_pool *pool, struct pinned_block *block); /* NULL is fine */

#endif
