/* SPDX-License-Identifier: Apache-2.0 */
/* combine_blocks.h - the narrow floats in blocks of eight, for AVX2 with F16C.
 *
 * A part of combine_loops.h.  An "element" of these loops is a block; the last
 * few elements go through padded blocks.  The conversions give the bits of those
 * in narrow.h.  Both f8 go through f16: its exponents reach further, so to it is
 * exact; on the way back the f16 is rounded to odd (cut, and the last bit set when
 * something was cut off), which keeps what the second rounding needs to know. */
#ifndef RUNTIME_COMBINE_BLOCKS_H
#define RUNTIME_COMBINE_BLOCKS_H

#include <immintrin.h>

typedef __m128i F16_block, BF16_block;
typedef uint64_t F8E4M3_block, F8E5M2_block;

static inline __m256 F16_from_block(__m128i h)
{
    return _mm256_cvtph_ps(h);
}

static inline __m128i F16_to_block(__m256 a)
{
    return _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT);
}

static inline __m256 BF16_from_block(__m128i b)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(b), 16));
}

static inline __m128i BF16_to_block(__m256 a)
{
    const __m256i bits = _mm256_castps_si256(a), upper = _mm256_srli_epi32(bits, 16);
    const __m256i even = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i wide = _mm256_blendv_epi8(rounded, quiet, is_nan);

    return _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
}

static inline __m128i f16_rounded_to_odd(__m256 a)
{
    const __m128i cut = _mm256_cvtps_ph(a, _MM_FROUND_TO_ZERO);
    const __m256 lost = _mm256_cmp_ps(_mm256_cvtph_ps(cut), a, _CMP_NEQ_UQ);
    const __m256i bits = _mm256_castps_si256(lost);
    const __m128i odd =
        _mm_packs_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));

    return _mm_or_si128(cut, _mm_and_si128(odd, _mm_set1_epi16(1)));
}

/* The magnitude without its last `dropped` bits, rounded to nearest, ties to even. */
static inline __m128i f16_without(__m128i magnitude, int dropped)
{
    const __m128i even = _mm_and_si128(_mm_srli_epi16(magnitude, dropped), _mm_set1_epi16(1));
    const __m128i half = _mm_add_epi16(even, _mm_set1_epi16((short)((1 << (dropped - 1)) - 1)));

    return _mm_srli_epi16(_mm_add_epi16(magnitude, half), dropped);
}

static inline uint64_t f8_with_signs(__m128i magnitude, __m128i f16)
{
    const __m128i sign = _mm_and_si128(_mm_srli_epi16(f16, 8), _mm_set1_epi16(0x80));
    const __m128i both = _mm_or_si128(magnitude, sign);

    return (uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(both, both));
}

static inline __m256 F8E5M2_from_block(uint64_t b)
{
    return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), _mm_cvtsi64_si128((long long)b)));
}

static inline uint64_t F8E5M2_to_block(__m256 a)
{
    const __m128i f16 = f16_rounded_to_odd(a);
    const __m128i magnitude = _mm_and_si128(f16, _mm_set1_epi16(0x7fff));
    const __m128i is_nan = _mm_cmpgt_epi16(magnitude, _mm_set1_epi16(0x7c00));
    const __m128i rounded = f16_without(magnitude, 8);

    return f8_with_signs(_mm_blendv_epi8(rounded, _mm_set1_epi16(0x7f), is_nan), f16);
}

/* As an f16 of the same pattern it is 256 times too small, and NaN a number. */
static inline __m256 F8E4M3_from_block(uint64_t b)
{
    const __m128i wide = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)b));
    const __m128i magnitude = _mm_and_si128(wide, _mm_set1_epi16(0x7f));
    const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
    const __m128i is_nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
    const __m128i nan = _mm_and_si128(is_nan, _mm_set1_epi16(0x7e00));
    const __m128i f16 = _mm_or_si128(_mm_or_si128(_mm_slli_epi16(magnitude, 7), nan), sign);

    return _mm256_mul_ps(_mm256_cvtph_ps(f16), _mm256_set1_ps(256));
}

