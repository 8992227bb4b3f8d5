/* SPDX-License-Identifier: Apache-2.0 */
/* test_combine_forms.c - every way through the folds gives the bits of the plain one.
 *
 * The plain fold takes one element at a time, in the written order, each step
 * computed in f64 and rounded to the accumulator's type: that is what one
 * operation in this type gives.  The kernels differ by count, alignment, number
 * of sources, nodes and destinations, and by how they store; inputs are any bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/reduction/combine_kernels.h"
#include "runtime/types/dtype.h"
#include "runtime/types/narrow_float.h"
#include "tests/harness.h"

enum { MOST = 300, LONG = 3000, SOURCES = 13, COPIES = 3, GUARD = 64 };
enum { ROOM = LONG * 16 + 16 + 2 * GUARD };

/* An element: `whole` of integers and bool, else its parts. */
struct value {
    uint64_t whole;
    double re, im;
};

static int is_complex(ct_dtype dtype)
{
    return dtype == CT_C64 || dtype == CT_C128;
}

/* What one operation in the accumulator's type leaves of a result computed in f64. */
static double rounded(ct_dtype dtype, double exact)
{
    return dtype == CT_F64 || dtype == CT_C128 ? exact : (double)(float)exact;
}

static struct value load(ct_dtype dtype, const char *at)
{
    const size_t size = ct_dtype_size(dtype);
    struct value value = { 0, 0, 0 };
    float pair[2] = { 0, 0 };
    double wide[2] = { 0, 0 };

    memcpy(&value.whole, at, size < 8 ? size : 8);
    memcpy(pair, at, size < 8 ? size : 8);
    memcpy(wide, at, size);
    if (dtype == CT_I8 || dtype == CT_I16 || dtype == CT_I32)
        value.whole = (uint64_t)((int64_t)(value.whole << (64 - 8 * size)) >> (64 - 8 * size));
    switch (dtype) {
    case CT_BOOL:
        value.whole = value.whole != 0;
        break;
    case CT_F16:
        value.re = (double)f16_to_f32((uint16_t)value.whole);
        break;
    case CT_BF16:
        value.re = (double)bf16_to_f32((uint16_t)value.whole);
        break;
    case CT_F8E4M3:
        value.re = (double)f8e4m3_to_f32((uint8_t)value.whole);
        break;
    case CT_F8E5M2:
        value.re = (double)f8e5m2_to_f32((uint8_t)value.whole);
        break;
    case CT_F64:
    case CT_C128:
        value.re = wide[0], value.im = wide[1];
        break;
    default:
        value.re = (double)pair[0], value.im = (double)pair[1];
    }
    return value;
}

static void store(ct_dtype dtype, char *at, struct value value)
{
    const float pair[2] = { (float)value.re, (float)value.im };
    const double wide[2] = { value.re, value.im };

    if (dtype == CT_F16)
        value.whole = f32_to_f16(pair[0]);
    else if (dtype == CT_BF16)
        value.whole = f32_to_bf16(pair[0]);
    else if (dtype == CT_F8E4M3)
        value.whole = f32_to_f8e4m3(pair[0]);
    else if (dtype == CT_F8E5M2)
        value.whole = f32_to_f8e5m2(pair[0]);
    if (dtype == CT_F32 || dtype == CT_C64)
        memcpy(at, pair, ct_dtype_size(dtype));
    else if (dtype == CT_F64 || dtype == CT_C128)
        memcpy(at, wide, ct_dtype_size(dtype));
    else
        memcpy(at, &value.whole, ct_dtype_size(dtype));
}

