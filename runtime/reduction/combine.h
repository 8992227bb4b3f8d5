/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h - element-wise reductions in host memory. */
#ifndef RUNTIME_REDUCTION_COMBINE_H
#define RUNTIME_REDUCTION_COMBINE_H

#include "include/ct.h"

/* A fold: a reduction of sources in a fixed order.  The sources of each node are reduced from left
 * to right.  The partial results of the nodes are reduced in a balanced tree, so that hosts can do
 * this in log2(nodes) steps:
 *
 *     nodes   3: (0 1) 2        5: ((0 1) 2) (3 4)        8: ((0 1) (2 3)) ((4 5) (6 7))
 *
 * Let 2^k be the largest power of two that is not above `nodes`.  The first step reduces the first
 * nodes - 2^k pairs of nodes, which leaves 2^k results.  Each further step reduces neighbors in
 * pairs.
 *
 * f16, bf16, f8 and f32 are reduced in f32, and f64 in f64.  Integers wrap around.  The end result
 * is rounded to dtype once.  AVG divides the end result by `sources`. */
struct fold {
    ct_dtype dtype;
    ct_op op;            /* below 256 */
    int sources;         /* >= 1 */
    int nodes;           /* 1 to FOLD_MOST_NODES */
    const int *node_end; /* [nodes], ascending: 1 + index of each node's last source;
                            NULL if each node has one source */
};

#define FOLD_MOST_NODES (1 << 20)

/* Returns the number of pairs of nodes that the first step of the tree reduces. */
static inline int fold_pairs(int nodes)
{
    int power = 1;

    while (power <= nodes / 2)
        power *= 2;
    return nodes - power;
}

/* Returns 1 if dtype and op are built-in and dtype supports op, else 0. */
int combine_defined(ct_dtype dtype, ct_op op);

/* dst[0 ... dsts-1][i] = fold of src[0][i] ... src[sources-1][i].  Each destination gets the same
 * bits.  A destination may be the same memory as a source, but must not overlap a source in another
 * way.  Any alignment is allowed.  With one source, the function copies; a bool becomes 0 or 1.
 * `streaming` is set if the destinations are too large to stay in a cache.  They are then written
 * with non-temporal stores, which bypass the caches. */
void combine_fold_to(const struct fold *fold, void *const *dst, int dsts, const void *const *src,
                     size_t count, int streaming);

/* Computes a partial result, in dtype_accumulator(dtype), which is neither rounded nor divided.
 * fold->dtype must have an accumulator of another dtype.  dst must not overlap a source. */
void combine_fold_wide(const struct fold *fold, void *dst, const void *const *src, size_t count);

/* dst[i] = src[i], rounded to dtype.  src has dtype_accumulator(dtype). */
void combine_narrow(ct_dtype dtype, void *dst, const void *src, size_t count);

/* dst[i] = dst[i] op src[i], rounded to dtype.  AVG only adds.  For algorithms that may reduce in
 * any order (integers, CT_ORDER=fast). */
void combine_pair(ct_dtype dtype, ct_op op, void *dst, const void *src, size_t count);

/* dst[i] = dst[i] / n.  The last step of AVG after calls of combine_pair(). */
void combine_divide(ct_dtype dtype, void *dst, size_t count, int n);

/* dst[i] = src[i] * *scalar, for floating and complex dtypes.  The first step of premul_sum. */
void combine_scale(ct_dtype dtype, void *dst, const void *src, size_t count, const void *scalar);

/* Copies like memcpy(), but bypasses the caches if the machine has non-temporal stores.  For a dst
 * that is too large to stay in a cache.  Any alignment is allowed.  After the return, the copy is
 * visible to other threads as if memcpy() had made it. */
void copy_streaming(void *dst, const void *src, size_t bytes);

#endif
