/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_args.h - the names and arguments of the kernels, for the host and the GPU.
 *
 * C, C++ and CUDA C++ include this file.  Rows in this file list all kernels.  Each kernel has one
 * parameter, a struct fold_args that is passed by value. */
#ifndef CUDA_KERNELS_KERNEL_ARGS_H
#define CUDA_KERNELS_KERNEL_ARGS_H

#include <stdint.h>

#include "runtime/types/dtype_list.h"

enum {
    FOLD_MANY = 240,              /* most sources of a fold, and most destinations of a span */
    FOLD_SCALED = 80,             /* most sources of a fold if a source has a scalar */
    FOLD_WORDS = (4096 - 72) / 8, /* 64-bit words; the other parameters take 72 of 4096 bytes */
    BLOCK_THREADS = 512           /* most threads of a block */
};

/* The kernels for a fixed number of sources.  They do SUM or AVG of one node, or an exchange.  The
 * columns are name, dtype, number of sources, number of pieces of each source that a thread loads
 * before it stores the first, and 1 for the exchange.  The kernel `copy` is the sum of one source,
 * in bytes. */
#define FEW_KERNELS(X)           \
    X(copy, U8, 1, 4, 0)         \
    X(exchange, U8, 2, 2, 1)     \
    X(sum_f32_2, F32, 2, 2, 0)   \
    X(sum_f32_3, F32, 3, 2, 0)   \
    X(sum_f32_4, F32, 4, 2, 0)   \
    X(sum_f32_8, F32, 8, 1, 0)   \
    X(sum_f16_2, F16, 2, 2, 0)   \
    X(sum_f16_3, F16, 3, 2, 0)   \
    X(sum_f16_4, F16, 4, 2, 0)   \
    X(sum_f16_8, F16, 8, 1, 0)   \
    X(sum_bf16_2, BF16, 2, 2, 0) \
    X(sum_bf16_3, BF16, 3, 2, 0) \
    X(sum_bf16_4, BF16, 4, 2, 0) \
    X(sum_bf16_8, BF16, 8, 1, 0)

/* Each row of DTYPES also has a kernel fold_<dtype>, which does all other folds of the dtype. */

/* The work of consecutive blocks of a launch, which fold elements 0 ... count-1 of the sources to
 * the destinations.  First come `head` single elements, then pieces of 16 bytes, then single
 * elements again.  The span has only single elements if the pointers do not reach a multiple of 16
 * at the same element. */
struct fold_span {
    uint64_t count;
    uint32_t first_block; /* the span's blocks end where the next span's blocks begin */
    uint16_t pointers;    /* index in words[] of the source addresses; the destinations follow */
    uint8_t dsts;
    uint8_t head; /* below 16 if the span has pieces, else BY_ELEMENTS or BY_BYTES */
};

enum {
    BY_ELEMENTS = 16, /* the span has no pieces */
    BY_BYTES          /* the span has no pieces, and a pointer is not aligned for the element */
};

struct fold_args {
    uint32_t spans;
    uint32_t sources; /* number of sources of each span */
    uint32_t op;      /* an op of the dtype (enum ct_op); CT_SUM for an average */
    uint32_t divisor; /* the number by which AVG divides; 0 if the op is not AVG */
    uint32_t scaled[(FOLD_SCALED + 31) / 32]; /* bit s is set if source s has a scalar */
    /* index in words[] of SCALAR_WORDS words for each source; 0 if there are no scalars */
    uint32_t scalars;
    /* address of a uint32_t, or 0; if the uint32_t is not 0, the kernel does nothing */
    uint64_t called_off;
    /* the spans are at the front, GPU addresses and scalars at the end */
    uint64_t words[FOLD_WORDS];
};

enum {
    SPAN_WORDS = sizeof(struct fold_span) / sizeof(uint64_t),
    SCALAR_WORDS = 2, /* words for a scalar of the largest dtype */
    /* Most elements of a piece if a source has a scalar.  More elements would need too much code,
     * so such spans have no pieces. */
    MOST_SCALED = 4,
    MOST_SPANS = FOLD_WORDS / (SPAN_WORDS + 2)
};

#ifdef __cplusplus
static_assert(sizeof(struct fold_args) <= 4096, "a kernel's parameters");
static_assert(SPAN_WORDS + 2 * FOLD_MANY <= FOLD_WORDS, "one span always fits");
static_assert(SPAN_WORDS + FOLD_MANY + FOLD_SCALED * (1 + SCALAR_WORDS) <= FOLD_WORDS,
              "and one whose sources have scalars");
#else
_Static_assert(sizeof(struct fold_args) <= 4096, "a kernel's parameters");
_Static_assert(SPAN_WORDS + 2 * FOLD_MANY <= FOLD_WORDS, "one span always fits");
_Static_assert(SPAN_WORDS + FOLD_MANY + FOLD_SCALED * (1 + SCALAR_WORDS) <= FOLD_WORDS,
               "and one whose sources have scalars");
#endif

#endif
