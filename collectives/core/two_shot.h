/* SPDX-License-Identifier: Apache-2.0 */
/* two_shot.h - an all-reduce in two steps among some ranks, each of which folds a part. */
#ifndef COLLECTIVES_CORE_TWO_SHOT_H
#define COLLECTIVES_CORE_TWO_SHOT_H

#include "collectives/core/sendrecv.h"

/* Who takes part: all ranks of the group, or a rank of each host. */
struct two_shot_peers {
    int count, own;                           /* how many; this rank's number among them */
    int (*rank)(const void *arg, int number); /* of the group */
    /* dst = fold of the sources, one of each, divided if it is an average */
    ct_status (*fold)(struct call *c, const void *arg, struct span dst, const void *const *sources);
    const void *arg;
};

/* in: this rank's; out: the fold, on all of them.  They may be the same memory. */
ct_status two_shot(struct call *c, const struct two_shot_peers *peers, struct span in,
                   struct span out);

#endif