static uint64_t whole_step(ct_dtype dtype, ct_op op, uint64_t a, uint64_t b)
{
    const int is_signed = dtype <= CT_U64 && dtype % 2 == CT_I8;
    const int less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    const int more = is_signed ? (int64_t)a > (int64_t)b : a > b;

    if (dtype == CT_BOOL && op == CT_SUM)
        return a | b;
    switch (op) {
    case CT_SUM:
    case CT_AVG:
        return a + b;
    case CT_PRODUCT:
        return a * b;
    case CT_MIN:
        return less ? a : b;
    case CT_MAX:
        return more ? a : b;
    case CT_BAND:
        return a & b;
    case CT_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

static struct value step(ct_dtype dtype, ct_op op, struct value a, struct value b)
{
    struct value to = { whole_step(dtype, op, a.whole, b.whole), a.re, a.im };

    if (op == CT_SUM || op == CT_AVG) {
        to.re = rounded(dtype, a.re + b.re), to.im = rounded(dtype, a.im + b.im);
    } else if (op == CT_PRODUCT && is_complex(dtype)) {
        to.re = rounded(dtype, rounded(dtype, a.re * b.re) - rounded(dtype, a.im * b.im));
        to.im = rounded(dtype, rounded(dtype, a.re * b.im) + rounded(dtype, a.im * b.re));
    } else if (op == CT_PRODUCT) {
        to.re = rounded(dtype, a.re * b.re);
    } else if (!isnan(a.re) && !(op == CT_MIN ? a.re < b.re : a.re > b.re)) {
        to.re = b.re;
    }
    return to;
}

/* Of the partial results of `count` nodes from `first` on: those of its left half, which has the
 * nodes of whole pairs and then as many leaves as the right one, with those of its right half. */
static struct value fold_subtree(const struct fold *fold, const struct value *partial, int first,
                                 int count)
{
    int leaves = 1, pairs, left;

    if (count == 1)
        return partial[first];
    while (leaves <= count / 2)
        leaves *= 2;
    pairs = count - leaves;
    left = leaves / 2 + (pairs < leaves / 2 ? pairs : leaves / 2);
    return step(fold->dtype, fold->op, fold_subtree(fold, partial, first, left),
                fold_subtree(fold, partial, first + left, count - left));
}

static void plain_fold(const struct fold *fold, char *dst, char *const *src, size_t count)
{
    const size_t size = ct_dtype_size(fold->dtype);
    const int is_signed = fold->dtype <= CT_U64 && fold->dtype % 2 == CT_I8;

    for (size_t i = 0; i < count; i++) {
        struct value partial[SOURCES], total;

        for (int node = 0, at = 0; node < fold->nodes; node++) {
            partial[node] = load(fold->dtype, src[at] + i * size);
            for (at++; at < fold->node_end[node]; at++)
                partial[node] = step(fold->dtype, fold->op, partial[node],
                                     load(fold->dtype, src[at] + i * size));
        }
        total = fold_subtree(fold, partial, 0, fold->nodes);
        if (fold->op == CT_AVG) {
            total.whole = is_signed ? (uint64_t)((int64_t)total.whole / fold->sources)
                                    : total.whole / (uint64_t)fold->sources;
            total.re = rounded(fold->dtype, total.re / fold->sources);
            total.im = rounded(fold->dtype, total.im / fold->sources);
        }
        store(fold->dtype, dst + i * size, total);
    }
}

/* Bit for bit; but of two NaNs an addition keeps either. */
static int same(ct_dtype dtype, const char *got, const char *wanted, size_t count)
{
    const size_t size = ct_dtype_size(dtype);

    if (memcmp(got, wanted, count * size) == 0)
        return 1;
    for (size_t i = 0; i < count; i++) {
        const char *const g = got + i * size, *const w = wanted + i * size;
        const struct value a = load(dtype, g), b = load(dtype, w);
        const size_t half = is_complex(dtype) ? size / 2 : size;

        if (dtype <= CT_U64 || dtype == CT_BOOL) {
            if (memcmp(g, w, size) != 0)
                return 0;
        } else if ((!(isnan(a.re) && isnan(b.re)) && memcmp(g, w, half) != 0)
                   || (is_complex(dtype) && !(isnan(a.im) && isnan(b.im))
                       && memcmp(g + half, w + half, half) != 0)) {
            return 0;
        }
    }
    return 1;
}

static uint64_t random_state = 7;

static unsigned any(unsigned below)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(random_state >> 33) % below;
}

/* Any bits in most elements; small numbers in the others, lest all of f8 and f16 be NaN or huge. */
static void fill(ct_dtype dtype, char *at, size_t count)
{
    const size_t size = ct_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        const struct value small = { any(7), (double)any(17) / 4 - 2, (double)any(17) / 4 - 2 };

        for (size_t b = 0; b < size; b++)
            at[i * size + b] = (char)any(256);
        if (any(3) == 0)
            store(dtype, at + i * size, small);
    }
}

