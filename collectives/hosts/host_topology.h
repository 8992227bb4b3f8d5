/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.h - a group that spans hosts, as algorithms of two levels see it.
 *
 * Hosts count in the order in which they first appear among the ranks, the ranks of one in rank
 * order: the written order of reductions. */
#ifndef COLLECTIVES_HOSTS_HOST_TOPOLOGY_H
#define COLLECTIVES_HOSTS_HOST_TOPOLOGY_H

#include "collectives/core/sendrecv.h"

/* Among more hosts no rank sends to each: it would have a connection to each. */
#define HOSTS_MOST_DIRECT 256

struct level {
    int hosts, host; /* how many; this rank's */
    int ranks, rank; /* on this host */
};

int host_ranks(const ct_group *g, int host);

/* The group rank of rank i of a host. */
int host_rank(const ct_group *g, int host, int i);

struct level level_of(const ct_group *g, int rank);

int hosts_are_alike(const ct_group *g);

/* May each host fold its own ranks first?  Yes if that is the order which CT_ORDER asks for, and,
 * where partial results take more bytes than the call's dtype, if they are fewer than the inputs.
 */
int hosts_can_fold(const struct call *c);

/* What a host has folded has the dtype in which the call is folded, so that the result is rounded
 * once: f32 for f16, bf16 and f8, 64 bits for averages of integers.  (CT_ORDER=fast: the call's
 * own.)  This is a call of that dtype, for what happens between hosts: it is the same call to the
 * other ranks. */
struct call call_of_partials(const struct call *c);
int has_wide_partials(const struct call *c);
/* dst, partial results = fold of sources of so many bytes of the call's dtype, left to right. */
void fold_partials(const struct call *c, void *dst, const void *const *sources, int count,
                   size_t bytes);
/* dst, of the call's dtype = what has become of the partial results; nothing where those have the
 * same dtype and lie there. */
void round_partials(const struct call *c, struct span dst, const void *partials);

/* *dst = fold of the sources from left to right.  AVG: the sum; the caller divides at the end. */
void fold_some(const struct call *c, void *dst, const void *const *sources, int count,
               size_t bytes);
/* The same of one partial result of each host, as the tree of the written order (combine.h). */
void fold_hosts(const struct call *c, void *dst, const void *const *sources, size_t bytes);

#endif