static inline uint64_t F8E4M3_to_block(__m256 a)
{
    const __m128i f16 = f16_rounded_to_odd(_mm256_mul_ps(a, _mm256_set1_ps(1.f / 256)));
    const __m128i magnitude = _mm_and_si128(f16, _mm_set1_epi16(0x7fff));
    const __m128i nan = _mm_set1_epi16(0x7f); /* what is too large, too */

    return f8_with_signs(_mm_min_epu16(f16_without(magnitude, 7), nan), f16);
}

/* ---- Loops over blocks ------------------------------------------------------------ */

enum { BLOCK = 8 };

static inline __m256 chosen(__m256 condition, __m256 yes, __m256 no)
{
    return _mm256_blendv_ps(no, yes, condition);
}
#undef CHOOSE
#define CHOOSE(condition, x, y) chosen((__m256)(condition), x, y)

/* `fold` counts blocks, n elements of `size` bytes. */
static void fold_blocks(fold_kernel *fold, void *dst, const void *const *src, int sources, size_t n,
                        size_t size)
{
    const size_t whole = n / BLOCK * BLOCK * size, rest = n % BLOCK * size;
    char padded[MOST_AT_ONCE][BLOCK * 2] = { { 0 } }, last[BLOCK * 2];
    const void *from[MOST_AT_ONCE];

    fold(dst, src, sources, n / BLOCK);
    if (rest == 0)
        return;
    for (int s = 0; s < sources; s++)
        from[s] = memcpy(padded[s], (const char *)src[s] + whole, rest);
    fold(last, from, sources, 1);
    memcpy((char *)dst + whole, last, rest);
}

static void convert_blocks(convert_kernel *convert, void *dst, size_t dst_size, const void *src,
                           size_t src_size, size_t n)
{
    const size_t whole = n / BLOCK * BLOCK, rest = n % BLOCK;
    char from[BLOCK * sizeof(float)] = { 0 }, to[BLOCK * sizeof(float)];

    convert(dst, src, n / BLOCK);
    if (rest == 0)
        return;
    memcpy(from, (const char *)src + whole * src_size, rest * src_size);
    convert(to, from, 1);
    memcpy((char *)dst + whole * dst_size, to, rest * dst_size);
}

DEFINE_FORM(F32_block, __m256, __m256)

#define DEFINE_SMALL_FOLD(OP, expr, NAME, T)                                                       \
    DEFINE_FOLD(OP, expr, NAME##_blocks, NAME##_from_block, NAME##_to_block)                       \
    static void NAME##_small_##OP##_fold(void *dst, const void *const *src, int sources, size_t n) \
    {                                                                                              \
        fold_blocks(NAME##_blocks_##OP##_fold, dst, src, sources, n, sizeof(T));                   \
    }

#define DEFINE_NARROW(NAME, T, LOAD, STORE)                                            \
    DEFINE_FORM(NAME##_blocks, NAME##_block, __m256)                                   \
    REAL_OPS(DEFINE_SMALL_FOLD, NAME, T)                                               \
    DEFINE_CONVERSION(NAME##_from_blocks, NAME##_blocks, F32_block, NAME##_from_block) \
    DEFINE_CONVERSION(NAME##_to_blocks, F32_block, NAME##_blocks, NAME##_to_block)     \
    static void NAME##_widen(void *dst, const void *src, size_t n)                     \
    {                                                                                  \
        convert_blocks(NAME##_from_blocks, dst, sizeof(float), src, sizeof(T), n);     \
    }                                                                                  \
    static void NAME##_narrow(void *dst, const void *src, size_t n)                    \
    {                                                                                  \
        convert_blocks(NAME##_to_blocks, dst, sizeof(T), src, sizeof(float), n);       \
    }
NARROWS(DEFINE_NARROW)

#endif
