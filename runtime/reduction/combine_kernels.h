/* SPDX-License-Identifier: Apache-2.0 */
/* combine_kernels.h - the loops of the folds, once per level of the machine, and streaming copies.
 *
 * combine_loops.h is compiled once for any machine of its kind and, on x86-64,
 * again for AVX2 and for AVX-512, each time into a table.  The tables give the
 * same bits.  An empty cell has no meaning (or, in the AVX-512 table, is no better
 * than AVX2's). */
#ifndef RUNTIME_REDUCTION_COMBINE_KERNELS_H
#define RUNTIME_REDUCTION_COMBINE_KERNELS_H

#include <stddef.h>

#include "include/ct.h"
#include "runtime/types/dtype_list.h"

/* dst[i] = src[0][i] op src[1][i] op ..., left to right; dst may be one of src. */
enum { MOST_AT_ONCE = 8 }; /* sources: 1, 2, 3, 4 or 8 */
typedef void fold_kernel(void *dst, const void *const *src, int sources, size_t n);
typedef void convert_kernel(void *dst, const void *src, size_t n);

/* What the loops do with one dtype.  Its accumulator (dtype.h) holds what is folded when a fold
 * can't stay in registers: f32 for narrow floats, 64 bits for integers that are averaged. */
struct kernels {
    fold_kernel *fold[OP_COUNT];                    /* AVG has none: a SUM, divided */
    convert_kernel *widen;                          /* dtype to its accumulator */
    convert_kernel *narrow;                         /* and back, rounded */
    void (*divide)(void *values, size_t n, int by); /* values of an accumulator */
    void (*scale)(void *dst, const void *src, size_t n, const void *factor);
};

/* By dtype. */
extern const struct kernels kernels_plain[], kernels_avx2[], kernels_avx512[];

/* 0: for any machine, 1: AVX2, 2: AVX-512; NULL: not on this machine. */
enum { KERNEL_LEVELS = 3 };
const struct kernels *kernels_at(int level);

/* copy_nontemporal.c: copies that leave the caches as they are, in parts.  Other threads may see
 * the stores of a part late, even after later ordinary stores, until the end has returned. */
void copy_streaming_part(void *dst, const void *src, size_t bytes);
void copy_streaming_end(void);

#endif
