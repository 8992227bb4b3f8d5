/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the ways in which a call on device memory can be made; device.c tries them in order.
 */
#ifndef COLLECTIVES_DEVICE_H
#define COLLECTIVES_DEVICE_H

#include "collectives/call.h"
#include "runtime/space.h"

/* What a group keeps for such calls. */
struct staging {
    int said;  /* why something is staged */
    int apart; /* its buffers can't be reached by one device: not tried again */
    char *host;
    size_t host_bytes;
};

/* device_fused.c: one rank's device reads and writes all ranks' buffers where they lie.  *done 0:
 * it can't, on any rank, and nothing was touched. */
ct_status device_fused(struct call *c, int *done);

/* device_staged.c: through host memory, by the algorithms of host memory. */
ct_status device_staged(struct call *c);

/* device_plan.c: what is to be folded or copied where, with everybody's buffers at hand.  For the
 * operations of which device_is_agreed(). */
struct everybody {
    char *const *send; /* [size]; NULL: that rank has none */
    char *const *recv;
};

struct step {
    void *const *dst;
    const void *const *src;
    int dsts, srcs;
    int folds;    /* 0: a copy, of one */
    size_t bytes; /* of each */
};

typedef ct_status step_fn(struct call *c, const struct step *step);
ct_status device_plan(struct call *c, const struct everybody *all, step_fn *each);

#endif
