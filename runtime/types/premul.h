/* SPDX-License-Identifier: Apache-2.0 */
/* premul.h - the ops of ct_op_premul(), which multiply each rank's input by a scalar and then
 * sum. */
#ifndef RUNTIME_TYPES_PREMUL_H
#define RUNTIME_TYPES_PREMUL_H

#include "include/ct.h"

enum { PREMUL_FIRST = 256, PREMUL_SCALAR_BYTES = 16 }; /* c128, the largest dtype, has 16 bytes */

/* True if the op is in the range of ct_op_premul()'s ops.  The op may have been freed. */
static inline int op_is_premul(ct_op op)
{
    return op >= PREMUL_FIRST;
}

/* Copies the scalar of an op of ct_op_premul(), which is one element of dtype.  `scalar` has room
 * for PREMUL_SCALAR_BYTES.  Returns CT_ERR_INVALID if the op does not exist or has another
 * dtype. */
ct_status premul_find(ct_op op, ct_dtype dtype, void *scalar);

#endif
