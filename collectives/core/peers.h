/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - reductions among peers, which are ranks that send to each other: all ranks of a group,
 * or one rank of each host.
 *
 * The peer that receives the parts of a buffer folds them in the order that ->fold uses.  So these
 * reductions keep the written order. */
#ifndef COLLECTIVES_CORE_PEERS_H
#define COLLECTIVES_CORE_PEERS_H

#include "collectives/core/sendrecv.h"

struct peers {
    /* number of peers; this rank's number among the peers */
    int count, own;
    int (*rank)(const void *arg, int number); /* returns the group rank of a peer */
    /* Folds the sources, one for each peer, into dst.  An average is divided. dst may be one of the
     * sources. */
    ct_status (*fold)(struct call *c, const void *arg, struct span dst, const void *const *sources);
    const void *arg;
};

/* Returns all ranks of the call's group as peers.  They fold in the group's written order. */
struct peers peers_of_group(const struct call *c);

static inline int peer_rank(const struct peers *peers, int number)
{
    return peers->rank(peers->arg, number);
}

/* Returns 1 if the order of a reduction can't be seen in the result, or does not matter
 * (CT_ORDER=fast).  Returns 0 for an average, since partial sums must not overflow. */
int order_is_free(const struct call *c);

/* Reduce the inputs `in` of all peers into `out` on every peer. in and out may be the same memory.
 */
ct_status one_shot(struct call *c, const struct peers *peers, struct span in, struct span out);
ct_status two_shot(struct call *c, const struct peers *peers, struct span in, struct span out);

/* Reduce the inputs of all peers into `out` of peer number `root` only. in and out may be the same
 * memory.  two_shot_to_root() needs `out` on all peers. */
ct_status fold_at_root(struct call *c, const struct peers *peers, int root, struct span in,
                       struct span out);
ct_status two_shot_to_root(struct call *c, const struct peers *peers, int root, struct span in,
                           struct span out);

#endif
