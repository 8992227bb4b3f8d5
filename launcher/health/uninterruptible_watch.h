/* SPDX-License-Identifier: Apache-2.0 */
/* uninterruptible_watch.h - workers that hang in the kernel (state D: a driver, a file system).
 *
 * Only with TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=SECONDS: a worker hangs if it was in that
 * state at each check for that long. */
#ifndef LAUNCHER_HEALTH_UNINTERRUPTIBLE_WATCH_H
#define LAUNCHER_HEALTH_UNINTERRUPTIBLE_WATCH_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/workers/worker.h"

struct uninterruptible_watch {
    double limit; /* seconds; 0: off */
    struct event timer;
    const struct worker *workers;
    int size;
    int64_t *since; /* by worker: in state D at each check since then, in ms; 0: not */
    void (*found)(void *arg, int local_rank);
    void *arg;
};

/* found() is told once per round.  0 or -1: out of memory. */
int uninterruptible_watch_open(struct uninterruptible_watch *watch, struct event_base *base,
                               const struct worker *workers, int size,
                               void (*found)(void *arg, int local_rank), void *arg);
void uninterruptible_watch_begin(struct uninterruptible_watch *watch); /* a round */
void uninterruptible_watch_end(struct uninterruptible_watch *watch);
void uninterruptible_watch_close(struct uninterruptible_watch *watch);

#endif
