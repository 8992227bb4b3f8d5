/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h - reductions among some ranks of a group that send to each other: all its ranks, or one
 * of each host.
 *
 * A buffer is folded where its parts meet, in the order that ->fold has, so these keep the written
 * order. */
#ifndef COLLECTIVES_CORE_PEERS_H
#define COLLECTIVES_CORE_PEERS_H

#include "collectives/core/sendrecv.h"

struct peers {
    int count, own;                           /* how many; this rank's number among them */
    int (*rank)(const void *arg, int number); /* of the group */
    /* dst = fold of the sources, one of each, divided if it is an average.  It may be one of them.
     */
    ct_status (*fold)(struct call *c, const void *arg, struct span dst, const void *const *sources);
    const void *arg;
};

/* All ranks of the call's group, folded in the group's written order. */
struct peers peers_of_group(const struct call *c);

static inline int peer_rank(const struct peers *peers, int number)
{
    return peers->rank(peers->arg, number);
}

/* Does the order of a reduction not show, or not matter (CT_ORDER=fast)?  An average's sum must not
 * wrap on the way. */
int order_is_free(const struct call *c);

/* in: this rank's; out: the fold, on all of them.  They may be the same memory. */
ct_status one_shot(struct call *c, const struct peers *peers, struct span in, struct span out);
ct_status two_shot(struct call *c, const struct peers *peers, struct span in, struct span out);

/* The fold on the peer of number `root` alone, where out is.  in and out may be the same memory. */
ct_status fold_at_root(struct call *c, const struct peers *peers, int root, struct span in,
                       struct span out);

#endif
