/* SPDX-License-Identifier: Apache-2.0 */
/* slow_rank.h - which rank of the job makes the others wait, by how much of a time the ranks of
 * each node were in collectives (launcher/observers/straggler_observer.c).
 *
 * A rank that comes last into each collective hardly waits there, and the other ranks wait for it:
 * so it is in collectives for a small part of the time, and they for a large one. */
#ifndef LAUNCHER_NODES_SLOW_RANK_H
#define LAUNCHER_NODES_SLOW_RANK_H

/* Of a node's ranks, in per cent of a window of time. */
struct collective_shares {
    int rank, least; /* the one that was there for the least of the time, and its share */
    int next, most; /* the least and the largest share of the others here; 100, 0: there are none */
    int calls;      /* collectives that the rank began */
};

struct slow_rank {
    int rank;  /* -1: all of a node, or none */
    int node;  /* that all ranks of are slow, an index; -1: one rank, or none */
    int share; /* of the rank; the largest of the node */
    int others_least, others_most;
};

/* The one that the others wait for: it is in collectives for much less of the time than each of the
 * others is, and made several of them.  Or the node whose ranks all are. */
struct slow_rank slow_rank_among(const struct collective_shares *shares, int nodes);

#endif
