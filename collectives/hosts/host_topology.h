/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.h - a group that spans hosts, as algorithms of two levels see it.
 *
 * Hosts count in the order in which they first appear among the ranks, the ranks of one in rank
 * order: the written order of reductions. */
#ifndef COLLECTIVES_HOSTS_HOST_TOPOLOGY_H
#define COLLECTIVES_HOSTS_HOST_TOPOLOGY_H

#include "collectives/core/sendrecv.h"

struct level {
    int hosts, host; /* how many; this rank's */
    int ranks, rank; /* on this host */
};

int host_ranks(const ct_group *g, int host);

/* The group rank of rank i of a host. */
int host_rank(const ct_group *g, int host, int i);

struct level level_of(const ct_group *g, int rank);

int hosts_are_alike(const ct_group *g);

/* May each host fold its own ranks first?  Yes if the dtype holds a partial result exactly, and
 * the order is the one that CT_ORDER asks for. */
int hosts_can_fold(const struct call *c);

/* *dst = fold of the sources from left to right.  AVG: the sum; the caller divides at the end. */
void fold_some(const struct call *c, void *dst, const void *const *sources, int count,
               size_t bytes);
/* The same of one partial result of each host, as the tree of the written order (combine.h). */
void fold_hosts(const struct call *c, void *dst, const void *const *sources, size_t bytes);

#endif
