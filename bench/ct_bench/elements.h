/* SPDX-License-Identifier: Apache-2.0 */
/* elements.h - the dtypes and ops by name, and small whole numbers as an element of each. */
#ifndef CT_BENCH_ELEMENTS_H
#define CT_BENCH_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

/* By the name on the command line; -1: no such name. */
int dtype_named(const char *name);
int op_named(const char *name);

const char *name_of_dtype(ct_dtype dtype);
const char *name_of_op(ct_op op);

/* "i8 u8 ...": all of them, for a sentence. */
void dtype_names(char *text, size_t room);
void op_names(char *text, size_t room);

/* Every whole number from 0 to this one is an element of the dtype; at most 2048, so that sums
 * over thousands of ranks are exact where the library accumulates in f32. */
int64_t element_most(ct_dtype dtype);

int element_is_whole(ct_dtype dtype); /* an integer or bool: results are cut, not rounded */

/* A value of 0 ... element_most(), or a power of two up to 32; imaginary is for the complex. */
void element_write(ct_dtype dtype, void *at, int64_t value, int64_t imaginary);

#endif
