/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c - see scratch.h.
 *
 * Blocks have sizes of powers of two, and a list for each.  Smaller and larger ones than those are
 * malloc()'s, which is good at the small ones; of the large ones few are worth their memory. */
#include "runtime/util/scratch.h"

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else /* what lies behind the bytes that were asked for, or is idle, is nobody's to touch */
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)0)
#endif

#define LEAST (SCRATCH_KEPT >> (SCRATCH_SIZES - 1))

struct scratch_block {
    struct scratch_block *next;
    int size; /* its list; -1: it is not kept */
    max_align_t data[];
};

static size_t bytes_of(int size)
{
    return LEAST << size;
}

static int size_for(size_t bytes)
{
    int size = 0;

    if (bytes < LEAST || bytes > SCRATCH_KEPT)
        return -1;
    while (bytes_of(size) < bytes)
        size++;
    return size;
}

void scratch_open(struct scratch *scratch)
{
    *scratch = (struct scratch){ .bytes = 0 };
    pthread_mutex_init(&scratch->lock, NULL);
}

/* The lock is held. */
static struct scratch_block *take_idle(struct scratch *scratch, int size)
{
    struct scratch_block *block = scratch->idle[size];

    if (!block)
        return NULL;
    scratch->idle[size] = block->next;
    scratch->bytes -= bytes_of(size);
    ASAN_UNPOISON_MEMORY_REGION(block->data, bytes_of(size));
    return block;
}

/* The lock is held.  The largest go first, until there is room for so many bytes. */
static void drop_idle(struct scratch *scratch, size_t bytes)
{
    for (int size = SCRATCH_SIZES - 1; size >= 0; size--)
        while (scratch->bytes + bytes > SCRATCH_KEPT && scratch->idle[size])
            free(take_idle(scratch, size));
}

void scratch_close(struct scratch *scratch)
{
    drop_idle(scratch, SCRATCH_KEPT);
    pthread_mutex_destroy(&scratch->lock);
}

void *scratch_take(struct scratch *scratch, size_t bytes)
{
    const int size = size_for(bytes);
    const size_t room = size < 0 ? bytes : bytes_of(size);
    struct scratch_block *block = NULL;

    if (size >= 0) {
        pthread_mutex_lock(&scratch->lock);
        block = take_idle(scratch, size);
        pthread_mutex_unlock(&scratch->lock);
    }
    if (!block && (room > SIZE_MAX - sizeof *block || !(block = malloc(sizeof *block + room))))
        return NULL;
    block->size = size;
    ASAN_POISON_MEMORY_REGION((char *)block->data + bytes, room - bytes);
    return block->data;
}

void scratch_give(struct scratch *scratch, void *data)
{
    struct scratch_block *block;

    if (!data)
        return;
    block = (struct scratch_block *)((char *)data - offsetof(struct scratch_block, data));
    if (block->size < 0) {
        free(block);
        return;
    }
    pthread_mutex_lock(&scratch->lock);
    drop_idle(scratch, bytes_of(block->size));
    block->next = scratch->idle[block->size];
    scratch->idle[block->size] = block;
    scratch->bytes += bytes_of(block->size);
    ASAN_POISON_MEMORY_REGION(data, bytes_of(block->size));
    pthread_mutex_unlock(&scratch->lock);
}
