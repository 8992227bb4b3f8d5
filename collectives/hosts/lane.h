/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - steps between hosts: one rank of each host, those of a lane, exchange what their hosts
 * have.
 *
 * A call over several hosts has one lane, or one for each rank that the smallest host has, of which
 * each carries a part: then all ranks of a host share the work of folding, copying and sending.
 *
 * Between the hosts of a lane there are these ways; h hosts, n bytes, alpha for a message to
 * arrive, o for a rank to send or take one more, beta for a byte on a host's wire.  Reductions fold
 * in the written order, as the tree of combine.h.
 *
 *     direct      each sends to each                     few hosts: one step or two
 *     doubling    with the host 1, 2, 4, ... away        log2(h) (alpha + n beta)
 *     halving     the same, of half as much each time    2 log2(h) alpha + 2 n beta
 *     chain       from host to host in pieces            broadcast: (h + n/piece) steps
 *
 * [Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
 * 2005] */
#ifndef COLLECTIVES_HOSTS_LANE_H
#define COLLECTIVES_HOSTS_LANE_H

#include "collectives/hosts/host_topology.h"

struct lane {
    struct call *call;
    int hosts, host; /* how many; this rank's */
    int number;      /* it has the rank of this number on each host, */
    int root_host;   /* but on this host (-1: on none) it has */
    int root;        /* this one, of the group */
    int has_all_ranks;
};

/* The lane of this rank's number. */
struct lane lane_of(struct call *c, const struct level *level);
/* The lane of the root and of the first ranks of the other hosts. */
struct lane lane_of_root(struct call *c, const struct level *level);
/* All ranks of the group as if each were a host, host by host (fold_rank): the same ways serve a
 * group whose ranks share no memory. */
struct lane lane_of_ranks(struct call *c);

/* The group rank of the lane on that host. */
int lane_peer(const struct lane *lane, int host);

enum lane_way { LANE_DIRECT, LANE_DOUBLING, LANE_HALVING, LANE_CHAIN };

/* in: the fold of this host; out: that of all hosts, AVG: divided.  They may be the same memory. */
ct_status lane_all_reduce_direct(const struct lane *lane, struct span in, struct span out);
ct_status lane_all_reduce_doubling(const struct lane *lane, struct span in, struct span out);
ct_status lane_all_reduce_halving(const struct lane *lane, struct span in, struct span out);
/* The way of this name; no chain. */
ct_status lane_all_reduce(const struct lane *lane, enum lane_way way, struct span in,
                          struct span out);

/* data: the fold of this host; then that of all hosts on `host`, and of no use on the others.  No
 * chain. */
ct_status lane_reduce_direct(const struct lane *lane, int host, struct span data);
ct_status lane_reduce_doubling(const struct lane *lane, int host, struct span data);
ct_status lane_reduce_halving(const struct lane *lane, int host, struct span data);
ct_status lane_reduce(const struct lane *lane, enum lane_way way, int host, struct span data);

/* data: of `host`, to all. */
ct_status lane_broadcast_direct(const struct lane *lane, int host, struct span data);
ct_status lane_broadcast_doubling(const struct lane *lane, int host, struct span data);
ct_status lane_broadcast_halving(const struct lane *lane, int host, struct span data);
ct_status lane_broadcast_chain(const struct lane *lane, int host, struct span data);
ct_status lane_broadcast(const struct lane *lane, enum lane_way way, int host, struct span data);

/* Nothing but that all hosts are there. */
ct_status lane_barrier(const struct lane *lane);

/* block(arg, host): of each host, as long on all ranks; that of this host is there, the others'
 * arrive. */
struct lane_blocks {
    struct span (*block)(const struct call *c, const void *arg, int host);
    const void *arg;
};
/* No halving.  By doubling blocks of one size alone, and they are copied. */
ct_status lane_all_gather(const struct lane *lane, enum lane_way way,
                          const struct lane_blocks *blocks);

/* What each of these ways takes, in us, by the network that CT_NETWORK or CT_TUNING tells, or a
 * common one (struct network_model).  bytes: of all lanes of a host; of an all-gather one host's.
 */
double lane_all_reduce_cost(const struct call *c, enum lane_way way, size_t bytes);
double lane_reduce_cost(const struct call *c, enum lane_way way, size_t bytes);
double lane_broadcast_cost(const struct call *c, enum lane_way way, size_t bytes);
double lane_all_gather_cost(const struct call *c, enum lane_way way, size_t bytes);

/* Bytes of a reduction up to which hosts take one step directly: two have no more to send then. */
#define LANE_ONE_STEP ((size_t)8 << 10)
#define LANE_ONE_STEP_OF_TWO ((size_t)256 << 10)
static inline int lane_takes_one_step(int hosts, size_t bytes)
{
    return bytes <= (hosts == 2 ? LANE_ONE_STEP_OF_TWO : LANE_ONE_STEP);
}

#endif
