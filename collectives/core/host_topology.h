/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.h - a group that spans hosts, as algorithms of two levels see it.
 *
 * Hosts count in the order in which they first appear among the ranks, the ranks of one in rank
 * order: the written order of reductions.  Rank 0 of a host speaks for it. */
#ifndef COLLECTIVES_CORE_HOST_TOPOLOGY_H
#define COLLECTIVES_CORE_HOST_TOPOLOGY_H

#include "collectives/core/sendrecv.h"

struct level {
    int hosts, host; /* how many; this rank's */
    int ranks, rank; /* on this host */
};

int host_ranks(const ct_group *g, int host);

/* The group's rank of the host's i-th. */
int host_rank(const ct_group *g, int host, int i);

struct level level_of(const ct_group *g, int rank);

/* Several hosts, and more than one rank on some of them. */
int has_two_levels(const ct_group *g);
int hosts_are_alike(const ct_group *g);

/* Has what a host's ranks fold to a place in the dtype, with nothing lost?  And is it in the order
 * that was asked for? */
int hosts_can_fold(const struct call *c);

/* *dst = the sources in their order; what AVG owes is paid once all is summed. */
void fold_some(const struct call *c, void *dst, const void *const *sources, int count,
               size_t bytes);

#endif
