/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.h - what is to be folded or copied where, with the buffers of all ranks at hand; and
 * which of it is whose, where several leaders share it. */
#ifndef COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H
#define COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H

#include "collectives/core/call.h"

struct leaders;

/* All ranks' blocks, [rank][block]; bytes 0 where a rank has none. */
struct everybody {
    struct span *send, *recv;
    int sends, recvs; /* of each rank's */
};

/* How many a rank has, where it has any. */
int plan_sends(const struct call *c);
int plan_recvs(const struct call *c);

ct_status everybody_make(const struct call *c, struct everybody *all);
void everybody_free(struct everybody *all);

struct plan {
    int folds; /* 0: copies, of bytes */
    struct fold_part *parts;
    int count;
    void **pointers; /* of the parts */
    size_t used;
    int unlike; /* a rank awaits other bytes than another one gives it */
    int *near;  /* [count] the rank whose device does the part best */
    int one;    /* the only part: several devices may share it */
};

/* The parts may be done in any order.  CT_ERR_UNSUPPORTED: the ranks' counts differ where they must
 * not; the path over messages says where.  To be freed where it failed, too. */
ct_status plan_make(const struct call *c, const struct everybody *all, struct plan *plan);
void plan_free(struct plan *plan);

/* plan_slices.c: which bytes of a part leader `mine` does; all leaders together do each byte once.
 * near: the rank whose device does it best; shared: several may do it. */
struct slice {
    size_t at, bytes;
};
struct slice slice_of(const struct leaders *leaders, int near, int shared, size_t bytes);
/* What is left of the plan is this leader's.  element: bytes of what a fold counts. */
void plan_cut(const struct leaders *leaders, struct plan *plan, size_t element);

#endif
