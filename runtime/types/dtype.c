/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - the tables of dtypes and ops, made from the rows of dtype_list.h. */
#include "runtime/types/dtype.h"

#include "runtime/types/dtype_list.h"
#include "runtime/types/premul.h"

_Static_assert(DTYPE_COUNT == CT_F8E5M2 + 1, "ct.h's dtypes have a row each");
_Static_assert(OP_COUNT == CT_BXOR + 1, "ct.h's ops have a row each");

enum family { INTEGER = 1, NARROW, REAL, BOOL, COMPLEX };

#define DTYPE(NAME, name, FAMILY, T, COMPUTED, WIDE) \
    [CT_##NAME] = { #name, sizeof(T), FAMILY, CT_##WIDE },
static const struct dtype {
    const char *name;
    size_t size;
    enum family family;
    ct_dtype accumulator;
} dtypes[DTYPE_COUNT] = { DTYPES(DTYPE) };

#define SIZE(NAME, name, FAMILY, T, COMPUTED, WIDE) [CT_##NAME] = sizeof(T),
const unsigned char dtype_sizes[256] = { DTYPES(SIZE) };

#define OP(NAME, name) [CT_##NAME] = #name,
static const char *const ops[OP_COUNT] = { OPS(OP) };

/* Returns the dtype's row.  Callers may pass any number, so a number that is not a dtype gets a row
 * of zeros with the name "?". */
static const struct dtype *dtype_of(ct_dtype dtype)
{
    static const struct dtype none = { .name = "?" };

    return (unsigned)dtype < DTYPE_COUNT ? &dtypes[dtype] : &none;
}

size_t ct_dtype_size(ct_dtype dtype)
{
    return dtype_of(dtype)->size;
}

const char *dtype_name(ct_dtype dtype)
{
    return dtype_of(dtype)->name;
}

int dtype_is_integer(ct_dtype dtype)
{
    return dtype_of(dtype)->family == INTEGER;
}

int dtype_is_narrow(ct_dtype dtype)
{
    return dtype_of(dtype)->family == NARROW;
}

int dtype_is_inexact(ct_dtype dtype)
{
    const enum family family = dtype_of(dtype)->family;

    return family == NARROW || family == REAL || family == COMPLEX;
}

ct_dtype dtype_accumulator(ct_dtype dtype)
{
    return dtype_of(dtype)->accumulator;
}

int op_is_builtin(ct_op op)
{
    return (unsigned)op < OP_COUNT;
}

const char *op_name(ct_op op)
{
    return op_is_builtin(op) ? ops[op] : op_is_premul(op) ? "premul_sum" : "?";
}