/* A way to call: what the kernels can tell apart. */
struct way {
    int sources, copies, streaming;
    int in_place; /* -1, or the source that is the first destination */
    size_t count, shift;
};

static char area[SOURCES + COPIES][ROOM], wanted[LONG * 16];

/* Cuts the sources into nodes at random; a third of the time there is one. */
static void cut(struct fold *fold, int *node_end)
{
    const int one = any(3) == 0;

    fold->nodes = 0;
    fold->node_end = node_end;
    for (int s = 1; s <= fold->sources; s++)
        if (s == fold->sources || (!one && any(2)))
            node_end[fold->nodes++] = s;
}

static void check(ct_dtype dtype, ct_op op, const struct way *way)
{
    struct fold fold = { dtype, op, way->sources, 0, NULL };
    const size_t bytes = way->count * ct_dtype_size(dtype);
    int node_end[SOURCES];
    char *src[SOURCES], *dst[COPIES];

    cut(&fold, node_end);
    for (int s = 0; s < way->sources; s++) {
        src[s] = area[s] + GUARD + (way->shift + (s ? any(2) * any(16) : 0)) % 16;
        fill(dtype, src[s], way->count);
    }
    for (int d = 0; d < way->copies; d++)
        dst[d] = area[SOURCES + d] + GUARD + (way->shift + (d ? any(2) * any(16) : 0)) % 16;
    if (way->in_place >= 0)
        dst[0] = src[way->in_place];
    plain_fold(&fold, wanted, src, way->count);
    for (int d = 0; d < way->copies; d++) {
        memset(dst[d] - GUARD, 0x55, GUARD);
        memset(dst[d] + bytes, 0x55, 48);
    }
    combine_fold_to(&fold, (void *const *)dst, way->copies, (const void *const *)src, way->count,
                    way->streaming);
    for (int d = 0; d < way->copies; d++) {
        int guarded = 1;

        for (size_t g = 1; g <= 48; g++)
            guarded &= dst[d][-(int)g] == 0x55 && dst[d][bytes + g - 1] == 0x55;
        if (!guarded || !same(dtype, dst[d], wanted, way->count))
            expect_fails(__FILE__, __LINE__,
                         "%s of %d x %zu %s, %d nodes, to %d, in place %d, shift %zu%s%s",
                         op_name(op), way->sources, way->count, dtype_name(dtype), fold.nodes,
                         way->copies, way->in_place, way->shift,
                         way->streaming ? ", streaming" : "", guarded ? "" : ": beyond its end");
    }
}

/* The rest of each call is drawn: over 107 pairs of dtype and op everything meets everything. */
static void all_counts_and_alignments_give_the_plain_folds_bits(void **state)
{
    (void)state;
    for (int dtype = 0; dtype <= CT_F8E5M2; dtype++)
        for (int op = 0; op <= CT_BXOR; op++)
            for (size_t n = 0; combine_defined((ct_dtype)dtype, op) && n < (MOST + 1) * 2; n++) {
                struct way way = {
                    1 + (int)any(SOURCES), 1 + (int)any(COPIES), (int)any(2), -1, n / 2, any(16)
                };

                if (any(2))
                    way.in_place = (int)any((unsigned)way.sources);
                check((ct_dtype)dtype, op, &way);
            }
}

static void each_alignment_with_each_number_of_sources_gives_the_plain_folds_bits(void **state)
{
    (void)state;
    for (int dtype = 0; dtype <= CT_F8E5M2; dtype++)
        for (int op = 0; op <= CT_BXOR; op++)
            for (size_t shift = 0; combine_defined((ct_dtype)dtype, op) && shift < 16; shift++)
                for (int sources = 1; sources <= SOURCES; sources++) {
                    const struct way way = { sources, 1 + (int)any(COPIES), sources & 1,
                                             -1,      any(MOST + 1),        shift };

                    check((ct_dtype)dtype, op, &way);
                }
}

