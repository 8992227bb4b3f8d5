/* SPDX-License-Identifier: Apache-2.0 */
/* elements.h - values of every dtype, written and read one by one.
 *
 * A second, slow implementation of the formats, from their definitions and not
 * from runtime/combine: a value is a double, element_put() rounds it to nearest
 * even, once.  reference_fold() is the written order of ct.h: rank 0 first, in
 * f32 (f64 for f64), rounded at the end. */
#ifndef TESTS_ELEMENTS_H
#define TESTS_ELEMENTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "include/ct.h"

enum { DTYPES = CT_F8E5M2 + 1, OPS = CT_BXOR + 1 };

static inline int is_integer(ct_dtype dtype)
{
    return dtype <= CT_U64;
}

static inline int is_complex(ct_dtype dtype)
{
    return dtype == CT_C64 || dtype == CT_C128;
}

/* ct.h's paragraph on what has no meaning. */
static inline int op_has_meaning(ct_dtype dtype, ct_op op)
{
    if (op == CT_MIN || op == CT_MAX)
        return !is_complex(dtype);
    if (op == CT_AVG)
        return dtype != CT_BOOL;
    if (op == CT_BAND || op == CT_BOR || op == CT_BXOR)
        return is_integer(dtype) || dtype == CT_BOOL;
    return 1;
}

/* ---- Small floats ---------------------------------------------------------- */

struct small_float {
    int bits, mantissa, bias;
    double largest;
    int has_infinity;
};

static inline struct small_float small_float_of(ct_dtype dtype)
{
    switch (dtype) {
    case CT_F16:
        return (struct small_float){ 16, 10, 15, 65504.0, 1 };
    case CT_BF16:
        return (struct small_float){ 16, 7, 127, 0x1.fep127, 1 };
    case CT_F8E4M3:
        return (struct small_float){ 8, 3, 7, 448.0, 0 };
    default:
        return (struct small_float){ 8, 2, 15, 57344.0, 1 };
    }
}

static inline uint32_t small_float_encode(struct small_float f, double value)
{
    const uint32_t sign = signbit(value) ? 1u << (f.bits - 1) : 0;
    const uint32_t all_ones = (1u << (f.bits - 1)) - 1;
    const uint32_t infinity = all_ones >> f.mantissa << f.mantissa;
    const double size = fabs(value);
    int exponent;
    double quanta;

    if (isnan(value) || (!f.has_infinity && isinf(value)))
        return sign | all_ones;
    if (isinf(value))
        return sign | infinity;
    if (size == 0)
        return sign;
    frexp(size, &exponent); /* size = 0.5... * 2^exponent */
    exponent -= 1;
    if (exponent < 1 - f.bias)
        exponent = 1 - f.bias;
    quanta = nearbyint(ldexp(size, f.mantissa - exponent)); /* to even in the default mode */
    if (ldexp(quanta, exponent - f.mantissa) > f.largest)
        return sign | (f.has_infinity ? infinity : all_ones);
    return sign | (((uint32_t)(exponent + f.bias - 1) << f.mantissa) + (uint32_t)quanta);
}

static inline double small_float_decode(struct small_float f, uint32_t bits)
{
    const uint32_t all_ones = (1u << (f.bits - 1)) - 1, rest = bits & all_ones;
    const uint32_t infinity = all_ones >> f.mantissa << f.mantissa;
    const int exponent = (int)(rest >> f.mantissa);
    const uint32_t fraction = rest & ((1u << f.mantissa) - 1);
    double value;

    if (f.has_infinity ? rest > infinity : rest == all_ones)
        return NAN;
    if (f.has_infinity && rest == infinity)
        value = INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - f.bias - f.mantissa);
    else
        value = ldexp(fraction + (1u << f.mantissa), exponent - f.bias - f.mantissa);
    return bits >> (f.bits - 1) ? -value : value;
}

/* ---- One element ------------------------------------------------------------ */

/* Two's complement, cut to the element: what an integer sum wraps to. */
static inline void element_put_integer(ct_dtype dtype, void *at, size_t i, uint64_t value)
{
    const size_t bytes = ct_dtype_size(dtype);

    memcpy((char *)at + i * bytes, &value, bytes); /* little-endian machines only */
}

static inline uint64_t element_get_integer(ct_dtype dtype, const void *at, size_t i)
{
    const size_t bytes = ct_dtype_size(dtype);
    const int is_signed = dtype == CT_I8 || dtype == CT_I16 || dtype == CT_I32 || dtype == CT_I64;
    uint64_t value = 0;

    memcpy(&value, (const char *)at + i * bytes, bytes);
    if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
        value |= ~(uint64_t)0 << (8 * bytes);
    return value;
}

