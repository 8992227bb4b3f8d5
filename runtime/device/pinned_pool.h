/* SPDX-License-Identifier: Apache-2.0 */
/* pinned_pool.h - a group's pinned host memory, for messages of device memory (device_staging.c).
 */
#ifndef RUNTIME_DEVICE_PINNED_POOL_H
#define RUNTIME_DEVICE_PINNED_POOL_H

#include <pthread.h>

#include "runtime/device/memory_kind.h"

struct pinned_block {
    struct pinned_block *next;
    struct place by; /* the device that has it pinned */
    size_t bytes;
    unsigned char *data;
};

struct pinned_pool {
    pthread_mutex_t lock;
    struct pinned_block *idle;
    size_t bytes; /* of all blocks, in use or not */
};

void pinned_open(struct pinned_pool *pool);
void pinned_close(struct pinned_pool *pool); /* none is in use */

/* NULL: the message is too small, the pool is full, or the driver can't (now): memory of malloc()
 * works, too, but slower.  Within the space's enter(), from any thread. */
struct pinned_block *pinned_take(struct pinned_pool *pool, struct place place, size_t bytes);
void pinned_give(struct pinned_pool *pool, struct pinned_block *block); /* NULL is fine */

#endif
