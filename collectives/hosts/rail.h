/* SPDX-License-Identifier: Apache-2.0 */
/* rail.h - steps between hosts.  A rail is one rank of each host.  The ranks of a rail exchange
 * what their hosts have.
 *
 * A call over several hosts uses one rail, or as many rails as the smallest host has ranks.  Each
 * rail then carries a part of the data, so that all ranks of a host share the work of folding,
 * copying and sending.
 *
 * A rail can exchange in the ways of the table (enum rail_way).  In their costs, h is the number of
 * hosts, n the bytes, alpha the time until a message arrives, o the time in which a rank sends or
 * receives one more message, and beta the time of a byte on a host's wire.  Reductions fold in the
 * fixed order of combine.h.
 *
 *     direct      each host sends to each other host         few hosts: one step or two
 *     doubling    hosts 1, 2, 4, ... apart exchange          log2(h) (alpha + n beta)
 *     halving     doubling, with half the bytes each time    2 log2(h) alpha + 2 n beta
 *     chain       segments go from host to host              broadcast: (h + n/segment) steps
 *     parts       each host but the root folds a part        reduce: 2 (alpha + (h-2) o) + n beta
 *
 * [Thakur, Rabenseifner & Gropp, "Optimization of Collective Communication Operations in MPICH",
 * 2005] */
#ifndef COLLECTIVES_HOSTS_RAIL_H
#define COLLECTIVES_HOSTS_RAIL_H

#include "collectives/core/network_model.h"
#include "collectives/hosts/host_topology.h"

struct rail {
    struct call *call;
    int hosts, host; /* number of hosts; number of this rank's host */
    int number;      /* number of the rail's rank on each host but root_host */
    int root_host;   /* host on which the rail has `root` instead; -1 if on no host */
    int root;        /* group rank of the rail's rank on root_host */
    int has_all_ranks;
};

/* Returns the rail that has, on each host, the rank with this rank's number on its host. */
struct rail rail_of(struct call *c, const struct level *level);
/* Returns the rail of the root and of the first ranks of the other hosts. */
struct rail rail_of_root(struct call *c, const struct level *level);
/* Returns a rail in which each rank of the group counts as a host, in the order of fold_rank.  So
 * the same ways serve groups with ranks that share no memory. */
struct rail rail_of_ranks(struct call *c);

/* Returns the group rank of the rail's rank on that host. */
int rail_peer(const struct rail *rail, int host);

enum rail_way { RAIL_DIRECT, RAIL_DOUBLING, RAIL_HALVING, RAIL_CHAIN, RAIL_PARTS };

/* Fold `in`, the partial result of this host, and those of all other hosts into `out`, and divide
 * for AVG.  in and out may be the same memory. */
ct_status rail_all_reduce_direct(const struct rail *rail, struct span in, struct span out);
ct_status rail_all_reduce_doubling(const struct rail *rail, struct span in, struct span out);
ct_status rail_all_reduce_halving(const struct rail *rail, struct span in, struct span out);
/* Calls the function of that way, which must not be RAIL_CHAIN or RAIL_PARTS. */
ct_status rail_all_reduce(const struct rail *rail, enum rail_way way, struct span in,
                          struct span out);

/* Fold `data`, the partial result of this host, and those of all other hosts into `data` on `host`.
 * On the other hosts the content of `data` is undefined afterwards.  The way must not be
 * RAIL_CHAIN. */
ct_status rail_reduce_direct(const struct rail *rail, int host, struct span data);
ct_status rail_reduce_doubling(const struct rail *rail, int host, struct span data);
ct_status rail_reduce_halving(const struct rail *rail, int host, struct span data);
ct_status rail_reduce_parts(const struct rail *rail, int host, struct span data);
ct_status rail_reduce(const struct rail *rail, enum rail_way way, int host, struct span data);

/* Send `data` of `host` to all hosts of the rail. */
ct_status rail_broadcast_direct(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_doubling(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_halving(const struct rail *rail, int host, struct span data);
ct_status rail_broadcast_chain(const struct rail *rail, int host, struct span data);
/* Calls the function of that way, which must not be RAIL_PARTS. */
ct_status rail_broadcast(const struct rail *rail, enum rail_way way, int host, struct span data);

/* Waits until all hosts of the rail are in the call. */
ct_status rail_barrier(const struct rail *rail);

/* Returns what is sent to `host`, or the place for what comes from it. */
typedef struct span rail_span(const struct call *c, const void *arg, int host);
/* Sends out() to each other host, and receives in() from each. */
ct_status rail_exchange(const struct rail *rail, rail_span *out, rail_span *in, const void *arg);
/* rail_exchange() starts further messages together while those that it has started, over all rails
 * of the host, have fewer bytes than this.  A large message takes 3 alpha before its bytes, since
 * the sender asks first.  So these 3 alpha add at most an eighth to the time of the bytes. */
static inline double rail_bytes_together(const struct network_model *network)
{
    return 8 * (3 * network->alpha_us) / network->us_per_byte;
}

/* The blocks of an all-gather.  block() returns where the block of `host` lies in this rank's
 * memory.  The length of a block is the same on all ranks.  The block of this rank's host is there
 * from the start, and the other blocks arrive. */
struct rail_blocks {
    struct span (*block)(const struct call *c, const void *arg, int host);
    const void *arg;
};
/* Sends each host's block to all hosts.  The way must not be RAIL_HALVING or RAIL_PARTS.
 * RAIL_DOUBLING needs blocks of one size, and copies them. */
ct_status rail_all_gather(const struct rail *rail, enum rail_way way,
                          const struct rail_blocks *blocks);

/* Return the time of a way in us, on the network that CT_NETWORK or CT_TUNING describes, or else on
 * the network that network_model_of() assumes or that calls have measured.  bytes: what all rails
 * of a host carry together; for an all-gather, what one host contributes. */
double rail_all_reduce_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_reduce_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_broadcast_cost(const struct call *c, enum rail_way way, size_t bytes);
double rail_all_gather_cost(const struct call *c, enum rail_way way, size_t bytes);

/* Maximum bytes of a reduction for which hosts take one direct step instead of two.  For two hosts
 * the maximum is higher, since one step then sends no more bytes than two. */
#define RAIL_ONE_STEP ((size_t)8 << 10)
#define RAIL_ONE_STEP_OF_TWO ((size_t)256 << 10)
static inline int rail_takes_one_step(int hosts, size_t bytes)
{
    return bytes <= (hosts == 2 ? RAIL_ONE_STEP_OF_TWO : RAIL_ONE_STEP);
}

#endif
