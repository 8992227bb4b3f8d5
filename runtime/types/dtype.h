/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - names of dtypes and ops, and the families of dtypes.  The rows are in dtype_list.h, the
 * arithmetic is in runtime/reduction. */
#ifndef RUNTIME_TYPES_DTYPE_H
#define RUNTIME_TYPES_DTYPE_H

#include "include/ct.h"

const char *dtype_name(ct_dtype dtype); /* "f32"; "?" for a value that is none */
/* Bytes of an element, as ct_dtype_size(), for the record of each call: of any byte, 0 if it is no
 * dtype. */
extern const unsigned char dtype_sizes[256];
const char *op_name(ct_op op); /* "sum" */

/* All are 0 for a value that is no dtype. */
int dtype_is_integer(ct_dtype dtype); /* bool is not one */
int dtype_is_narrow(ct_dtype dtype);  /* a float of 16 or 8 bits, computed in f32 */
int dtype_is_inexact(ct_dtype dtype); /* floats and complex: a sum depends on its order */

/* The dtype in which many elements of `dtype` are folded before the result is rounded. */
ct_dtype dtype_accumulator(ct_dtype dtype);

int op_is_builtin(ct_op op); /* one of ct.h's, not of ct_op_premul() */

#endif
