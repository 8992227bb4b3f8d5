/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - names of dtypes and ops, and the families of dtypes.  The rows are in dtype_list.h, the
 * arithmetic is in runtime/reduction. */
#ifndef RUNTIME_TYPES_DTYPE_H
#define RUNTIME_TYPES_DTYPE_H

#include "include/ct.h"

const char *dtype_name(ct_dtype dtype); /* "f32"; "?" if dtype is not a dtype */
/* The bytes of an element, as ct_dtype_size() returns them, as a table for the flight recorder.
 * Any byte may be the index.  The entry is 0 if the index is not a dtype. */
extern const unsigned char dtype_sizes[256];
const char *op_name(ct_op op); /* "sum" */

/* These functions return 0 for a value that is not a dtype. */
int dtype_is_integer(ct_dtype dtype); /* bool is not an integer */
int dtype_is_narrow(ct_dtype dtype);  /* a float of 16 or 8 bits, computed in f32 */
int dtype_is_inexact(ct_dtype dtype); /* floats and complex numbers; a sum depends on its order */

/* Returns the dtype in which elements of `dtype` are reduced before the result is rounded. */
ct_dtype dtype_accumulator(ct_dtype dtype);

int op_is_builtin(ct_op op); /* true for an op of ct.h, false for one of ct_op_premul() */

#endif
