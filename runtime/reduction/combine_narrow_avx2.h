/* SPDX-License-Identifier: Apache-2.0 */
/* combine_narrow_avx2.h - defines the loops for narrow floats with AVX2 and F16C, in blocks of 16.
 *
 * This is a part of combine_loops.h.  An "element" of these loops is a block of 16 floats, which is
 * a pair of vectors in registers.  The last few floats are copied to padded blocks.  The
 * conversions compute the same bits as narrow_float.h.
 *
 * f8e4m3 and f8e5m2 are converted by way of f16.  The conversion from f8 to f16 is exact, since f16
 * has the larger range of exponents.  For the conversion to f8, the f32 is rounded to an f16 by
 * "round to odd".  This truncates the f32 and sets the last bit if the truncation is not exact.  So
 * the second rounding, from f16 to f8, gets the same result as one rounding from f32. */
#ifndef RUNTIME_REDUCTION_COMBINE_NARROW_AVX2_H
#define RUNTIME_REDUCTION_COMBINE_NARROW_AVX2_H

#include <immintrin.h>

enum { BLOCK = 16 };

struct pair {
    __m256 low, high;
};

struct halves {
    __m128i low, high; /* two vectors, since one vector would be split and joined again */
};

typedef struct halves F16_block;
typedef __m256i BF16_block;
typedef __m128i F8E4M3_block, F8E5M2_block;

static inline struct pair F16_from_block(struct halves h)
{
    const struct pair pair = { _mm256_cvtph_ps(h.low), _mm256_cvtph_ps(h.high) };

    return pair;
}

static inline struct halves F16_to_block(struct pair a)
{
    const struct halves halves = { _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT),
                                   _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT) };

    return halves;
}

/* Converts a block.  `low` gets the elements with an even index, `high` those with an odd index. */
static inline struct pair BF16_from_block(__m256i b)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
    const struct pair pair = { _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)),
                               _mm256_castsi256_ps(_mm256_and_si256(b, upper)) };

    return pair;
}

/* Rounds eight f32 to bf16.  The upper half of each 32-bit element of the result is the bf16. */
static inline __m256i bf16_rounded(__m256 a)
{
    const __m256i bits = _mm256_castps_si256(a), one = _mm256_set1_epi32(1);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    const __m256i half = _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_add_epi32(bits, half);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));

    return _mm256_blendv_epi8(rounded, quiet, is_nan);
}

static inline __m256i BF16_to_block(struct pair a)
{
    const __m256i even = _mm256_srli_epi32(bf16_rounded(a.low), 16);

    return _mm256_blend_epi16(even, bf16_rounded(a.high), 0xaa);
}

static inline __m256i f16_rounded_to_odd(struct pair a)
{
    const __m128i low = _mm256_cvtps_ph(a.low, _MM_FROUND_TO_ZERO);
    const __m128i high = _mm256_cvtps_ph(a.high, _MM_FROUND_TO_ZERO);
    const __m256 low_lost = _mm256_cmp_ps(_mm256_cvtph_ps(low), a.low, _CMP_NEQ_UQ);
    const __m256 high_lost = _mm256_cmp_ps(_mm256_cvtph_ps(high), a.high, _CMP_NEQ_UQ);
    const __m256i by_lanes =
        _mm256_packs_epi32(_mm256_castps_si256(low_lost), _mm256_castps_si256(high_lost));
    const __m256i lost = _mm256_permute4x64_epi64(by_lanes, 0xd8);
    const __m256i odd = _mm256_and_si256(lost, _mm256_set1_epi16(1));

    return _mm256_or_si256(_mm256_set_m128i(high, low), odd);
}

/* Returns the magnitudes without their last `dropped` bits, rounded to nearest, ties to even. */
static inline __m256i f16_without(__m256i magnitude, int dropped)
{
    const __m256i one = _mm256_set1_epi16(1);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi16(magnitude, dropped), one);
    const __m256i below = _mm256_set1_epi16((short)((1 << (dropped - 1)) - 1));
    const __m256i half = _mm256_add_epi16(even, below);

    return _mm256_srli_epi16(_mm256_add_epi16(magnitude, half), dropped);
}