/* Past a tile's end, where a chain starts again. */
static void several_tiles_give_the_plain_folds_bits(void **state)
{
    (void)state;
    for (int dtype = 0; dtype <= CT_F8E5M2; dtype++)
        for (int op = 0; op <= CT_BXOR; op++)
            for (int n = 0; combine_defined((ct_dtype)dtype, op) && n < 4; n++) {
                const struct way way = { n < 2 ? SOURCES - n : 1 + (int)any(SOURCES),
                                         1 + (int)any(COPIES),
                                         n & 1,
                                         -1,
                                         LONG - any(LONG / 2),
                                         any(2) * any(16) };

                check((ct_dtype)dtype, op, &way);
            }
}

/* A tile's end inside a destination that starts anywhere in a line. */
static void large_folds_are_whole_at_their_tiles_seams(void **state)
{
    enum { LARGE = 70001 };
    const int end = 3;
    float *const from = malloc(3 * LARGE * sizeof *from);
    char *const to = malloc(2 * LARGE * sizeof *from + 128);

    (void)state;
    for (int i = 0; i < 3 * LARGE; i++)
        from[i] = (float)any(1000);
    for (int streaming = 0; streaming < 2; streaming++)
        for (int shift = 0; shift < 64; shift += 9) {
            const struct fold fold = { CT_F32, CT_SUM, 3, 1, &end };
            const void *const src[] = { from, from + LARGE, from + 2 * LARGE };
            void *const dst[] = { to + shift, to + LARGE * sizeof *from + 64 };

            memset(to, 0, 2 * LARGE * sizeof *from + 128);
            combine_fold_to(&fold, dst, 2, src, LARGE, streaming);
            for (int i = 0; i < LARGE; i++) {
                const float sum = from[i] + from[LARGE + i] + from[2 * LARGE + i];

                for (int d = 0; d < 2; d++)
                    if (memcmp((char *)dst[d] + (size_t)i * sizeof sum, &sum, sizeof sum) != 0)
                        expect_fails(__FILE__, __LINE__, "element %d of %d, shift %d", i, d, shift);
            }
        }
    free(from);
    free(to);
}

/* ---- The kernels of a better machine against the plain ones --------------------------- */

static void check_kernels(const struct kernels *better, int dtype, int op, int sources)
{
    const size_t size = ct_dtype_size((ct_dtype)dtype), count = any(MOST + 1);
    const void *src[MOST_AT_ONCE];
    char *const dst = area[SOURCES] + any(16), *const plain = area[SOURCES + 1] + any(16);

    for (int s = 0; s < sources; s++) {
        src[s] = area[s] + any(16);
        fill((ct_dtype)dtype, area[s] + ((const char *)src[s] - area[s]), count);
    }
    dst[count * size] = 0x55;
    better[dtype].fold[op](dst, src, sources, count);
    kernels_plain[dtype].fold[op](plain, src, sources, count);
    if (!same((ct_dtype)dtype, dst, plain, count) || dst[count * size] != 0x55)
        expect_fails(__FILE__, __LINE__, "%s of %d x %zu %s", op_name(op), sources, count,
                     dtype_name((ct_dtype)dtype));
}

static void all_levels_kernels_give_the_same_bits(void **state)
{
    static const int sources[] = { 1, 2, 3, 4, MOST_AT_ONCE };

    (void)state;
    for (int level = 1; level < KERNEL_LEVELS; level++)
        for (int dtype = 0; kernels_at(level) && dtype < DTYPE_COUNT; dtype++)
            for (int op = 0; op < OP_COUNT; op++)
                for (int n = 0; kernels_at(level)[dtype].fold[op] && n < 60; n++)
                    check_kernels(kernels_at(level), dtype, op, sources[n % 5]);
}

