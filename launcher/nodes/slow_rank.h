/* SPDX-License-Identifier: Apache-2.0 */
/* slow_rank.h - finds the rank of the job that makes the other ranks wait (a straggler), from the
 * share of time that each rank spent in collectives (launcher/observers/straggler_observer.c).
 *
 * A rank that is the last to enter each collective hardly waits there, while the other ranks wait
 * for this rank.  So the share of a slow rank is small, and the shares of the other ranks are
 * large. */
#ifndef LAUNCHER_NODES_SLOW_RANK_H
#define LAUNCHER_NODES_SLOW_RANK_H

/* The time that a node's ranks spent in collectives, in percent of a window of time. */
struct collective_shares {
    int rank, least; /* the rank with the smallest share; that share */
    int next, most;  /* smallest and largest share of the node's other ranks; 100 and 0 if none */
    int calls;       /* number of collectives that `rank` began in the window */
};

/* A slow rank or a slow node.  rank and node are -1 if neither was found. */
struct slow_rank {
    int rank;  /* the slow rank; -1 if a whole node is slow */
    int node;  /* index of the node on which all ranks are slow; -1 if a single rank is slow */
    int share; /* share of the slow rank, or largest share on the slow node */
    int others_least, others_most; /* smallest and largest share of the other ranks */
};

/* Finds the slow rank or the slow node.  A rank is slow if it began several collectives and its
 * share is much smaller than the share of each other rank.  A node is slow if the shares of all its
 * ranks are much smaller than the share of each rank of the other nodes. */
struct slow_rank slow_rank_among(const struct collective_shares *shares, int nodes);

#endif