static inline __m128i f8_with_signs(__m256i magnitude, __m256i f16)
{
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi16(f16, 8), _mm256_set1_epi16(0x80));
    const __m256i both = _mm256_or_si256(magnitude, sign);

    return _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

static inline struct pair F8E5M2_from_block(__m128i b)
{
    const __m128i zero = _mm_setzero_si128();
    const struct pair pair = { _mm256_cvtph_ps(_mm_unpacklo_epi8(zero, b)),
                               _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, b)) };

    return pair;
}

static inline __m128i F8E5M2_to_block(struct pair a)
{
    const __m256i f16 = f16_rounded_to_odd(a);
    const __m256i magnitude = _mm256_and_si256(f16, _mm256_set1_epi16(0x7fff));
    const __m256i is_nan = _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x7c00));
    const __m256i rounded = f16_without(magnitude, 8), nan = _mm256_set1_epi16(0x7f);

    return f8_with_signs(_mm256_blendv_epi8(rounded, nan, is_nan), f16);
}

/* Converts a block.  The bits of an f8e4m3, read as those of an f16, are a number that is 256 times
 * too small, and the bits of NaN are an ordinary number.  So NaN is replaced before the conversion
 * to f32, and the results are multiplied by 256. */
static inline struct pair F8E4M3_from_block(__m128i b)
{
    const __m256i wide = _mm256_cvtepu8_epi16(b);
    const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_xor_si256(wide, magnitude), 8);
    const __m256i is_nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    const __m256i nan = _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7e00));
    const __m256i number = _mm256_or_si256(_mm256_slli_epi16(magnitude, 7), nan);
    const __m256i f16 = _mm256_or_si256(number, sign);
    const struct halves halves = { _mm256_castsi256_si128(f16), _mm256_extracti128_si256(f16, 1) };
    struct pair pair = F16_from_block(halves);

    pair.low = _mm256_mul_ps(pair.low, _mm256_set1_ps(256));
    pair.high = _mm256_mul_ps(pair.high, _mm256_set1_ps(256));
    return pair;
}

static inline __m128i F8E4M3_to_block(struct pair a)
{
    const __m256 scale = _mm256_set1_ps(1.f / 256);
    const struct pair small = { _mm256_mul_ps(a.low, scale), _mm256_mul_ps(a.high, scale) };
    const __m256i f16 = f16_rounded_to_odd(small);
    const __m256i magnitude = _mm256_and_si256(f16, _mm256_set1_epi16(0x7fff));
    const __m256i nan = _mm256_set1_epi16(0x7f); /* also for numbers out of range */

    return f8_with_signs(_mm256_min_epu16(f16_without(magnitude, 7), nan), f16);
}

/* ---- In order, where the floats are stored as such ---------------------------------- */

static inline struct pair BF16_widened(__m256i b)
{
    const struct pair a = BF16_from_block(b);
    const __m256 lower = _mm256_unpacklo_ps(a.low, a.high); /* of each 128-bit lane */
    const __m256 upper = _mm256_unpackhi_ps(a.low, a.high);
    const struct pair pair = { _mm256_permute2f128_ps(lower, upper, 0x20),
                               _mm256_permute2f128_ps(lower, upper, 0x31) };

    return pair;
}

static inline __m256i BF16_narrowed(struct pair a)
{
    const __m256 lower = _mm256_permute2f128_ps(a.low, a.high, 0x20);
    const __m256 upper = _mm256_permute2f128_ps(a.low, a.high, 0x31);
    const struct pair pair = { _mm256_shuffle_ps(lower, upper, 0x88),
                               _mm256_shuffle_ps(lower, upper, 0xdd) };

    return BF16_to_block(pair);
}

#define F16_widened F16_from_block
#define F16_narrowed F16_to_block
#define F8E4M3_widened F8E4M3_from_block
#define F8E4M3_narrowed F8E4M3_to_block
#define F8E5M2_widened F8E5M2_from_block
#define F8E5M2_narrowed F8E5M2_to_block

/* ---- Loops over blocks ------------------------------------------------------------ */

typedef __m256 vector;
static inline __m256 chosen(__m256 condition, __m256 yes, __m256 no)
{
    return _mm256_blendv_ps(no, yes, condition);
}

#include "runtime/reduction/combine_blocks.h"
#define DEFINE_NARROW DEFINE_NARROW_BLOCKS

#endif
