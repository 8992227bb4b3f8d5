/* SPDX-License-Identifier: Apache-2.0 */
/* combine_blocks.h - defines the loops for narrow floats over blocks.
 *
 * This is a part of combine_loops.h.  An "element" of these loops is a block of BLOCK floats, which
 * is a pair of vectors in registers.  The last few floats are copied to padded blocks.  The
 * including file defines BLOCK, vector, struct pair and chosen(), and for each dtype
 * <NAME>_block and the conversions of a block: <NAME>_from_block() and <NAME>_to_block(), in any
 * order of the elements, and <NAME>_widened() and <NAME>_narrowed(), in the order of the array. */
#ifndef RUNTIME_REDUCTION_COMBINE_BLOCKS_H
#define RUNTIME_REDUCTION_COMBINE_BLOCKS_H

#pragma push_macro("CHOOSE")
#undef CHOOSE
#define CHOOSE(condition, x, y) chosen((vector)(condition), x, y)

#define DEFINE_PAIR_OP(OP, expr, NAME)                                     \
    static inline vector NAME##_##OP(vector a, vector b)                   \
    {                                                                      \
        return expr;                                                       \
    }                                                                      \
    static inline struct pair NAME##s_##OP(struct pair a, struct pair b) { \
        a.low = NAME##_##OP(a.low, b.low);                                 \
        a.high = NAME##_##OP(a.high, b.high);                              \
        return a;                                                          \
    }
REAL_OPS(DEFINE_PAIR_OP, vector)
#pragma pop_macro("CHOOSE")

/* Reduces n elements of `size` bytes with `fold`, a kernel that counts in blocks.  The last
 * elements are padded to a block. */
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

DEFINE_FORM(F32_block, struct pair, struct pair)

#define DEFINE_SMALL_FOLD(OP, expr, NAME, T)                                                       \
    DEFINE_FOLD(OP, vectors_##OP(a, b), NAME##_blocks, NAME##_from_block, NAME##_to_block)         \
    static void NAME##_small_##OP##_fold(void *dst, const void *const *src, int sources, size_t n) \
    {                                                                                              \
        fold_blocks(NAME##_blocks_##OP##_fold, dst, src, sources, n, sizeof(T));                   \
    }

#define DEFINE_NARROW_BLOCKS(NAME, name, T, ...)                                    \
    DEFINE_FORM(NAME##_blocks, NAME##_block, struct pair)                           \
    REAL_OPS(DEFINE_SMALL_FOLD, NAME, T)                                            \
    DEFINE_CONVERSION(NAME##_from_blocks, NAME##_blocks, F32_block, NAME##_widened) \
    DEFINE_CONVERSION(NAME##_to_blocks, F32_block, NAME##_blocks, NAME##_narrowed)  \
    static void NAME##_widen(void *dst, const void *src, size_t n)                  \
    {                                                                               \
        convert_blocks(NAME##_from_blocks, dst, sizeof(float), src, sizeof(T), n);  \
    }                                                                               \
    static void NAME##_narrow(void *dst, const void *src, size_t n)                 \
    {                                                                               \
        convert_blocks(NAME##_to_blocks, dst, sizeof(T), src, sizeof(float), n);    \
    }

#endif
