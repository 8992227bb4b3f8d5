/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c - keeps a list of idle blocks for each size.
 *
 * malloc() provides blocks below SCRATCH_LEAST, since it is fast for them.  malloc() also provides
 * blocks above SCRATCH_LARGEST, since few of those are used and keeping them would cost too much
 * memory. */
#include "runtime/util/scratch.h"

#include <stdint.h>
#include <stdlib.h>

/* ASan reports accesses to the bytes behind the requested ones, to the head of a block in use, and
 * to the data of an idle block. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes) ((void)0)
#endif

struct scratch_block {
    struct scratch_block *next;
    int size; /* index of the block's list; -1 if the block is freed, not kept */
    max_align_t data[];
};

static size_t scratch_bytes_of(int size)
{
    return ((size_t)SCRATCH_LEAST << size) + SCRATCH_MARGIN;
}

static int scratch_size_for(size_t bytes)
{
    int size = 0;

    if (bytes < SCRATCH_LEAST || bytes > SCRATCH_LARGEST)
        return -1;
    while (scratch_bytes_of(size) < bytes)
        size++;
    return size;
}

void scratch_open(struct scratch *scratch)
{
    *scratch = (struct scratch){ .bytes = 0 };
    pthread_mutex_init(&scratch->lock, NULL);
}

/* Takes an idle block of this size, or returns NULL.  The caller holds the lock. */
static struct scratch_block *scratch_take_idle(struct scratch *scratch, int size)
{
    struct scratch_block *block = scratch->idle[size];

    if (!block)
        return NULL;
    scratch->idle[size] = block->next;
    scratch->bytes -= scratch_bytes_of(size);
    ASAN_UNPOISON_MEMORY_REGION(block->data, scratch_bytes_of(size));
    return block;
}

/* Removes idle blocks, the largest first, until so many more bytes may be kept.  The caller holds
 * the lock, and frees the returned list after it has released the lock. */
static struct scratch_block *take_surplus(struct scratch *scratch, size_t bytes)
{
    struct scratch_block *surplus = NULL, *block;

    for (int size = SCRATCH_SIZES - 1; size >= 0; size--)
        while (scratch->bytes + bytes > SCRATCH_KEPT
               && (block = scratch_take_idle(scratch, size))) {
            block->next = surplus;
            surplus = block;
        }
    return surplus;
}

static void scratch_free_all(struct scratch_block *block)
{
    while (block) {
        struct scratch_block *next = block->next;

        free(block);
        block = next;
    }
}

void scratch_close(struct scratch *scratch)
{
    scratch_free_all(take_surplus(scratch, SCRATCH_KEPT));
    pthread_mutex_destroy(&scratch->lock);
}

void *scratch_take(struct scratch *scratch, size_t bytes)
{
    const int size = scratch_size_for(bytes);
    const size_t room = size < 0 ? bytes : scratch_bytes_of(size);
    struct scratch_block *block = NULL;

    if (size >= 0) {
        pthread_mutex_lock(&scratch->lock);
        block = scratch_take_idle(scratch, size);
        pthread_mutex_unlock(&scratch->lock);
    }
    if (!block && (room > SIZE_MAX - sizeof *block || !(block = malloc(sizeof *block + room))))
        return NULL;
    block->size = size;
    ASAN_POISON_MEMORY_REGION((char *)block->data + bytes, room - bytes);
    ASAN_POISON_MEMORY_REGION(block, sizeof *block);
    return block->data;
}

void scratch_give(struct scratch *scratch, void *data)
{
    struct scratch_block *block, *surplus;

    if (!data)
        return;
    block = (struct scratch_block *)((char *)data - offsetof(struct scratch_block, data));
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof *block);
    if (block->size < 0) {
        free(block);
        return;
    }
    pthread_mutex_lock(&scratch->lock);
    surplus = take_surplus(scratch, scratch_bytes_of(block->size));
    block->next = scratch->idle[block->size];
    scratch->idle[block->size] = block;
    scratch->bytes += scratch_bytes_of(block->size);
    ASAN_POISON_MEMORY_REGION(data, scratch_bytes_of(block->size));
    pthread_mutex_unlock(&scratch->lock);
    scratch_free_all(surplus);
}
