/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h - the element-wise step of a reduction, on host memory. */
#ifndef RUNTIME_REDUCTION_COMBINE_H
#define RUNTIME_REDUCTION_COMBINE_H

#include "include/ct.h"

/* A fixed order: the sources of node 0 are folded left to right,
 * then those of node 1, ..., then the partial results left to right.  All of it
 * in f32 for f16, bf16, f8 and f32, in f64 for f64, wrapping for integers;
 * rounded to dtype once.  AVG divides the end result by `sources`. */
struct fold {
    ct_dtype dtype;
    ct_op op;            /* below 256 */
    int sources;         /* >= 1 */
    int nodes;           /* >= 1 */
    const int *node_end; /* [nodes], ascending, last one == sources: where each node's part ends */
};

/* 1 if op has a meaning for dtype (both known). */
int combine_defined(ct_dtype dtype, ct_op op);

/* dst[0 ... dsts-1][i] = fold of src[0][i] ... src[sources-1][i]: each destination
 * gets the same bits.  A destination may be exactly one of the sources; no other
 * overlap.  Any alignment.  One source: a copy (bool: made 0 or 1).
 * `streaming`: the destinations are too large to stay in a cache; they are written past the
 * caches. */
void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming);

/* dst[i] = dst[i] op src[i], rounded to dtype; AVG adds.  For algorithms whose
 * order is free (integers, CT_ORDER=fast). */
void combine_pair(ct_dtype dtype, ct_op op, void *dst, const void *src, size_t count);

/* dst[i] = dst[i] / n: the end of AVG after combine_pair()s. */
void combine_divide(ct_dtype dtype, void *dst, size_t count, int n);

/* dst[i] = src[i] * *scalar, floating and complex dtypes: premul_sum's first half. */
void combine_scale(ct_dtype dtype, void *dst, const void *src, size_t count, const void *scalar);

/* memcpy past the caches, if the machine has such stores: for a dst that is too large to stay in a
 * cache.  Any alignment.  When it returns, the copy is as visible to other threads as memcpy's. */
void copy_streaming(void *dst, const void *src, size_t bytes);

#endif
