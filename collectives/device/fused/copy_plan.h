/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.h - which bytes a leader folds or copies, and where to. */
#ifndef COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H
#define COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H

#include "collectives/core/call.h"

struct leaders;

/* All ranks' blocks, [rank][block]; bytes 0: the rank has no such block. */
struct all_blocks {
    struct span *send, *recv;
    int sends, recvs; /* blocks of each rank */
};

/* Gives the number of blocks of a rank's send or receive side, if the rank has that side. */
int plan_sends(const struct call *c);
int plan_recvs(const struct call *c);

ct_status all_blocks_make(const struct call *c, struct all_blocks *all);
void all_blocks_free(struct all_blocks *all);

struct copy_plan {
    int folds; /* 0: the parts are copies of bytes */
    struct fold_part *parts;
    int count;
    void **pointers; /* those of the parts */
    size_t used;
    int unlike; /* a block's sizes at its two ends differ */
    int *near;  /* [count] the rank whose device is the nearest to the part */
    int one;    /* the plan has one part, which several devices may share */
};

/* Makes the plan.  CT_ERR_UNSUPPORTED: a block's sizes at its two ends differ; the staged path,
 * which uses messages, finds out which block.  The caller must call plan_free() after any result.
 */
ct_status plan_make(const struct call *c, const struct all_blocks *all, struct copy_plan *plan);
void plan_free(struct copy_plan *plan);

/* The bytes of a part that this leader does; all leaders together do each byte once.  near: the
 * rank whose device is the nearest; shared: several leaders may share the part. */
struct slice {
    size_t at, bytes;
};
struct slice slice_of(const struct leaders *leaders, int near, int shared, size_t bytes);
/* Reduces the plan to this leader's slices.  element: bytes of an element of a fold. */
void plan_cut(const struct leaders *leaders, struct copy_plan *plan, size_t element);

#endif
