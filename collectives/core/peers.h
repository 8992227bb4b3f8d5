/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - reductions among ranks of a group that send to each other: all its ranks, or one of
 * each host.
 *
 * The peer at which the parts of a buffer meet folds them in the order that ->fold has.  So these
 * reductions keep the written order. */
#ifndef COLLECTIVES_CORE_PEERS_H
#define COLLECTIVES_CORE_PEERS_H

#include "collectives/core/sendrecv.h"

struct peers {
    int count, own;                           /* how many peers; this rank's number among them */
    int (*rank)(const void *arg, int number); /* gives the group rank of a peer */
    /* dst = fold of the sources, one for each peer; an average is divided.  dst may be one of the
     * sources. */
    ct_status (*fold)(struct call *c, const void *arg, struct span dst, const void *const *sources);
    const void *arg;
};

/* Gives all ranks of the call's group as peers; they fold in the group's written order. */
struct peers peers_of_group(const struct call *c);

static inline int peer_rank(const struct peers *peers, int number)
{
    return peers->rank(peers->arg, number);
}

/* Says whether the order of a reduction can't be seen in its result, or does not matter
 * (CT_ORDER=fast).  0 for an average: its sum must not wrap on the way. */
int order_is_free(const struct call *c);

/* Fold this rank's `in` and those of the other peers.  out: the result, on all peers.  in and out
 * may be the same memory. */
ct_status one_shot(struct call *c, const struct peers *peers, struct span in, struct span out);
ct_status two_shot(struct call *c, const struct peers *peers, struct span in, struct span out);

/* Folds to the peer of number `root` alone, which has out.  in and out may be the same memory. */
ct_status fold_at_root(struct call *c, const struct peers *peers, int root, struct span in,
                       struct span out);

#endif
