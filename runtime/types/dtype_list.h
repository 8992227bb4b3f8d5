/* SPDX-License-Identifier: Apache-2.0 */
/* dtype_list.h - the lists of all dtypes and all ops.
 *
 * Host C and CUDA C++ expand the same rows.  A dtype is one row.  The row's family says how the
 * dtype is computed, and the code that expands the rows has a macro for each family.  A narrow
 * float also needs its conversions in narrow_float.h and runtime/reduction/combine_narrow_avx2.h,
 * and a row in runtime/reduction/combine_f16_neon.h.
 *
 * These files list the dtypes again: ct.h, dtype.c (an assert), _libct.py, _buffers.py and
 * torch_backend.py in python/ctrun, bench/ct_bench/pattern.c, tests/elements.h.  These files list
 * the dtypes that a library can reduce: cuda/nccl/nccl.c, collectives/device/nccl/nccl.c,
 * collectives/mpi/.
 *
 * An op has a row in each family in which the op has a meaning.  The row has an expression that
 * combines a, the result so far, with b, the next source.  Both have the type in which the dtype is
 * computed.  Arguments after X are passed on. */
#ifndef RUNTIME_TYPES_DTYPE_LIST_H
#define RUNTIME_TYPES_DTYPE_LIST_H

#include "runtime/types/narrow_float.h"

/* clang-format off */

/* The columns are NAME (of CT_NAME), name, family, the type in which elements are stored, the type
 * in which they are computed, and the accumulator, which is the dtype of intermediate results. An
 * integer is computed in the unsigned type in which it wraps, and a complex number in the type of
 * its parts.  A narrow float becomes f32 by <name>_to_f32() and is rounded by f32_to_<name>().
 * Integers use the accumulator for the average only. */
#define DTYPES(X) \
    X(I8,     i8,     INTEGER, int8_t,      uint8_t,  I64)  \
    X(U8,     u8,     INTEGER, uint8_t,     uint8_t,  U64)  \
    X(I16,    i16,    INTEGER, int16_t,     uint16_t, I64)  \
    X(U16,    u16,    INTEGER, uint16_t,    uint16_t, U64)  \
    X(I32,    i32,    INTEGER, int32_t,     uint32_t, I64)  \
    X(U32,    u32,    INTEGER, uint32_t,    uint32_t, U64)  \
    X(I64,    i64,    INTEGER, int64_t,     uint64_t, I64)  \
    X(U64,    u64,    INTEGER, uint64_t,    uint64_t, U64)  \
    X(F16,    f16,    NARROW,  uint16_t,    float,    F32)  \
    X(BF16,   bf16,   NARROW,  uint16_t,    float,    F32)  \
    X(F32,    f32,    REAL,    float,       float,    F32)  \
    X(F64,    f64,    REAL,    double,      double,   F64)  \
    X(BOOL,   bool,   BOOL,    uint8_t,     uint8_t,  BOOL) \
    X(C64,    c64,    COMPLEX, struct c64,  float,    C64)  \
    X(C128,   c128,   COMPLEX, struct c128, double,   C128) \
    X(F8E4M3, f8e4m3, NARROW,  uint8_t,     float,    F32)  \
    X(F8E5M2, f8e5m2, NARROW,  uint8_t,     float,    F32)

/* The columns are NAME (of CT_NAME) and name. */
#define OPS(X) \
    X(SUM, sum) X(AVG, avg) X(PRODUCT, product) X(MIN, min) X(MAX, max) \
    X(BAND, band) X(BOR, bor) X(BXOR, bxor)

/* The columns are OP and expression.  1u makes the product of two u16 unsigned, since a product of
 * two ints could overflow.  AVG has no row, since it is a SUM that is divided at the end by the
 * number of sources.  An average of integers is computed in 64 bits.  CHOOSE is ?:, unless the file
 * that expands a row has vectors for a and b. */
#define CHOOSE(condition, x, y) ((condition) ? (x) : (y))
#define WRAPPING_OPS(X, ...) \
    X(SUM, a + b, __VA_ARGS__) X(PRODUCT, 1u * a * b, __VA_ARGS__) \
    X(BAND, a & b, __VA_ARGS__) X(BOR, a | b, __VA_ARGS__) X(BXOR, a ^ b, __VA_ARGS__)
#define ORDERING_OPS(X, ...) \
    X(MIN, CHOOSE(a < b, a, b), __VA_ARGS__) X(MAX, CHOOSE(a > b, a, b), __VA_ARGS__)
#define REAL_OPS(X, ...) /* a != a keeps a NaN in a; a NaN in b is chosen because all comparisons with it fail */ \
    X(SUM, a + b, __VA_ARGS__) X(PRODUCT, a * b, __VA_ARGS__) \
    X(MIN, CHOOSE((a < b) | (a != a), a, b), __VA_ARGS__) X(MAX, CHOOSE((a > b) | (a != a), a, b), __VA_ARGS__)
#define BOOL_OPS(X, ...) \
    X(SUM, a | b, __VA_ARGS__) X(PRODUCT, a & b, __VA_ARGS__) \
    X(MIN, a & b, __VA_ARGS__) X(MAX, a | b, __VA_ARGS__) \
    X(BAND, a & b, __VA_ARGS__) X(BOR, a | b, __VA_ARGS__) X(BXOR, a ^ b, __VA_ARGS__)
#define COMPLEX_OPS(X, C, ...) \
    X(SUM, C##_add(a, b), __VA_ARGS__) X(PRODUCT, C##_multiply(a, b), __VA_ARGS__)

/* clang-format on */

#define COUNT_ONE(...) +1
enum { DTYPE_COUNT = 0 DTYPES(COUNT_ONE), OP_COUNT = 0 OPS(COUNT_ONE) };
#undef COUNT_ONE

#endif
