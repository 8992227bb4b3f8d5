/* SPDX-License-Identifier: Apache-2.0 */
/* copy_plan.h - plans which bytes a leader folds or copies, and their destinations. */
#ifndef COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H
#define COLLECTIVES_DEVICE_FUSED_COPY_PLAN_H

#include "collectives/core/call.h"

struct leaders;

/* The blocks of all ranks, as [rank][block].  A block with 0 bytes means that the rank has no such
 * block. */
struct all_blocks {
    struct span *send, *recv;
    int sends, recvs; /* number of blocks of each rank */
};

/* Return the number of blocks that a rank has on its send side or receive side, if the rank has
 * that side. */
int plan_sends(const struct call *c);
int plan_recvs(const struct call *c);

ct_status all_blocks_make(const struct call *c, struct all_blocks *all);
void all_blocks_free(struct all_blocks *all);

struct copy_plan {
    int folds; /* 1 if the parts are folds, 0 if the parts are copies of bytes */
    struct fold_part *parts;
    int count;
    void **pointers; /* memory for the pointers of the parts */
    size_t used;
    int unlike; /* 1 if a block has different sizes at its sender and its receiver */
    int *near;  /* [count] the rank with the device that is nearest to each part */
    int one;    /* 1 if the plan has a single part, which several devices may share */
};

/* Makes the plan.  Returns CT_ERR_UNSUPPORTED if a block has different sizes at its sender and its
 * receiver.  Then the staged path, which uses messages, finds out which block.  The caller must
 * call plan_free() after any result. */
ct_status plan_make(const struct call *c, const struct all_blocks *all, struct copy_plan *plan);
void plan_free(struct copy_plan *plan);

/* The bytes of a part that this leader handles.  Exactly one leader handles each byte.  `near` is
 * the rank with the device that is nearest to the part.  `shared` is 1 if several leaders may share
 * the part. */
struct slice {
    size_t at, bytes;
};
struct slice slice_of(const struct leaders *leaders, int near, int shared, size_t bytes);
/* Cuts the plan down to this leader's slices. element is the bytes of an element of a fold. */
void plan_cut(const struct leaders *leaders, struct copy_plan *plan, size_t element);

#endif
