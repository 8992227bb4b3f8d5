/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_observer.h - how much of the time this host's ranks are in collectives: by the control
 * page, into which it looks some hundred times within half the time of --stall, a window.  Nothing
 * is counted in the ranks.  Messages do not count, since a server waits for its clients all the
 * time.  What follows from it: launcher/nodes/slow_rank.h. */
#ifndef LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H
#define LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H

#include <stdint.h>

#include "launcher/nodes/slow_rank.h"

struct rank_share {
    int inside;            /* in how many looks it was in a collective */
    uint64_t calls;        /* collectives that it began meanwhile */
    uint64_t calls_before; /* and before */
};

/* For tests. */
struct collective_shares shares_of(const struct rank_share *share, int size, int looks,
                                   int first_rank);

#endif
