/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - ct_convert(): converts arrays of narrow floats to f32 and back, with the loops of
 * reductions. */
#include "runtime/reduction/combine.h"
#include "runtime/types/dtype.h"
#include "runtime/util/error.h"

ct_status ct_convert(const void *from, ct_dtype from_dtype, void *to, ct_dtype to_dtype,
                     size_t count)
{
    const struct fold one = { .dtype = from_dtype, .op = CT_SUM, .sources = 1, .nodes = 1 };

    if (!(from_dtype == CT_F32 && dtype_is_narrow(to_dtype))
        && !(dtype_is_narrow(from_dtype) && to_dtype == CT_F32))
        return ct_fail(CT_ERR_INVALID,
                       "ct_convert: can't convert %s to %s; it converts f32 to f16, bf16, f8e4m3 "
                       "or f8e5m2, and these to f32",
                       dtype_name(from_dtype), dtype_name(to_dtype));
    if (count > 0 && (!from || !to))
        return ct_fail(CT_ERR_INVALID, "ct_convert: an array is NULL but the count is %zu", count);
    if (from_dtype == CT_F32)
        combine_narrow(to_dtype, to, from, count);
    else
        combine_fold_wide(&one, to, &from, count);
    return CT_OK;
}
