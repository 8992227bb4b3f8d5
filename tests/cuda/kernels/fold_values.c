/* SPDX-License-Identifier: Apache-2.0 */
/* fold_values.c - all pairs of the numbers that matter, and of the small dtypes all there are. */
#include <math.h>
#include <string.h>

#include "tests/cuda/kernels/folds.h"

enum { MOST_TOGETHER = 8 };

/* Of `count` elements; the last source is as far from the others as `apart` says, in bytes: none
 * is by pieces, a whole element by elements. */
static void check_apart(const struct fold *fold, const char *const *src, size_t count, size_t apart)
{
    static _Alignas(16) char got[65536 * 16], host[65536 * 16], last[65536 * 16 + 16];
    const int behind = fold->sources - 1;
    const void *placed[MOST_TOGETHER];
    void *const to_got = got, *const to_host = host;

    memcpy(placed, src, (size_t)behind * sizeof *placed);
    placed[behind] = memcpy(last + apart, src[behind], count * ct_dtype_size(fold->dtype));
    run(fold, &to_got, 1, placed, count, 132);
    combine_fold_to(fold, &to_host, 1, placed, count, 0);
    if (!same(fold->dtype, fold->op, got, host, count))
        expect_fails(__FILE__, __LINE__, "%s of %d %s, the last %zu apart", op_name(fold->op),
                     fold->sources, dtype_name(fold->dtype), apart);
}

static void check_pairs(ct_dtype dtype, const void *left, const void *right, size_t count)
{
    const char *const src[] = { left, right };
    const int both = 2;

    for (int op = 0; op < OP_COUNT; op++) {
        const struct fold fold = { dtype, op, 2, 1, &both };
        const int takes_all = effort.drawn == 1 || count <= 1024, way = (int)any(2);

        if (!combine_defined(dtype, op))
            continue;
        if (takes_all || way == 0)
            check_apart(&fold, src, count, 0);
        if (takes_all || way == 1)
            check_apart(&fold, src, count, dtype == CT_C128 ? 8 : ct_dtype_size(dtype));
    }
}

void all_pairs_of_bytes_give_the_hosts_bits(void **state)
{
    static const ct_dtype dtypes[] = { CT_F8E4M3, CT_F8E5M2, CT_I8, CT_U8, CT_BOOL };
    static _Alignas(16) uint8_t left[65536], right[65536];

    (void)state;
    for (unsigned i = 0; i < 65536; i++)
        left[i] = (uint8_t)(i >> 8), right[i] = (uint8_t)i;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        check_pairs(dtypes[d], left, right, 65536);
}

/* Each f16 and bf16 with zeros, infinities, NaNs, the least and greatest numbers, and others. */
void all_halves_with_some_give_the_hosts_bits(void **state)
{
    static const uint16_t some[] = {
        0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x007f, 0x0080, 0x7c00, 0xfc00, 0x7f80,
        0xff80, 0x7c01, 0x7e00, 0xfe55, 0x7bff, 0xfbff, 0x7f7f, 0x3c00, 0xbc00, 0x3f80, 0xbf80,
        0x3555, 0xb555, 0x1234, 0x9abc, 0x5640, 0x6bff, 0x2e66, 0x477f, 0xc0de, 0x4248
    };
    static _Alignas(16) uint16_t left[65536], right[65536];

    (void)state;
    for (size_t s = any(effort.halves); s < sizeof some / sizeof *some; s += effort.halves) {
        for (unsigned i = 0; i < 65536; i++)
            left[i] = (uint16_t)i, right[i] = some[s];
        check_pairs(CT_F16, left, right, 65536);
        check_pairs(CT_BF16, left, right, 65536);
        check_pairs(CT_F16, right, left, 65536);
        check_pairs(CT_BF16, right, left, 65536);
    }
}

/* A piece has each value in all its lanes. */
static size_t fill_pieces(ct_dtype dtype, char *at)
{
    static const uint8_t high[] = {
        0x00, 0x03, 0x04, 0x07, 0x3b, 0x3c, 0x3f, 0x7b, 0x7c, 0x7e, 0x7f
    };
    static const uint8_t low[] = { 0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff };
    const size_t size = ct_dtype_size(dtype), lanes = 16 / size;
    const size_t pieces = size == 1 ? 256 : 2 * sizeof high * sizeof low;

    for (size_t i = 0; i < pieces * lanes; i++) {
        const size_t k = i / lanes, sign = k % 2 << 15;
        const uint16_t value =
            (uint16_t)(size == 1 ? k
                                 : sign | high[k / 2 / sizeof low] << 8 | low[k / 2 % sizeof low]);

        memcpy(at + i * size, &value, size);
    }
    return pieces * lanes;
}

struct narrow {
    ct_dtype dtype;
    int mantissa;
    uint16_t one, greatest, least;
};

/* Beside which each bit of `values` decides: for products ones, for minima the greatest number, for
 * maxima the least, for averages zeros; and for sums half of the value's last place, a tie. */
