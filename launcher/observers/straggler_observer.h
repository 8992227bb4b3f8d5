/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_observer.h - measures for which part of the time this host's ranks are in collectives.
 *
 * In each window (half of --stall, or 4 times --stall if observers answer) the straggler observer
 * samples the control page about a hundred times, so the ranks need no counters.  Sends and
 * receives do not count, since a server waits for its clients all the time.
 * launcher/nodes/slow_rank.h finds stragglers from the measurements. */
#ifndef LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H
#define LAUNCHER_OBSERVERS_STRAGGLER_OBSERVER_H

#include <stdint.h>

#include "launcher/nodes/slow_rank.h"

struct rank_share {
    int inside;     /* samples that found the rank in a collective */
    uint64_t calls; /* collectives that the rank began in the window */
};

struct job;

/* Returns the length of two windows. */
int shares_seconds(const struct job *job);
/* Returns the shares of a node's ranks, of which `looks` samples were taken.  Declared here for
 * tests. */
struct collective_shares shares_of(const struct rank_share *share, int size, int looks,
                                   int first_rank);

#endif
