/* SPDX-License-Identifier: Apache-2.0 */
/* fold_values.c - all pairs of the numbers that matter, and of the small dtypes all there are. */
#include <math.h>

#include "tests/cuda/folds.h"

static void check_pairs(ct_dtype dtype, const void *left, const void *right, size_t count)
{
    static char got[65536 * 16], host[65536 * 16];
    const void *const src[] = { left, right };
    void *const to_got = got, *const to_host = host;
    const int both = 2;

    for (int op = 0; op < OP_COUNT; op++) {
        const struct fold fold = { dtype, op, 2, 1, &both };

        if (!combine_defined(dtype, op))
            continue;
        run(&fold, &to_got, 1, src, count, 132);
        combine_fold_to(&fold, &to_host, 1, src, count, 0);
        if (!same(dtype, op, got, host, count))
            expect_fails(__FILE__, __LINE__, "%s of two %s", op_name(op), dtype_name(dtype));
    }
}

void all_pairs_of_bytes_give_the_hosts_bits(void **state)
{
    static const ct_dtype dtypes[] = { CT_F8E4M3, CT_F8E5M2, CT_I8, CT_U8, CT_BOOL };
    static uint8_t left[65536], right[65536];

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
    static uint16_t left[65536], right[65536];

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
    static double left[PAIRS * 2], right[PAIRS * 2];
    static float left_single[PAIRS * 2], right_single[PAIRS * 2];

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
