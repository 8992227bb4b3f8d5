/* SPDX-License-Identifier: Apache-2.0 */
/* premul.h - the ops of ct_op_premul(), which scale each rank's input before they sum. */
#ifndef RUNTIME_TYPES_PREMUL_H
#define RUNTIME_TYPES_PREMUL_H

#include "include/ct.h"

enum { PREMUL_FIRST = 256, PREMUL_SCALAR_BYTES = 16 }; /* the largest element, c128 */

/* In the range of ct_op_premul()'s ops, perhaps freed. */
static inline int op_is_premul(ct_op op)
{
    return op >= PREMUL_FIRST;
}

/* The scalar of an op made by ct_op_premul(), one element of dtype; scalar has
 * room for PREMUL_SCALAR_BYTES.  CT_ERR_INVALID: no such op, or one of another dtype. */
ct_status premul_find(ct_op op, ct_dtype dtype, void *scalar);

#endif
