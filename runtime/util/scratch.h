/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - temporary memory of calls and messages, kept for the next call or message.
 *
 * free() returns a block of more than about 100 KiB to the kernel, so the next call takes a page
 * fault for each 4 KiB.  In a process with threads each such free() also interrupts the other
 * processors on which the process runs.  Page faults and interrupts took half the time of a reduce
 * of 64 KiB over TCP. */
#ifndef RUNTIME_UTIL_SCRATCH_H
#define RUNTIME_UTIL_SCRATCH_H

#include <pthread.h>
#include <stddef.h>

#define SCRATCH_KEPT ((size_t)24 << 20) /* the most bytes that one mesh keeps */

/* The block sizes are 16 KiB, 32 KiB, and so on to 16 MiB, each plus SCRATCH_MARGIN.  The margin
 * holds what callers add to a round size, such as the header of a message or an element for each
 * rank. */
enum { SCRATCH_SIZES = 11, SCRATCH_LEAST = 16 << 10, SCRATCH_MARGIN = 4 << 10 };

#define SCRATCH_LARGEST (((size_t)SCRATCH_LEAST << (SCRATCH_SIZES - 1)) + SCRATCH_MARGIN)

struct scratch_block;

struct scratch {
    pthread_mutex_t lock;
    struct scratch_block *idle[SCRATCH_SIZES];
    size_t bytes; /* total size of the idle blocks */
};

void scratch_open(struct scratch *scratch);
void scratch_close(struct scratch *scratch); /* all blocks must have been given back */

/* Returns a block that is aligned as by malloc() and not cleared, or NULL if memory is out.  The
 * caller returns the block with scratch_give().  Any thread may call both functions. */
void *scratch_take(struct scratch *scratch, size_t bytes);
void scratch_give(struct scratch *scratch, void *data); /* ignores NULL */

#endif
