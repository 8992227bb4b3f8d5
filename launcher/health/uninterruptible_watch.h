/* SPDX-License-Identifier: Apache-2.0 */
/* uninterruptible_watch.h - workers that hang in the kernel (state D: a driver, a file system).
 *
 * With TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=SECONDS, and only then, they are looked at:
 * who was in that state whenever we looked, for that long, is stuck. */
#ifndef LAUNCHER_HEALTH_UNINTERRUPTIBLE_WATCH_H
#define LAUNCHER_HEALTH_UNINTERRUPTIBLE_WATCH_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/workers/worker.h"

struct stuck {
    double limit; /* seconds; 0: nobody looks */
    struct event look;
    const struct worker *workers;
    int size;
    int64_t *since; /* by worker: in state D at each look since then, in ms; 0: not */
    void (*found)(void *arg, int local_rank);
    void *arg;
};

/* found() is told once per round.  0 or -1: out of memory. */
int stuck_open(struct stuck *stuck, struct event_base *base, const struct worker *workers, int size,
               void (*found)(void *arg, int local_rank), void *arg);
void stuck_begin(struct stuck *stuck); /* a round */
void stuck_end(struct stuck *stuck);
void stuck_close(struct stuck *stuck);

#endif
