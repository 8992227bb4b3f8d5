/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h - the element-wise step of a reduction, on host memory. */
#ifndef RUNTIME_REDUCTION_COMBINE_H
#define RUNTIME_REDUCTION_COMBINE_H

#include "include/ct.h"

/* A fixed order: the sources of each node are folded left to right, and the partial results of the
 * nodes as a balanced tree, so that hosts can fold them in log2(nodes) steps:
 *
 *     nodes   3: (0 1) 2        5: ((0 1) 2) (3 4)        8: ((0 1) (2 3)) ((4 5) (6 7))
 *
 * With 2^k the largest power of two up to `nodes`, the first nodes are folded in pairs, as many as
 * there are nodes beyond 2^k; then 2^k results are left, of which neighbours are folded, and so on.
 *
 * All of it in f32 for f16, bf16, f8 and f32, in f64 for f64, wrapping for integers; rounded to
 * dtype once.  AVG divides the end result by `sources`. */
struct fold {
    ct_dtype dtype;
    ct_op op;            /* below 256 */
    int sources;         /* >= 1 */
    int nodes;           /* 1 to FOLD_MOST_NODES */
    const int *node_end; /* [nodes], ascending, last one == sources: where each node's part ends;
                            NULL: each node has one source */
};

#define FOLD_MOST_NODES (1 << 20)

/* How many pairs of nodes the tree begins with. */
static inline int fold_pairs(int nodes)
{
    int power = 1;

    while (power <= nodes / 2)
        power *= 2;
    return nodes - power;
}

/* 1 if op has a meaning for dtype (both known). */
int combine_defined(ct_dtype dtype, ct_op op);

/* dst[0 ... dsts-1][i] = fold of src[0][i] ... src[sources-1][i]: each destination
 * gets the same bits.  A destination may be exactly one of the sources; no other
 * overlap.  Any alignment.  One source: a copy (bool: made 0 or 1).
 * `streaming`: the destinations are too large to stay in a cache; they are written past the
 * caches. */
void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming);

/* The same in dtype_accumulator(dtype), neither rounded nor divided: for what is folded further.
 * That is another dtype than fold->dtype.  dst overlaps no source. */
void combine_fold_wide(const struct fold *fold, void *dst, const void *const *src, size_t count);

/* dst[i] = src[i], which has dtype_accumulator(dtype), rounded to dtype. */
void combine_narrow(ct_dtype dtype, void *dst, const void *src, size_t count);

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
