/* SPDX-License-Identifier: Apache-2.0 */
/* combine_kernels.h - declares the loops of reductions (kernels) and streaming copies.
 *
 * combine_loops.h is compiled once for any machine and, on x86-64, again for AVX2 and for AVX-512.
 * Each of the compilations makes a table of kernels.  The kernels of all tables compute the same
 * bits.  A NULL entry means that the dtype does not support the operation, or that the AVX2 kernel
 * is used instead of an AVX-512 kernel. */
#ifndef RUNTIME_REDUCTION_COMBINE_KERNELS_H
#define RUNTIME_REDUCTION_COMBINE_KERNELS_H

#include <stddef.h>

#include "include/ct.h"
#include "runtime/types/dtype_list.h"

/* A fold_kernel computes dst[i] = src[0][i] op src[1][i] op ..., from left to right.  dst may be
 * one of the sources.  The number of sources must be 1, 2, 3, 4 or MOST_AT_ONCE. */
enum { MOST_AT_ONCE = 8 };
typedef void fold_kernel(void *dst, const void *const *src, int sources, size_t n);
typedef void convert_kernel(void *dst, const void *src, size_t n);

/* The kernels of one dtype.  Partial results that don't stay in registers have the dtype's
 * accumulator (dtype.h), which is f32 for narrow floats and a 64-bit integer for averages of
 * integers. */
struct kernels {
    fold_kernel *fold[OP_COUNT];                    /* NULL for AVG, which is SUM and divide */
    convert_kernel *widen;                          /* converts dtype to its accumulator */
    convert_kernel *narrow;                         /* converts the accumulator to dtype, rounded */
    void (*divide)(void *values, size_t n, int by); /* divides values of the accumulator */
    void (*scale)(void *dst, const void *src, size_t n, const void *factor);
};

/* The tables; a ct_dtype is the index. */
extern const struct kernels kernels_plain[], kernels_avx2[], kernels_avx512[];

/* Returns the table of a level, or NULL if this machine does not support the level.  Level 0 is for
 * any machine, 1 is AVX2, and 2 is AVX-512. */
enum { KERNEL_LEVELS = 3 };
const struct kernels *kernels_at(int level);

/* copy_streaming_part() copies one part of a larger copy, and bypasses the caches
 * (copy_nontemporal.c).  Other threads may see the stores of a part after later ordinary stores,
 * until copy_streaming_end() has returned. */
void copy_streaming_part(void *dst, const void *src, size_t bytes);
void copy_streaming_end(void);

#endif
