/* SPDX-License-Identifier: Apache-2.0 */
/* slow_rank.h - finds the rank of the job that makes the others wait, from the part of a time that
 * each node's ranks were in collectives (launcher/observers/straggler_observer.c).
 *
 * A rank that comes last into each collective hardly waits there, and the other ranks wait for it:
 * so it is in collectives for a small part of the time, and the others for a large part. */
#ifndef LAUNCHER_NODES_SLOW_RANK_H
#define LAUNCHER_NODES_SLOW_RANK_H

/* Shares of a node's ranks, in per cent of a window of time. */
struct collective_shares {
    int rank, least; /* the rank with the least share, and its share */
    int next, most;  /* least and largest share of the node's other ranks; 100, 0: no others */
    int calls;       /* collectives that the rank began */
};

struct slow_rank {
    int rank;  /* -1: all ranks of a node, or no rank */
    int node;  /* index of the node whose ranks are all slow; -1: no such node */
    int share; /* share of the rank, or largest share of the node */
    int others_least, others_most;
};

/* Finds the rank that the others wait for: its share is much less than each other rank's share, and
 * it began several collectives.  Or finds the node of which this is true for all ranks. */
struct slow_rank slow_rank_among(const struct collective_shares *shares, int nodes);

#endif
