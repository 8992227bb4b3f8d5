/* SPDX-License-Identifier: Apache-2.0 */
/* rail.h - steps between hosts: a rail is one rank of each host, and these exchange what their
 * hosts have.
 *
 * A call over several hosts has one rail, or as many as the smallest host has ranks; each then
 * carries a part, so that all ranks of a host share the work of folding, copying and sending.
 *
 * Between the hosts of a rail there are these ways; h hosts, n bytes, alpha for a message to
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
#ifndef COLLECTIVES_HOSTS_RAIL_H
#define COLLECTIVES_HOSTS_RAIL_H

#include "collectives/hosts/host_topology.h"

struct rail {
    struct call *call;
    int hosts, host; /* how many; this rank's */
    int number;      /* it has the rank of this number on each host, */
    int root_host;   /* but on this host (-1: on none) it has */
    int root;        /* this one, of the group */
    int has_all_ranks;
};

/* The rail of this rank's number. */
struct rail rail_of(struct call *c, const struct level *level);
/* The rail of the root and of the first ranks of the other hosts. */
struct rail rail_of_root(struct call *c, const struct level *level);
/* All ranks of the group as if each were a host, host by host (fold_rank): the same ways serve a
 * group whose ranks share no memory. */
struct rail rail_of_ranks(struct call *c);

/* The group rank of the rail on that host. */
int rail_peer(const struct rail *rail, int host);

enum rail_way { RAIL_DIRECT, RAIL_DOUBLING, RAIL_HALVING, RAIL_CHAIN };

/* in: the fold of this host; out: that of all hosts, AVG: divided.  They may be the same memory. */
ct_status rail_all_reduce_direct(const struct rail *rail, struct span in, struct span out);
ct_status rail_all_reduce_doubling(const struct rail *rail, struct span in, struct span out);
ct_status rail_all_reduce_halving(const struct rail *rail, struct span in, struct span out);
/* The way of this name; no chain. */
ct_status rail_all_reduce(const struct rail *rail, enum rail_way way, struct span in,
                          struct span out);

/* data: the fold of this host; then that of all hosts on `host`, and of no use on the others.  No
 * chain. */
ct_status rail_reduce_direct(const struct rail *rail, int host, struct span data);
ct_status rail_reduce_doubling(const struct rail *rail, int host, struct span data);
ct_status rail_reduce_halving(const struct rail *rail, int host, struct span data);
ct_status rail_reduce(const struct rail *rail, enum rail_way way, int host, struct span data);

/* data: of `host`, to all. */
ct_status rail_broadcast_direct(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_doubling(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_halving(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_chain(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast(const struct rail *rail, enum rail_way way, int host, struct span data);

/* Nothing but that all hosts are there. */
ct_status rail_barrier(const struct rail *rail);

/* block(arg, host): of each host, as long on all ranks; that of this host is there, the others'
 * arrive. */
struct rail_blocks {
    struct span (*block)(const struct call *c, const void *arg, int host);
    const void *arg;
};
/* No halving.  By doubling blocks of one size alone, and they are copied. */
ct_status rail_all_gather(const struct rail *rail, enum rail_way way,
                          const struct rail_blocks *blocks);

/* What each of these ways takes, in us, by the network that CT_NETWORK or CT_TUNING tells, or a
 * common one (struct network_model).  bytes: of all rails of a host; of an all-gather one host's.
 */
double rail_all_reduce_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_reduce_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_broadcast_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_all_gather_cost(const struct call *c, enum rail_way way, size_t bytes);

/* Bytes of a reduction up to which hosts take one step directly: two have no more to send then. */
#define RAIL_ONE_STEP ((size_t)8 << 10)
#define RAIL_ONE_STEP_OF_TWO ((size_t)256 << 10)
static inline int rail_takes_one_step(int hosts, size_t bytes)
{
    return bytes <= (hosts == 2 ? RAIL_ONE_STEP_OF_TWO : RAIL_ONE_STEP);
}

#endif