static void fill_neutral(const struct narrow *row, ct_op op, char *at, const char *values,
                         size_t count)
{
    const size_t size = ct_dtype_size(row->dtype);

    for (size_t i = 0; i < count; i++) {
        uint16_t value = 0;

        memcpy(&value, values + i * size, size);
        value = (uint16_t)(value & ((1u << (8 * size - 1)) - 1)) >> row->mantissa;
        value = op == CT_PRODUCT ? row->one
                : op == CT_MIN   ? row->greatest
                : op == CT_MAX   ? row->least
                : op == CT_SUM && value > row->mantissa + 1
                    ? (uint16_t)((value - row->mantissa - 1) << row->mantissa)
                    : 0;
        memcpy(at + i * size, &value, size);
    }
}

/* By pieces and by elements, with `values` in each place, `next` in the one behind it, and zeros
 * or again `next` in all others. */
static void check_places(const struct fold *fold, const char *values, const char *next,
                         size_t count)
{
    static _Alignas(16) const char zeros[256 * 16];
    const char *src[MOST_TOGETHER];

    for (int place = 0; place < fold->sources; place++) {
        for (int s = 0; s < fold->sources; s++)
            src[s] = fold->op == CT_SUM ? zeros : next;
        src[(place + 1) % fold->sources] = next;
        src[place] = values;
        check_apart(fold, src, count, 0);
        check_apart(fold, src, count, ct_dtype_size(fold->dtype));
    }
}

/* A kernel's loops over sources and lanes are unrolled, so a value is converted by other
 * instructions in each place.  Of 7 no sum has a kernel of its own. */
void each_narrow_value_counts_in_each_place(void **state)
{
    static const struct narrow rows[] = { { CT_F16, 10, 0x3c00, 0x7c00, 0xfc00 },
                                          { CT_BF16, 7, 0x3f80, 0x7f80, 0xff80 },
                                          { CT_F8E4M3, 3, 0x38, 0x7e, 0xfe },
                                          { CT_F8E5M2, 2, 0x3c, 0x7c, 0xfc } };
    static const int sources[] = { 7, 2, 3, 4, 8 };
    static _Alignas(16) char values[256 * 16], next[256 * 16];

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int op = CT_SUM; op <= CT_MAX; op++)
            for (int i = 0; i < (op == CT_SUM && r < 2 ? 5 : 1); i++) {
                const struct fold fold = { rows[r].dtype, (ct_op)op, sources[i], 1, &sources[i] };
                const size_t count = fill_pieces(fold.dtype, values);

                fill_neutral(&rows[r], fold.op, next, values, count);
                check_places(&fold, values, next, count);
            }
}

/* Neither is less, so the order shows, in whichever place the last source is. */
void of_zeros_with_signs_the_last_one_is_kept(void **state)
{
    static const ct_dtype dtypes[] = { CT_F16, CT_BF16, CT_F32, CT_F64, CT_F8E4M3, CT_F8E5M2 };
    enum { EACH = 64 };
    static _Alignas(16) char zeros[MOST_TOGETHER][EACH * 8];
    const char *src[MOST_TOGETHER];

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int sources = 2; sources <= MOST_TOGETHER; sources++) {
            const size_t size = ct_dtype_size(dtypes[d]);

            for (int s = 0; s < sources; s++) {
                src[s] = memset(zeros[s], 0, sizeof zeros[s]);
                for (size_t i = 0; i < EACH; i++)
                    zeros[s][i * size + size - 1] = (char)(any(2) << 7);
            }
            for (int i = 0; i < 4; i++) {
                const int node_end[] = { i < 2 ? sources : sources / 2, sources };
                const struct fold fold = { dtypes[d], i % 2 ? CT_MIN : CT_MAX, sources, 1 + i / 2,
                                           node_end };

                check_apart(&fold, src, EACH, 0);
                check_apart(&fold, src, EACH, size);
            }
        }
}

/* Of f32 and f64: zeros, denormals, what overflows, infinities, NaNs, and ties, in all pairs. */
void all_pairs_of_special_numbers_give_the_hosts_bits(void **state)
{
    static const double some[] = { 0.0,       -0.0,    1,        -1,       3,        1.0 / 3,
                                   1e-45,     -1e-45,  1e-38,    1.2e-38,  -1.1e-38, 3.4e38,
                                   -3.4e38,   1e30,    1e-30,    5e-324,   -5e-324,  1e-308,
                                   2.3e-308,  1.7e308, -1.7e308, 1e200,    1e-200,   INFINITY,
                                   -INFINITY, NAN,     -NAN,     16777217, 0.1,      1 << 24,
                                   7,         49 };
    enum { SOME = sizeof some / sizeof *some, PAIRS = SOME * SOME };
    static _Alignas(16) double left[PAIRS * 2], right[PAIRS * 2];
    static _Alignas(16) float left_single[PAIRS * 2], right_single[PAIRS * 2];

    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        left[i] = some[i / SOME], right[i] = some[i % SOME];
        left_single[i] = (float)left[i], right_single[i] = (float)right[i];
    }
    check_pairs(CT_F64, left, right, PAIRS);
    check_pairs(CT_F32, left_single, right_single, PAIRS);
    check_pairs(CT_C128, left, right, PAIRS / 2);
    check_pairs(CT_C64, left_single, right_single, PAIRS / 2);
}