/* Each of both f8 with each other one: all their sums, products, and choices. */
static void all_pairs_of_f8_give_the_plain_kernels_bits(void **state)
{
    static uint8_t left[65536], right[65536], got[65536], plain[65536];
    const void *const src[] = { left, right };

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        left[i] = (uint8_t)(i >> 8), right[i] = (uint8_t)i;
    for (int level = 1; level < KERNEL_LEVELS; level++)
        for (int dtype = CT_F8E4M3; kernels_at(level) && dtype <= CT_F8E5M2; dtype++)
            for (int op = CT_SUM; op <= CT_MAX && kernels_at(level)[dtype].fold[CT_SUM]; op++) {
                if (op == CT_AVG)
                    continue;
                kernels_at(level)[dtype].fold[op](got, src, 2, 65536);
                kernels_plain[dtype].fold[op](plain, src, 2, 65536);
                EXPECT(same((ct_dtype)dtype, (char *)got, (char *)plain, 65536));
            }
}

/* From all of a narrow float's patterns, and to them from f32 beside each, where rounding turns. */
static void all_levels_convert_alike(void **state)
{
    static const int dtypes[] = { CT_F16, CT_BF16, CT_F8E4M3, CT_F8E5M2 };
    static uint16_t patterns[65536], got[65536 * 4], plain[65536 * 4];
    static float wide[65536], other[65536], near[65536 * 4];

    (void)state;
    for (int t = 0; t < 4; t++)
        for (int level = 1; level < KERNEL_LEVELS; level++) {
            const struct kernels *const kernels = kernels_at(level);
            const int dtype = dtypes[t], f8 = ct_dtype_size((ct_dtype)dtype) == 1;
            const size_t count = f8 ? 256 : 65536;

            for (size_t i = 0; i < 65536; i++)
                patterns[i] = (uint16_t)(f8 ? (2 * i + 1) << 8 | 2 * i : i);
            if (!kernels || !kernels[dtype].widen)
                continue;
            kernels[dtype].widen(wide, patterns, count);
            kernels_plain[dtype].widen(other, patterns, count);
            EXPECT(same(CT_F32, (char *)wide, (char *)other, count));
            for (size_t i = 0; i < count; i++) {
                const float next =
                    f8 || isnan(wide[(i + 1) % count]) ? wide[i] * 1.125f : wide[(i + 1) % count];
                const float middle = wide[i] + (next - wide[i]) / 2;

                near[4 * i] = middle;
                near[4 * i + 1] = nextafterf(middle, INFINITY);
                near[4 * i + 2] = nextafterf(middle, -INFINITY);
                near[4 * i + 3] = wide[i] * 1.0625f;
            }
            kernels[dtype].narrow(got, near, 4 * count);
            kernels_plain[dtype].narrow(plain, near, 4 * count);
            EXPECT(same((ct_dtype)dtype, (char *)got, (char *)plain, 4 * count));
        }
}

static void a_streaming_copy_is_a_copy(void **state)
{
    enum { LARGE = 1000 };
    char from[LARGE + 64], to[LARGE + 128];

    (void)state;
    for (int i = 0; i < LARGE + 64; i++)
        from[i] = (char)any(256);
    for (size_t bytes = 0; bytes <= LARGE; bytes += 1 + bytes / 70)
        for (size_t shift = 0; shift < 64; shift++) {
            memset(to, 0x55, sizeof to);
            copy_streaming(to + shift, from + shift * 5 % 64, bytes);
            EXPECT(memcmp(to + shift, from + shift * 5 % 64, bytes) == 0);
            for (size_t i = 0; i < sizeof to; i++)
                EXPECT((i >= shift && i < shift + bytes) || to[i] == 0x55);
        }
    copy_streaming(NULL, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_counts_and_alignments_give_the_plain_folds_bits),
        cmocka_unit_test(each_alignment_with_each_number_of_sources_gives_the_plain_folds_bits),
        cmocka_unit_test(several_tiles_give_the_plain_folds_bits),
        cmocka_unit_test(large_folds_are_whole_at_their_tiles_seams),
        cmocka_unit_test(all_levels_kernels_give_the_same_bits),
        cmocka_unit_test(all_pairs_of_f8_give_the_plain_kernels_bits),
        cmocka_unit_test(all_levels_convert_alike),
        cmocka_unit_test(a_streaming_copy_is_a_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
