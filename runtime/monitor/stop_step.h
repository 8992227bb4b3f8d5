/* SPDX-License-Identifier: Apache-2.0 */
/* stop_step.h - how ranks stop at the same step without a message between them.
 *
 * Each rank counts its calls of ct_should_stop() in its page: going past step s is one
 * compare-and-swap of its own word from s-1 to s.  Who decides (ctrun; of several nodes node
 * 0's) closes the words of all ranks by setting the top bit: then no rank can pass, and each
 * word says exactly how far its rank came.  The step behind the furthest is where all stop;
 * it is told in the head of the page.  Until then a rank that finds its word closed waits,
 * some microseconds on one node, a trip between nodes.  Nobody waits at any other time.
 *
 * A word outlives the group: in the next one all begin behind the furthest. */
#ifndef RUNTIME_MONITOR_STOP_STEP_H
#define RUNTIME_MONITOR_STOP_STEP_H

#include "runtime/monitor/control_page.h"

#define STOP_CLOSED (UINT64_C(1) << 63)

/* 1: the rank of this page is past `step`.  0: its word is closed. */
static inline int stop_pass(struct control_rank *own, uint64_t step)
{
    uint64_t before = step - 1;

    return atomic_compare_exchange_strong(&own->steps, &before, step);
}

static inline uint64_t stop_steps(const struct control_rank *page)
{
    return atomic_load(&page->steps) & ~STOP_CLOSED;
}

/* It counts as past `steps`, as another rank is; closed or not, it stays so. */
static inline void stop_catch_up(struct control_rank *own, uint64_t steps)
{
    uint64_t before = atomic_load(&own->steps);

    while ((before & ~STOP_CLOSED) < steps
           && !atomic_compare_exchange_weak(&own->steps, &before, steps | (before & STOP_CLOSED)))
        ;
}

/* How far it came; from now on it can't pass. */
static inline uint64_t stop_close(struct control_rank *page)
{
    return atomic_fetch_or(&page->steps, STOP_CLOSED) & ~STOP_CLOSED;
}

#endif
