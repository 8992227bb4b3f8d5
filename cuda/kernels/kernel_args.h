/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_args.h - names and arguments of the kernels, for host and GPU.
 *
 * C, C++ and CUDA C++ include this file.  Every kernel is a row here and has one parameter, a
 * struct fold_args that is passed by value. */
#ifndef CUDA_KERNELS_KERNEL_ARGS_H
#define CUDA_KERNELS_KERNEL_ARGS_H

#include <stdint.h>

#include "runtime/types/dtype_list.h"

enum {
    FOLD_MANY = 240,              /* most sources, and most destinations of a span, that fit */
    FOLD_SCALED = 80,             /* most sources if any has a scalar */
    FOLD_WORDS = (4096 - 72) / 8, /* the rest of a kernel's 4096 bytes of parameters */
    BLOCK_THREADS = 512           /* most threads of a block */
};

/* The kernels for one number of sources: SUM or AVG of one node, or an exchange.
 * Name, dtype, sources, how many pieces of each source a thread loads before it stores the first,
 * and whether it is the exchange.  A copy is the sum of one source, in bytes. */
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

/* There is also one fold_<dtype> for each of DTYPES, which does all other folds. */

/* The work of some blocks of a launch: elements 0 ... count-1 of sources and destinations.
 * `head` single elements come first, then 16-byte pieces, then single elements again.  There are
 * only single elements if the pointers do not reach a multiple of 16 at the same element. */
struct fold_span {
    uint64_t count;
    uint32_t first_block; /* its blocks end where the next span's begin */
    uint16_t pointers;    /* index in words[] of its sources; its destinations follow them */
    uint8_t dsts;
    uint8_t head; /* below 16, or one of the next two */
};

enum {
    BY_ELEMENTS = 16, /* there are no pieces */
    BY_BYTES          /* the same, and some pointer is not aligned for the element */
};

struct fold_args {
    uint32_t spans;
    uint32_t sources;                         /* of each span */
    uint32_t op;                              /* a row of the dtype's ops; SUM for an average */
    uint32_t divisor;                         /* by which AVG divides; 0: not an average */
    uint32_t scaled[(FOLD_SCALED + 31) / 32]; /* bit s: source s has a scalar */
    uint32_t scalars;           /* index in words[]; SCALAR_WORDS for each source; 0: no scalars */
    uint64_t called_off;        /* address of a uint32_t: if that is not 0, nothing is done; or 0 */
    uint64_t words[FOLD_WORDS]; /* first the spans, at the indices above addresses on the GPU and
                                   scalars */
};

enum {
    SPAN_WORDS = sizeof(struct fold_span) / sizeof(uint64_t),
    SCALAR_WORDS = 2, /* what a scalar of the largest dtype takes */
    MOST_SCALED = 4, /* most elements of a piece with scalars; more would be too much code, so there
                        are no pieces */
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
