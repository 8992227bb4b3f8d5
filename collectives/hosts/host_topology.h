/* SPDX-License-Identifier: Apache-2.0 */
/* host_topology.h - a group over several hosts, as algorithms of two levels see it.
 *
 * Hosts are numbered in the order in which they first appear among the ranks, and the ranks of a
 * host in rank order.  Reductions fold in this order. */
#ifndef COLLECTIVES_HOSTS_HOST_TOPOLOGY_H
#define COLLECTIVES_HOSTS_HOST_TOPOLOGY_H

#include "collectives/core/sendrecv.h"

/* In a group of more hosts, no rank sends to each host, since that needs a connection to each. */
#define HOSTS_MOST_DIRECT 256

struct level {
    int hosts, host; /* number of hosts; number of the rank's host */
    int ranks, rank; /* number of ranks on that host; the rank's number there */
};

int host_ranks(const ct_group *g, int host);

/* Returns the group rank of rank i of a host. */
int host_rank(const ct_group *g, int host, int i);

struct level level_of(const ct_group *g, int rank);

int hosts_are_alike(const ct_group *g);

/* Says whether each host may fold its own ranks' inputs first.  Two cases forbid it.  In the first,
 * CT_ORDER asks for rank order and the dtype is not an integer.  In the second, there are at most
 * HOSTS_MOST_DIRECT hosts of one rank each, and a partial result is wider than an input. */
int hosts_can_fold(const struct call *c);

/* Returns the call with the dtype of partial results, for the steps between hosts.  The partial
 * results of f16, bf16 and f8 have f32, and those of averages of integers have 64 bits, so that the
 * result is rounded once.  With CT_ORDER=fast f16, bf16 and f8 are not widened.  The other ranks
 * still see the original call when they compare signatures. */
struct call call_of_partials(const struct call *c);
int has_wide_partials(const struct call *c);
/* Returns the bytes of partial results for so many bytes of input. */
size_t partial_bytes(const struct call *c, size_t bytes);
/* Folds `count` sources, each of `bytes` bytes of the call's dtype, left to right.  Writes the
 * partial results to dst. */
void fold_partials(const struct call *c, void *dst, const void *const *sources, int count,
                   size_t bytes);
/* Rounds partial results to the call's dtype and writes them to dst.  Partial results of this dtype
 * are only copied unless they already lie in dst. */
void round_partials(const struct call *c, struct span dst, const void *partials);

/* Folds the sources into dst, left to right.  For AVG dst gets the sum, which the caller divides at
 * the end. */
void fold_some(const struct call *c, void *dst, const void *const *sources, int count,
               size_t bytes);
/* Folds one partial result of each host into dst, in the tree order of combine.h.  For AVG dst gets
 * the sum. */
void fold_hosts(const struct call *c, void *dst, const void *const *sources, size_t bytes);

#endif
