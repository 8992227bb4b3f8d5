/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - temporary memory of calls and messages, kept for the next one.
 *
 * free() returns a block of more than some 100 KiB to the kernel, so the next call takes a page
 * fault for each 4 KiB of it; and in a process with threads each free() interrupts its other
 * processors. That took half the time of a reduce of 64 KiB over TCP. */
#ifndef RUNTIME_UTIL_SCRATCH_H
#define RUNTIME_UTIL_SCRATCH_H

#include <pthread.h>
#include <stddef.h>

#define SCRATCH_KEPT ((size_t)24 << 20) /* bytes that one mesh keeps, at most */

/* 16 KiB, 32 KiB, and so on to 16 MiB, each with some room for what a caller adds to a round
 * number: the head of a message, an element for each rank. */
enum { SCRATCH_SIZES = 11, SCRATCH_LEAST = 16 << 10, SCRATCH_MARGIN = 4 << 10 };

#define SCRATCH_LARGEST (((size_t)SCRATCH_LEAST << (SCRATCH_SIZES - 1)) + SCRATCH_MARGIN)

struct scratch_block;

struct scratch {
    pthread_mutex_t lock;
    struct scratch_block *idle[SCRATCH_SIZES];
    size_t bytes; /* of the idle blocks */
};

void scratch_open(struct scratch *scratch);
void scratch_close(struct scratch *scratch); /* after all blocks were given back */

/* Aligned as by malloc(), not cleared.  NULL: no memory.  From any thread. */
void *scratch_take(struct scratch *scratch, size_t bytes);
void scratch_give(struct scratch *scratch, void *data); /* NULL is fine */

#endif
