/* SPDX-License-Identifier: Apache-2.0 */
/* combine_kernels.h - the loops of the folds, once per level of the machine.
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

#define COUNT_ONE(...) +1
enum { DTYPE_COUNT = 0 DTYPES(COUNT_ONE), OP_COUNT = 0 OPS(COUNT_ONE) };
#undef COUNT_ONE

/* dst[i] = src[0][i] op src[1][i] op ..., left to right; dst may be one of src. */
enum { MOST_AT_ONCE = 8 }; /* sources: 1, 2, 3, 4 or 8 */
typedef void fold_kernel(void *dst, const void *const *src, int sources, size_t n);
typedef void convert_kernel(void *dst, const void *src, size_t n);

/* What a dtype is accumulated in when its folds can't stay in registers: F32 of the
 * narrow floats, I64 and U64 of integers that are averaged. */
struct kernels {
    fold_kernel *fold[DTYPE_COUNT][OP_COUNT]; /* AVG has none: a SUM, divided */
    convert_kernel *widen[DTYPE_COUNT];       /* dtype to what it is accumulated in */
    convert_kernel *narrow[DTYPE_COUNT];      /* and back, rounded */
    void (*divide[DTYPE_COUNT])(void *values, size_t n, int by);
    void (*scale[DTYPE_COUNT])(void *dst, const void *src, size_t n, const void *factor);
};

extern const struct kernels kernels_plain, kernels_avx2, kernels_avx512;

/* 0: for any machine, 1: AVX2, 2: AVX-512; NULL: not on this machine. */
enum { KERNEL_LEVELS = 3 };
const struct kernels *kernels_at(int level);

#endif
