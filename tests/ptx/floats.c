/* SPDX-License-Identifier: Apache-2.0 */
/* floats.c - arithmetic, comparisons and conversions of floats.
 *
 * f32 and f64 are the machine's, rounded to nearest, denormals and all.  The narrow ones are
 * rounded here by another way than runtime/types/narrow_float.h has, which the kernels contain. */
#include <math.h>
#include <string.h>

#include "tests/ptx/parts.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* type, C's, the integer of its size, the letter of its registers, the NaN of every result: PTX
 * leaves its bits open, so they are such that nobody can take them for an operand's */
#define REALS(X, ...)                                               \
    X(f32, float, uint32_t, "w", UINT32_C(0x7fffffff), __VA_ARGS__) \
    X(f64, double, uint64_t, "d", UINT64_C(0x7fffffffffffffff), __VA_ARGS__)

#define DEFINE_REAL(type, T, U, L, NAN_BITS, ...) \
    static T type##_of(uint64_t slot)             \
    {                                             \
        const U bits = (U)slot;                   \
        T value;                                  \
                                                  \
        memcpy(&value, &bits, sizeof value);      \
        return value;                             \
    }                                             \
                                                  \
    static uint64_t type##_bits(T value)          \
    {                                             \
        U bits;                                   \
                                                  \
        memcpy(&bits, &value, sizeof bits);       \
        return isnan(value) ? NAN_BITS : bits;    \
    }
REALS(DEFINE_REAL, )

/* ---- Arithmetic -------------------------------------------------------------------- */

#define ARITHMETIC(X) X(add, a + b) X(sub, a - b) X(mul, a *b) X(div, a / b)
#define DEFINE_BINARY(type, T, U, L, NAN_BITS, op, expr)                        \
    static void op##_##type(struct thread *thread, const struct instruction *i) \
    {                                                                           \
        const T a = type##_of(IN(1)), b = type##_of(IN(2));                     \
                                                                                \
        OUT(type##_bits(expr));                                                 \
    }
#define DEFINE_ALL(op, expr) REALS(DEFINE_BINARY, op, expr)
ARITHMETIC(DEFINE_ALL)
#define BINARY_ROW(type, T, U, L, NAN_BITS, op) { #op ".rn." #type, L L L, op##_##type },
#define BINARY_ROWS(op, expr) REALS(BINARY_ROW, op)

/* ---- Comparisons ------------------------------------------------------------------- */

/* With a NaN the first ones fail, ne among them, and those with a u hold. */
#define COMPARISONS(X)             \
    X(eq, a == b)                  \
    X(ne, a<b || a> b)             \
    X(lt, a < b)                   \
    X(le, a <= b)                  \
    X(gt, a > b)                   \
    X(ge, a >= b)                  \
    X(equ, !(a < b || a > b))      \
    X(neu, !(a == b))              \
    X(ltu, !(a >= b))              \
    X(leu, !(a > b))               \
    X(gtu, !(a <= b))              \
    X(geu, !(a < b))               \
    X(num, !isnan(a) && !isnan(b)) \
    X(nan, isnan(a) || isnan(b))
#define DEFINE_COMPARISON(type, T, U, L, NAN_BITS, op, expr)                           \
    static void setp_##op##_##type(struct thread *thread, const struct instruction *i) \
    {                                                                                  \
        const T a = type##_of(IN(1)), b = type##_of(IN(2));                            \
                                                                                       \
        OUT(expr);                                                                     \
    }
#define DEFINE_COMPARISONS(op, expr) REALS(DEFINE_COMPARISON, op, expr)
COMPARISONS(DEFINE_COMPARISONS)
#define COMPARISON_ROW(type, T, U, L, NAN_BITS, op) \
    { "setp." #op "." #type, "p" L L, setp_##op##_##type },
#define COMPARISON_ROWS(op, expr) REALS(COMPARISON_ROW, op)

/* ---- Conversions ------------------------------------------------------------------- */

/* The bits of a float with `mantissa` bits of mantissa and 15 - mantissa of exponent: the value in
 * units of its last place is rounded to an integer, to nearest, ties to even. */
static uint64_t narrowed(double value, int mantissa)
{
    const int bias = (1 << (14 - mantissa)) - 1;
    const uint64_t sign = signbit(value) ? 0x8000 : 0, infinity = (uint64_t)(2 * bias + 1)
                                                                  << mantissa;
    const double magnitude = fabs(value);
    int exponent; /* of 0.5 <= magnitude / 2^exponent < 1 */
    uint64_t bits;

    if (isnan(value))
        return 0x7fff;
    if (isinf(value))
        return sign | infinity;
    frexp(magnitude, &exponent);
    exponent = magnitude == 0 || exponent < 2 - bias ? 2 - bias : exponent;
    bits = (uint64_t)rint(ldexp(magnitude, mantissa + 1 - exponent)); /* a carry is in its place */
    bits += (uint64_t)(exponent + bias - 2) << mantissa;
    return sign | (bits < infinity ? bits : infinity);
}

static void cvt_rn_f16_f32(struct thread *thread, const struct instruction *i)
{
    OUT(narrowed(f32_of(IN(1)), 10));
}

static void cvt_rn_bf16_f32(struct thread *thread, const struct instruction *i)
{
    OUT(narrowed(f32_of(IN(1)), 7));
}

static void cvt_f32_f16(struct thread *thread, const struct instruction *i)
{
    const int bits = IN(1) & 0x7fff, exponent = bits >> 10, mantissa = bits & 0x3ff;
    const float magnitude = exponent == 31  ? mantissa ? NAN : INFINITY
                            : exponent == 0 ? ldexpf((float)mantissa, -24)
                                            : ldexpf((float)(mantissa + 1024), exponent - 25);

    OUT(f32_bits(IN(1) & 0x8000 ? -magnitude : magnitude));
}

static void cvt_rn_f32_u32(struct thread *thread, const struct instruction *i)
{
    OUT(f32_bits((float)(uint32_t)IN(1)));
}

static void cvt_rn_f64_u32(struct thread *thread, const struct instruction *i)
{
    OUT(f64_bits((double)(uint32_t)IN(1)));
}

/* clang-format off */
static const struct row rows[] = {
    ARITHMETIC(BINARY_ROWS)
    COMPARISONS(COMPARISON_ROWS)
    { "cvt.rn.f16.f32", "hw", cvt_rn_f16_f32 },
    { "cvt.rn.bf16.f32", "hw", cvt_rn_bf16_f32 },
    { "cvt.f32.f16", "wh", cvt_f32_f16 },
    { "cvt.rn.f32.u32", "ww", cvt_rn_f32_u32 },
    { "cvt.rn.f64.u32", "dw", cvt_rn_f64_u32 },
};
/* clang-format on */
const struct rows float_rows = { rows, COUNT(rows) };
