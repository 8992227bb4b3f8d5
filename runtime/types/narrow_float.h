/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_float.h - f16, bf16 and the two f8, to and from f32; and complex numbers.
 *
 * Neither compiler has arithmetic for all of these, so they are stored as
 * integers and computed in f32.  To f32 is exact, from f32 rounds to nearest,
 * ties to even.  There are no branches, only selections, so that a loop over
 * them is vectorised; and no product of denormals, so that a program which
 * flushes them to zero gets the same bits.
 *
 * A narrow float has M bits of mantissa and a bias: its normal numbers become
 * f32 by shifting and moving the exponent, its denormals by subtracting the
 * implicit one that the shifted pattern seems to have. */
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

/* Not by ?:, with which gcc 12 makes loops over f16 and f8 3.5 times slower (measured). */
CT_ELEMENT uint32_t either(int condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)condition;

    return (yes & mask) | (no & ~mask);
}

/* magnitude: the pattern without its sign, finite. */
CT_ELEMENT uint32_t widen(uint32_t magnitude, int mantissa, uint32_t bias)
{
    const uint32_t shifted = magnitude << (23 - mantissa), least = (128 - bias) << 23;
    const float denormal = float_of_bits(shifted + least) - float_of_bits(least);

    return either(shifted >= 1u << 23, shifted + ((127 - bias) << 23), bits_of_float(denormal));
}

/* magnitude: of an f32 below the format's overflow; the last bit's carry may
 * still give the pattern after the largest finite one.  For a denormal result
 * the f32 adder rounds: `unit` has the result's last place as its own. */
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

/* torch.float8_e4m3fn: no infinity, all ones is NaN, 448 the largest. */
CT_ELEMENT float f8e4m3_to_f32(uint8_t b)
{
    const uint32_t magnitude = b & 0x7fu, sign = (b & 0x80u) << 24;

    return float_of_bits(sign | either(magnitude == 0x7f, 0x7fc00000, widen(magnitude, 3, 7)));
}

CT_ELEMENT uint8_t f32_to_f8e4m3(float f)
{
    const uint32_t bits = bits_of_float(f), sign = bits >> 24 & 0x80, a = bits & 0x7fffffff;
    const uint32_t finite = round_to(a, 3, 7);

    return (uint8_t)(sign | either(a >= 0x43f00000, 0x7f, finite)); /* 480 and up, infinity, NaN */
}

/* torch.float8_e5m2: the upper half of an f16. */
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

/* The product is the schoolbook one: infinities are not repaired as C's annex G would. */
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
