/* SPDX-License-Identifier: Apache-2.0 */
/* dtype_list.h - every dtype and every op, once.
 *
 * Host C and CUDA C++ expand the same rows.  A dtype is a row of the family it
 * computes like; an op is a row of each family in which it has a meaning, as an
 * expression in a (what was folded so far) and b (the next source), both in the
 * row's accumulator type.  What follows X is handed through to it. */
#ifndef RUNTIME_TYPES_DTYPE_LIST_H
#define RUNTIME_TYPES_DTYPE_LIST_H

#include "runtime/types/narrow_float.h"

/* clang-format off */

/* NAME (CT_NAME), name, stored as */
#define DTYPES(X) \
    X(I8,     i8,     int8_t)   X(U8,     u8,     uint8_t)  \
    X(I16,    i16,    int16_t)  X(U16,    u16,    uint16_t) \
    X(I32,    i32,    int32_t)  X(U32,    u32,    uint32_t) \
    X(I64,    i64,    int64_t)  X(U64,    u64,    uint64_t) \
    X(F16,    f16,    uint16_t) X(BF16,   bf16,   uint16_t) \
    X(F32,    f32,    float)    X(F64,    f64,    double)   \
    X(BOOL,   bool,   uint8_t)                              \
    X(C64,    c64,    struct c64) X(C128, c128,   struct c128) \
    X(F8E4M3, f8e4m3, uint8_t)  X(F8E5M2, f8e5m2, uint8_t)

/* NAME, name */
#define OPS(X) \
    X(SUM, sum) X(AVG, avg) X(PRODUCT, product) X(MIN, min) X(MAX, max) \
    X(BAND, band) X(BOR, bor) X(BXOR, bxor)

/* NAME, stored as, the unsigned type it wraps in, what it is summed in for an average */
#define INTEGERS(X) \
    X(I8,  int8_t,  uint8_t,  I64) X(U8,  uint8_t,  uint8_t,  U64) \
    X(I16, int16_t, uint16_t, I64) X(U16, uint16_t, uint16_t, U64) \
    X(I32, int32_t, uint32_t, I64) X(U32, uint32_t, uint32_t, U64) \
    X(I64, int64_t, uint64_t, I64) X(U64, uint64_t, uint64_t, U64)

/* NAME, stored as and accumulated in */
#define REALS(X) \
    X(F32, float) X(F64, double)

/* Accumulated in float: NAME, stored as, to it, from it */
#define NARROWS(X) \
    X(F16,    uint16_t, f16_to_f32,    f32_to_f16)    \
    X(BF16,   uint16_t, bf16_to_f32,   f32_to_bf16)   \
    X(F8E4M3, uint8_t,  f8e4m3_to_f32, f32_to_f8e4m3) \
    X(F8E5M2, uint8_t,  f8e5m2_to_f32, f32_to_f8e5m2)

/* NAME, stored as and accumulated in, prefix of its arithmetic, its parts */
#define COMPLEXES(X) \
    X(C64, struct c64, c64, float) X(C128, struct c128, c128, double)

/* OP, expression.  1u: a product of two u16 must not become one of two ints.
 * AVG is a SUM that is divided in the end, and no row: by `sources`, integers in
 * 64 bits.  CHOOSE is ?:, unless whoever expands a row has vectors for a and b. */
#define CHOOSE(condition, x, y) ((condition) ? (x) : (y))
#define WRAPPING_OPS(X, ...) \
    X(SUM, a + b, __VA_ARGS__) X(PRODUCT, 1u * a * b, __VA_ARGS__) \
    X(BAND, a & b, __VA_ARGS__) X(BOR, a | b, __VA_ARGS__) X(BXOR, a ^ b, __VA_ARGS__)
#define ORDERING_OPS(X, ...) \
    X(MIN, CHOOSE(a < b, a, b), __VA_ARGS__) X(MAX, CHOOSE(a > b, a, b), __VA_ARGS__)
#define REAL_OPS(X, ...) /* a NaN in a stays by a != a; one in b because every comparison with it fails */ \
    X(SUM, a + b, __VA_ARGS__) X(PRODUCT, a * b, __VA_ARGS__) \
    X(MIN, CHOOSE((a < b) | (a != a), a, b), __VA_ARGS__) X(MAX, CHOOSE((a > b) | (a != a), a, b), __VA_ARGS__)
#define BOOL_OPS(X, ...) \
    X(SUM, a | b, __VA_ARGS__) X(PRODUCT, a & b, __VA_ARGS__) \
    X(MIN, a & b, __VA_ARGS__) X(MAX, a | b, __VA_ARGS__) \
    X(BAND, a & b, __VA_ARGS__) X(BOR, a | b, __VA_ARGS__) X(BXOR, a ^ b, __VA_ARGS__)
#define COMPLEX_OPS(X, C, ...) \
    X(SUM, C##_add(a, b), __VA_ARGS__) X(PRODUCT, C##_multiply(a, b), __VA_ARGS__)

/* clang-format on */

#endif
