/* SPDX-License-Identifier: Apache-2.0 */
/* host_blocks.h - a piece of each rank's block.  The pieces of a host's ranks lie one behind the
 * other, so that a gather or a scatter sends them between two hosts as one message. */
#ifndef COLLECTIVES_HOSTS_HOST_BLOCKS_H
#define COLLECTIVES_HOSTS_HOST_BLOCKS_H

#include "collectives/hosts/host_topology.h"
#include "collectives/hosts/rail.h"

struct host_blocks {
    const struct level *level;
    size_t at, bytes; /* where the current piece begins in each block; its bytes */
    char *all;        /* [size] pieces in the order of fold_rank; NULL if this rank has none */
};

/* Carries out one piece of a gather or a scatter.  host_blocks_run() calls this function for each
 * piece of the call. */
typedef ct_status host_blocks_piece(struct call *c, const struct rail *rail,
                                    const struct host_blocks *p);
ct_status host_blocks_run(struct call *c, host_blocks_piece *one_piece);

/* True if one message for each host is better than one for each rank.  This holds for small blocks,
 * and for groups so large that the root should not have a connection to each rank. */
static inline int host_blocks_fit(const struct call *c)
{
    return c->group->order.host_most > 1 && c->group->order.hosts > 1 && sizes_are_agreed(c)
           && (call_bytes(c) <= (32u << 10) || c->group->size > 64);
}

/* Returns the pieces of the ranks of a host. */
static inline struct span host_blocks_of(const struct call *c, const struct host_blocks *b,
                                         int host)
{
    const size_t first = (size_t)(c->group->order.node_end[host] - host_ranks(c->group, host));

    return span_of(b->all + first * b->bytes, (size_t)host_ranks(c->group, host) * b->bytes);
}

/* Returns the piece of rank i of this host. */
static inline struct span host_block_here(const struct call *c, const struct host_blocks *b, int i)
{
    return span_of(host_blocks_of(c, b, b->level->host).data + (size_t)i * b->bytes, b->bytes);
}

#endif
