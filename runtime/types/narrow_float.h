/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_float.h - converts f16, bf16 and the two f8 to and from f32, and computes complex numbers.
 *
 * Neither the host compiler nor nvcc has arithmetic for all narrow floats, so these are stored as
 * integers and computed in f32.  The conversion to f32 is exact.  The conversion from f32 rounds to
 * nearest, ties to even.  The code has selections instead of branches, so that compilers vectorise
 * loops over it.  The code has no products of denormals, so that a program which flushes denormals
 * to zero gets the same bits.
 *
 * A narrow float has M bits of mantissa and an exponent with a bias.  A normal number becomes f32
 * by a shift and a change of the exponent.  A denormal is shifted, too, and then looks like a
 * normal number with an implicit leading one, which is subtracted. */
#ifndef RUNTIME_TYPES_NARROW_FLOAT_H
#define RUNTIME_TYPES_NARROW_FLOAT_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define CT_ELEMENT static inline __host__ __device__
#else
#define CT_ELEMENT static inline
#endif

CT_ELEMENT float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

CT_ELEMENT uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns `yes` if condition is 1, and `no` if it is 0.  The code avoids ?:, with which gcc 12
 * makes loops over f16 and f8 3.5 times slower (measured). */
CT_ELEMENT uint32_t either(int condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)condition;

    return (yes & mask) | (no & ~mask);
}

/* Returns the f32 bits of a finite narrow float without its sign.  magnitude is its bits without
 * the sign. */
CT_ELEMENT uint32_t widen(uint32_t magnitude, int mantissa, uint32_t bias)
{
    const uint32_t shifted = magnitude << (23 - mantissa), least = (128 - bias) << 23;
    const float denormal = float_of_bits(shifted + least) - float_of_bits(least);

    return either(shifted >= 1u << 23, shifted + ((127 - bias) << 23), bits_of_float(denormal));
}

/* Rounds an f32 to a narrow float and returns its bits without the sign.  magnitude is the f32's
 * bits without the sign, below the narrow format's overflow.  The carry of the rounding may still
 * give the pattern after the largest finite number.  The f32 adder rounds a denormal result,
 * because the last place of `unit` has the same value as the last place of the result. */
CT_ELEMENT uint32_t round_to(uint32_t magnitude, int mantissa, uint32_t bias)
{
    const int dropped = 23 - mantissa;
    const uint32_t unit = (151 - bias - (uint32_t)mantissa) << 23;
    const uint32_t denormal = bits_of_float(float_of_bits(magnitude) + float_of_bits(unit)) - unit;
    const uint32_t half = (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
    const uint32_t normal = (magnitude - ((127 - bias) << 23) + half) >> dropped;

    return either(magnitude < (128 - bias) << 23, denormal, normal);
}

CT_ELEMENT float f16_to_f32(uint16_t h)
{
    const uint32_t magnitude = h & 0x7fffu, sign = (h & 0x8000u) << 16;
    const uint32_t special = magnitude << 13 | 0x7f800000u;

    return float_of_bits(sign | either(magnitude >= 0x7c00, special, widen(magnitude, 10, 15)));
}

CT_ELEMENT uint16_t f32_to_f16(float f)
{
    const uint32_t bits = bits_of_float(f), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    const uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff), finite = round_to(a, 10, 15);

    return (uint16_t)(sign | either(a > 0x7f800000, nan, either(a >= 0x47800000, 0x7c00, finite)));
}

CT_ELEMENT float bf16_to_f32(uint16_t b)
{
    return float_of_bits((uint32_t)b << 16);
}

CT_ELEMENT uint16_t f32_to_bf16(float f)
{
    const uint32_t bits = bits_of_float(f);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (uint16_t)either((bits & 0x7fffffff) > 0x7f800000, bits >> 16 | 0x40, rounded);
}

/* torch.float8_e4m3fn, which has no infinity.  All ones is NaN, and 448 is the largest number. */
CT_ELEMENT float f8e4m3_to_f32(uint8_t b)
{
    const uint32_t magnitude = b & 0x7fu, sign = (b & 0x80u) << 24;

    return float_of_bits(sign | either(magnitude == 0x7f, 0x7fc00000, widen(magnitude, 3, 7)));
}

CT_ELEMENT uint8_t f32_to_f8e4m3(float f)
{
    const uint32_t bits = bits_of_float(f), sign = bits >> 24 & 0x80, a = bits & 0x7fffffff;
    const uint32_t finite = round_to(a, 3, 7);

    /* 480 and above, infinity and NaN become NaN. */
    return (uint8_t)(sign | either(a >= 0x43f00000, 0x7f, finite));
}

/* torch.float8_e5m2, which is the upper byte of an f16. */
CT_ELEMENT float f8e5m2_to_f32(uint8_t b)
{
    return f16_to_f32((uint16_t)(b << 8));
}

CT_ELEMENT uint8_t f32_to_f8e5m2(float f)
{
    const uint32_t bits = bits_of_float(f), sign = bits >> 24 & 0x80, a = bits & 0x7fffffff;
    const uint32_t finite = round_to(a, 2, 15);

    return (uint8_t)(sign | either(a > 0x7f800000, 0x7f, either(a >= 0x47800000, 0x7c, finite)));
}

struct c64 {
    float re, im;
};

struct c128 {
    double re, im;
};

/* The product is computed by the plain formula.  Unlike C's annex G, it does not recover infinities
 * from NaN parts. */
#define COMPLEX_ARITHMETIC(C, real)                                                \
    CT_ELEMENT struct C C##_add(struct C a, struct C b)                            \
    {                                                                              \
        a.re += b.re;                                                              \
        a.im += b.im;                                                              \
        return a;                                                                  \
    }                                                                              \
    CT_ELEMENT struct C C##_multiply(struct C a, struct C b)                       \
    {                                                                              \
        const real re = a.re * b.re - a.im * b.im, im = a.re * b.im + a.im * b.re; \
                                                                                   \
        a.re = re;                                                                 \
        a.im = im;                                                                 \
        return a;                                                                  \
    }                                                                              \
    CT_ELEMENT struct C C##_divide(struct C a, real n)                             \
    {                                                                              \
        a.re /= n;                                                                 \
        a.im /= n;                                                                 \
        return a;                                                                  \
    }

COMPLEX_ARITHMETIC(c64, float)
COMPLEX_ARITHMETIC(c128, double)
#undef COMPLEX_ARITHMETIC

#endif
