/* SPDX-License-Identifier: Apache-2.0 */
/* elements.h - folds that are drawn, and whether two of them gave the same. */
#ifndef TESTS_CUDA_ELEMENTS_H
#define TESTS_CUDA_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/reduction/combine.h"
#include "runtime/reduction/combine_kernels.h"
#include "runtime/types/dtype.h"

/* 0 ... below-1, the same in every run. */
unsigned any(unsigned below);

/* 0 ... 15: how far from a multiple of 16 something lies; by whole elements half of the time. */
size_t any_shift(ct_dtype dtype);

/* Any bits in most elements, NaNs among them; small numbers in the others, lest all be huge. */
void fill(ct_dtype dtype, char *at, size_t count);
/* Bit for bit; but which NaN an addition or a product of NaNs gives is the machine's affair. */
int same(ct_dtype dtype, ct_op op, const char *got, const char *wanted, size_t count);

#define EVERY_ROW(dtype, op)                          \
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) \
        for (int op = 0; op < OP_COUNT; op++)         \
            if (combine_defined((ct_dtype)(dtype), (op)))

#endif
