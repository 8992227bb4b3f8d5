/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - what the host and a kernel have to agree on: names and arguments.
 *
 * Included by C, C++ and CUDA C++.  Every kernel is a row here and has one
 * parameter, a struct that is passed by value. */
#ifndef CUDA_KERNELS_ARGS_H
#define CUDA_KERNELS_ARGS_H

#include <stdint.h>

#include "runtime/combine_list.h"

enum {
    FOLD_FEW = 8,    /* sources, and destinations, of the kernels that are made for their number */
    FOLD_MANY = 240, /* and of the others: the most that fit a kernel's 4096 bytes of parameters */
    BLOCK_THREADS = 512 /* a block has no more */
};

/* The kernels that have a struct fold_few: SUM or AVG of so many sources of one node, to 1 ...
 * FOLD_FEW destinations.  Name, dtype, sources, and how many pieces of each source a thread loads
 * before it stores the first.  A copy is the sum of one source, in bytes. */
#define FEW_KERNELS(X)        \
    X(copy, U8, 1, 4)         \
    X(sum_f32_2, F32, 2, 2)   \
    X(sum_f32_3, F32, 3, 2)   \
    X(sum_f32_4, F32, 4, 2)   \
    X(sum_f32_8, F32, 8, 1)   \
    X(sum_f16_2, F16, 2, 2)   \
    X(sum_f16_3, F16, 3, 2)   \
    X(sum_f16_4, F16, 4, 2)   \
    X(sum_f16_8, F16, 8, 1)   \
    X(sum_bf16_2, BF16, 2, 2) \
    X(sum_bf16_3, BF16, 3, 2) \
    X(sum_bf16_4, BF16, 4, 2) \
    X(sum_bf16_8, BF16, 8, 1)

/* Beside them one fold_<dtype> for each of DTYPES, which has a struct fold_many and does all. */

/* The elements 0 ... count-1 of a fold: `head` single ones, then 16-byte pieces, then
 * single ones again.  No pieces where the pointers do not reach a multiple of 16 at the same
 * element. */
struct span {
    uint64_t count;
    uint64_t pieces;
    uint32_t head;
    uint32_t by_bytes; /* not 0: some pointer is no multiple of the element's alignment */
    uint32_t sources, dsts;
    uint32_t op;      /* a row of the dtype's ops: SUM, where it is an average */
    uint32_t divisor; /* AVG's; 0: not an average */
};

struct fold_few {
    struct span span;
    uint64_t src[FOLD_FEW], dst[FOLD_FEW]; /* addresses on the GPU */
};

struct fold_many {
    struct span span;
    uint32_t node_starts[(FOLD_MANY + 31) / 32]; /* bit s: a node starts at source s; 0 never set */
    uint64_t src[FOLD_MANY], dst[FOLD_MANY];
};

#ifdef __cplusplus
static_assert(sizeof(struct fold_many) <= 4096, "a kernel's parameters");
#else
_Static_assert(sizeof(struct fold_many) <= 4096, "a kernel's parameters");
#endif

#endif
