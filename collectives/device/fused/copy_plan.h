/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.h - which bytes a leader folds or copies, and to where. */
#ifndef COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H
#define COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H

#include "collectives/core/call.h"

struct leaders;

/* All ranks' blocks, [rank][block]; bytes 0 where a rank has none. */
struct all_blocks {
    struct span *send, *recv;
    int sends, recvs; /* blocks of each rank */
};

/* How many blocks a rank's send or receive side has, if it has any. */
int plan_sends(const struct call *c);
int plan_recvs(const struct call *c);

ct_status all_blocks_make(const struct call *c, struct all_blocks *all);
void all_blocks_free(struct all_blocks *all);

struct copy_plan {
    int folds; /* 0: copies, of bytes */
    struct fold_part *parts;
    int count;
    void **pointers; /* of the parts */
    size_t used;
    int unlike; /* a block has other sizes at its two ends */
    int *near;  /* [count] the rank whose device does the part best */
    int one;    /* it has one part, which several devices may share */
};

/* CT_ERR_UNSUPPORTED: a block has other sizes at its two ends; the staged path, over messages,
 * finds out which.  plan_free() whatever this returns. */
ct_status plan_make(const struct call *c, const struct all_blocks *all, struct copy_plan *plan);
void plan_free(struct copy_plan *plan);

/* The bytes of a part that this leader does; all leaders together do each byte once.  near: the
 * rank whose device does it best; shared: several leaders may share it. */
struct slice {
    size_t at, bytes;
};
struct slice slice_of(const struct leaders *leaders, int near, int shared, size_t bytes);
/* Reduces the plan to this leader's slices.  element: bytes of an element of a fold. */
void plan_cut(const struct leaders *leaders, struct copy_plan *plan, size_t element);

#endif
