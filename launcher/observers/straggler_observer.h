/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_observer.h - measures for which part of the time this host's ranks are in collectives.
 * In each window (half of --stall) it looks about a hundred times into the control page; the ranks
 * count nothing.  Messages do not count, since a server waits for its clients all the time.
 * launcher/nodes/slow_rank.h says what follows. */
#ifndef LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H
#define LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H

#include <stdint.h>

#include "launcher/nodes/slow_rank.h"

struct rank_share {
    int inside;            /* looks at which the rank was in a collective */
    uint64_t calls;        /* collectives that it began in the window */
    uint64_t calls_before; /* and before the window */
};

/* For tests. */
struct collective_shares shares_of(const struct rank_share *share, int size, int looks,
                                   int first_rank);

#endif