/* A complex number is value + 2 value i, so its sums stay so. */
static inline void element_put(ct_dtype dtype, void *at, size_t i, double value)
{
    char *to = (char *)at + i * ct_dtype_size(dtype);

    if (is_integer(dtype)) {
        element_put_integer(dtype, at, i, (uint64_t)(int64_t)value);
    } else if (dtype == CT_BOOL) {
        *to = value != 0;
    } else if (dtype == CT_F32 || dtype == CT_C64) {
        const float parts[2] = { (float)value, (float)(2 * value) };

        memcpy(to, parts, ct_dtype_size(dtype));
    } else if (dtype == CT_F64 || dtype == CT_C128) {
        const double parts[2] = { value, 2 * value };

        memcpy(to, parts, ct_dtype_size(dtype));
    } else {
        const uint32_t bits = small_float_encode(small_float_of(dtype), value);

        memcpy(to, &bits, ct_dtype_size(dtype));
    }
}

/* Of a complex number the real part. */
static inline double element_get(ct_dtype dtype, const void *at, size_t i)
{
    const char *from = (const char *)at + i * ct_dtype_size(dtype);
    uint32_t bits = 0;
    float f;
    double d;

    if (dtype == CT_U64)
        return (double)element_get_integer(dtype, at, i);
    if (is_integer(dtype))
        return (double)(int64_t)element_get_integer(dtype, at, i);
    if (dtype == CT_BOOL)
        return *from != 0;
    if (dtype == CT_F32 || dtype == CT_C64) {
        memcpy(&f, from, sizeof f);
        return (double)f;
    }
    if (dtype == CT_F64 || dtype == CT_C128) {
        memcpy(&d, from, sizeof d);
        return d;
    }
    memcpy(&bits, from, ct_dtype_size(dtype));
    return small_float_decode(small_float_of(dtype), bits);
}

/* ---- The written order ------------------------------------------------------- */

static inline uint64_t fold_integers(ct_dtype dtype, ct_op op, const void *const *src, int p,
                                     size_t i)
{
    const int is_signed = dtype == CT_I8 || dtype == CT_I16 || dtype == CT_I32 || dtype == CT_I64;
    uint64_t a = element_get_integer(dtype, src[0], i);

    for (int r = 1; r < p; r++) {
        const uint64_t b = element_get_integer(dtype, src[r], i);
        const int less = is_signed ? (int64_t)b < (int64_t)a : b < a;

        switch (op) {
        case CT_PRODUCT:
            a *= b;
            break;
        case CT_MIN:
            a = less ? b : a;
            break;
        case CT_MAX:
            a = less ? a : b;
            break;
        case CT_BAND:
            a &= b;
            break;
        case CT_BOR:
            a |= b;
            break;
        case CT_BXOR:
            a ^= b;
            break;
        default:
            a += b;
        }
    }
    if (op != CT_AVG)
        return a;
    return is_signed /* the sum is taken in 64 bits */
               ? (uint64_t)((int64_t)a / p)
               : a / (uint64_t)p;
}

static inline float fold_step_float(ct_op op, float a, float b)
{
    if (op == CT_PRODUCT)
        return a * b;
    if (op == CT_MIN)
        return isnan(a) || a < b ? a : b;
    if (op == CT_MAX)
        return isnan(a) || a > b ? a : b;
    return a + b;
}

static inline double fold_step_double(ct_op op, double a, double b)
{
    if (op == CT_PRODUCT)
        return a * b;
    if (op == CT_MIN)
        return isnan(a) || a < b ? a : b;
    if (op == CT_MAX)
        return isnan(a) || a > b ? a : b;
    return a + b;
}

static inline int fold_bools(ct_op op, const void *const *src, int p, size_t i)
{
    int any = 0, all = 1, odd = 0;

    for (int r = 0; r < p; r++) {
        const int b = ((const unsigned char *)src[r])[i] != 0;

        any |= b;
        all &= b;
        odd ^= b;
    }
    if (op == CT_BXOR)
        return odd;
    return op == CT_PRODUCT || op == CT_MIN || op == CT_BAND ? all : any;
}

/* dst[i] = op over src[0][i] ... src[p-1][i].  Complex numbers: sum and average. */
static inline void reference_fold(ct_dtype dtype, ct_op op, void *dst, const void *const *src,
                                  int p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_integer(dtype)) {
            element_put_integer(dtype, dst, i, fold_integers(dtype, op, src, p, i));
        } else if (dtype == CT_BOOL) {
            element_put(dtype, dst, i, fold_bools(op, src, p, i));
        } else if (dtype == CT_F64 || dtype == CT_C128) {
            double a = element_get(dtype, src[0], i);

            for (int r = 1; r < p; r++)
                a = fold_step_double(op, a, element_get(dtype, src[r], i));
            element_put(dtype, dst, i, op == CT_AVG ? a / p : a);
        } else {
            float a = (float)element_get(dtype, src[0], i);

            for (int r = 1; r < p; r++)
                a = fold_step_float(op, a, (float)element_get(dtype, src[r], i));
            element_put(dtype, dst, i, (double)(op == CT_AVG ? a / (float)p : a));
        }
    }
}

/* Same bits, or both NaN. */
static inline int same_element(ct_dtype dtype, const void *a, const void *b, size_t i)
{
    const size_t bytes = ct_dtype_size(dtype);

    return memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) == 0
           || (isnan(element_get(dtype, a, i)) && isnan(element_get(dtype, b, i)));
}

#endif
