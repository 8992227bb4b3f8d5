/* SPDX-License-Identifier: Apache-2.0 */
/* test_dtypes.c - every dtype with every op, through the collectives that reduce.
 *
 * Each rank can compute what every rank gives, so each compares its result with
 * elements.h's fold, rank 0 first, bit by bit.  Then what is refused, what has a
 * rounding or a wrap to get wrong, NaN, and premul_sum. */
#include "tests/elements.h"
#include "tests/harness.h"

#include <stdio.h>

enum { MOST = 67, BYTES = 16 };

static const char *const dtype_names[DTYPES] = { "i8",   "u8",  "i16",  "u16",    "i32",   "u32",
                                                 "i64",  "u64", "f16",  "bf16",   "f32",   "f64",
                                                 "bool", "c64", "c128", "f8e4m3", "f8e5m2" };
static const char *const op_names[OPS] = { "sum", "avg",  "product", "min",
                                           "max", "band", "bor",     "bxor" };

/* What rank r gives at i: small, of both signs, with quarters where there are any. */
static void fill(ct_dtype dtype, int r, void *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int value = (int)((i * 7 + (size_t)r * 5) % 13) - 5;

        if (dtype == CT_BOOL) /* any non-zero byte is true */
            ((unsigned char *)at)[i] = (unsigned char)(value % 3 == 0 ? 0 : value);
        else
            element_put(dtype, at, i, is_integer(dtype) ? value : value / 4.0);
    }
}

/* elements.h folds sums of complex numbers only: the others are tested below. */
static int has_reference(ct_dtype dtype, ct_op op)
{
    return op_has_meaning(dtype, op) && !(is_complex(dtype) && op == CT_PRODUCT);
}

static void compare(ct_dtype dtype, ct_op op, const void *got, const void *wanted, size_t first,
                    size_t count, const char *what)
{
    const size_t bytes = ct_dtype_size(dtype);

    for (size_t i = 0; i < count; i++)
        if (!same_element(dtype, (const char *)got + i * bytes,
                          (const char *)wanted + (first + i) * bytes, 0)) {
            expect_fails(__FILE__, __LINE__, "%s of %s, %s: element %zu is %g instead of %g", what,
                         dtype_names[dtype], op_names[op], i, element_get(dtype, got, i),
                         element_get(dtype, wanted, first + i));
            return;
        }
}

static void reduce_all_ways(ct_group *group, ct_dtype dtype, ct_op op, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group), root = (int)dtype % p;
    unsigned char given[8][MOST * 8 * BYTES], wanted[MOST * 8 * BYTES], got[MOST * BYTES];
    const void *sources[8];
    const size_t whole = n * (size_t)p;

    for (int r = 0; r < p; r++) {
        fill(dtype, r, given[r], whole);
        sources[r] = given[r];
    }
    reference_fold(dtype, op, wanted, sources, p, whole);
    EXPECT_OK(ct_all_reduce(group, given[me], got, n, dtype, op, NULL));
    compare(dtype, op, got, wanted, 0, n, "all_reduce");
    EXPECT_OK(ct_reduce(group, given[me], got, n, dtype, op, root, NULL));
    if (me == root)
        compare(dtype, op, got, wanted, 0, n, "reduce");
    EXPECT_OK(ct_reduce_scatter(group, given[me], got, n, dtype, op, NULL));
    compare(dtype, op, got, wanted, n * (size_t)me, n, "reduce_scatter");
}

static void all_pairs(ct_group *group, void *arg)
{
    static const size_t counts[] = { 1, 13, MOST };

    (void)arg;
    for (int dtype = 0; dtype < DTYPES; dtype++)
        for (int op = 0; op < OPS; op++)
            for (int c = 0; c < 3 && has_reference((ct_dtype)dtype, op); c++)
                reduce_all_ways(group, (ct_dtype)dtype, op, counts[c]);
}

static void every_pair_is_the_fold_in_rank_order(void **state)
{
    (void)state;
    run_ranks(1, all_pairs, NULL);
    run_ranks(2, all_pairs, NULL);
    run_ranks(5, all_pairs, NULL);
}

static void refused_pairs(ct_group *group, void *arg)
{
    unsigned char a[BYTES] = { 0 }, b[BYTES] = { 9 };
    char words[32];

    (void)arg;
    for (int dtype = 0; dtype < DTYPES; dtype++)
        for (int op = 0; op < OPS; op++) {
            if (op_has_meaning((ct_dtype)dtype, op))
                continue;
            snprintf(words, sizeof words, "%s|%s", dtype_names[dtype], op_names[op]);
            EXPECT_ERROR(ct_all_reduce(group, a, b, 1, (ct_dtype)dtype, op, NULL), CT_ERR_INVALID,
                         words);
            EXPECT_ERROR(ct_reduce_scatter(group, a, b, 1, (ct_dtype)dtype, op, NULL),
                         CT_ERR_INVALID, words);
        }
    EXPECT(b[0] == 9);
}

static void a_pair_without_meaning_is_refused_by_name(void **state)
{
    (void)state;
    run_threads(1, refused_pairs, NULL);
}

/* All ranks give `first` but those from 1 up, who give `rest`. */
static double reduced(ct_group *group, ct_dtype dtype, ct_op op, double first, double rest)
{
    unsigned char value[BYTES];

    element_put(dtype, value, 0, ct_rank(group) == 0 ? first : rest);
    EXPECT_OK(ct_all_reduce(group, value, value, 1, dtype, op, NULL));
    return element_get(dtype, value, 0);
}

/* Three ranks.  Rounded at each step, 2048 + 1 + 1 stays 2048 in f16. */
static void roundings(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT(reduced(group, CT_F16, CT_SUM, 2048, 1) == 2050);
    EXPECT(reduced(group, CT_BF16, CT_SUM, 256, 1) == 258);
    EXPECT(reduced(group, CT_F8E4M3, CT_SUM, 16, 1) == 18);
    EXPECT(reduced(group, CT_F8E5M2, CT_SUM, 8, 1) == 10);
    EXPECT(reduced(group, CT_F16, CT_AVG, 65504, 65504) == 65504); /* the sum is beyond f16 */
    EXPECT(reduced(group, CT_F16, CT_SUM, 65504, 65504) == (double)INFINITY);
    EXPECT(isnan(reduced(group, CT_F8E4M3, CT_SUM, 448, 448)));
    EXPECT(reduced(group, CT_F8E5M2, CT_SUM, 57344, 57344) == (double)INFINITY);
    EXPECT(reduced(group, CT_F32, CT_SUM, 16777216, 1) == 16777216); /* as f32 does */
}

static void small_floats_are_rounded_once(void **state)
{
    (void)state;
    run_ranks(3, roundings, NULL);
}

/* Three ranks. */
static void averages(ct_group *group, void *arg)
{
    (void)arg;
    EXPECT(reduced(group, CT_I8, CT_AVG, 127, 127) == 127);
    EXPECT(reduced(group, CT_U8, CT_AVG, 255, 255) == 255);
    EXPECT(reduced(group, CT_I16, CT_AVG, -32768, -32768) == -32768);
    EXPECT(reduced(group, CT_U16, CT_AVG, 65535, 65535) == 65535);
    EXPECT(reduced(group, CT_I32, CT_AVG, -2147483648.0, -2147483648.0) == -2147483648.0);
    EXPECT(reduced(group, CT_U32, CT_AVG, 4294967295.0, 4294967295.0) == 4294967295.0);
    EXPECT(reduced(group, CT_I64, CT_AVG, -1, -2) == -1); /* -5 / 3, towards zero */
    EXPECT(reduced(group, CT_I8, CT_AVG, 1, 2) == 1);
    EXPECT(reduced(group, CT_I8, CT_SUM, 127, 1) == -127);             /* 129 wraps */
    EXPECT(reduced(group, CT_U16, CT_PRODUCT, 65535, 65535) == 65535); /* (-1)^3 */
    EXPECT(reduced(group, CT_F64, CT_AVG, 4, 1) == 2);
}

static void averages_do_not_wrap_and_go_towards_zero(void **state)
{
    (void)state;
    run_ranks(3, averages, NULL);
}

static void not_a_number(ct_group *group, void *arg)
{
    static const ct_dtype floats[] = { CT_F16, CT_BF16, CT_F32, CT_F64, CT_F8E4M3, CT_F8E5M2 };

    (void)arg;
    for (int f = 0; f < 6; f++) {
        EXPECT(isnan(reduced(group, floats[f], CT_MIN, NAN, 1)));
        EXPECT(isnan(reduced(group, floats[f], CT_MAX, NAN, 1)));
        EXPECT(isnan(reduced(group, floats[f], CT_MIN, 1, NAN)));
        EXPECT(isnan(reduced(group, floats[f], CT_MAX, 1, NAN)));
    }
}

static void not_a_number_wins_min_and_max(void **state)
{
    (void)state;
    run_ranks(2, not_a_number, NULL);
}

/* Three ranks give i, whose cube is -i; then each multiplies 1 by its own (r+1)i: 6i. */
static void complexes(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    const float turn[2] = { 0, (float)me + 1 };
    float a[2] = { 0, 1 }, one[2] = { 1, 0 };
    double b[2] = { 0, 1 };
    ct_op op = 0;

    (void)arg;
    EXPECT_OK(ct_all_reduce(group, a, a, 1, CT_C64, CT_PRODUCT, NULL));
    EXPECT_OK(ct_all_reduce(group, b, b, 1, CT_C128, CT_PRODUCT, NULL));
    EXPECT(a[0] == 0 && a[1] == -1 && b[0] == 0 && b[1] == -1);
    EXPECT_OK(ct_op_premul(turn, CT_C64, &op));
    EXPECT_OK(ct_all_reduce(group, one, a, 1, CT_C64, op, NULL));
    EXPECT(a[0] == 0 && a[1] == 6);
    EXPECT_OK(ct_op_free(op));
}

static void complex_numbers_multiply(void **state)
{
    (void)state;
    run_ranks(3, complexes, NULL);
}

/* Rank r gives 2 and multiplies by r+1: p(p+1). */
static void scaled(ct_group *group, void *arg)
{
    static const ct_dtype floats[] = { CT_F16, CT_BF16, CT_F32, CT_F64, CT_F8E4M3, CT_F8E5M2 };
    const int p = ct_size(group), me = ct_rank(group);
    unsigned char scalar[BYTES], send[5 * BYTES], recv[5 * BYTES];

    (void)arg;
    for (int f = 0; f < 6; f++) {
        const ct_dtype dtype = floats[f], other = floats[(f + 1) % 6];
        ct_work *work = NULL;
        ct_op op = 0;

        element_put(dtype, scalar, 0, me + 1);
        for (size_t i = 0; i < 5; i++)
            element_put(dtype, send, i, 2);
        EXPECT_OK(ct_op_premul(scalar, dtype, &op));
        EXPECT(op >= 256);
        EXPECT_OK(ct_all_reduce(group, send, recv, 5, dtype, op, NULL));
        EXPECT(element_get(dtype, recv, 4) == p * (p + 1) && element_get(dtype, send, 4) == 2);
        EXPECT_OK(ct_reduce_scatter(group, send, recv, 1, dtype, op, &work));
        EXPECT_ERROR(ct_all_reduce(group, send, recv, 1, other, op, NULL), CT_ERR_INVALID,
                     dtype_names[dtype]);
        EXPECT_OK(ct_op_free(op)); /* what is in flight has its own copy */
        EXPECT_OK(ct_wait(work));
        EXPECT(element_get(dtype, recv, 0) == p * (p + 1));
        EXPECT_STATUS(ct_all_reduce(group, send, recv, 1, dtype, op, NULL), CT_ERR_INVALID);
        EXPECT_STATUS(ct_op_free(op), CT_ERR_INVALID);
    }
}

/* Each of three ranks gives 1.25 * 1.25 = 1.5625, which is 1.5 in f8e5m2.  The sum, 4.5, lies
 * between 4 and 5, and 4 is even.  (Of 3 * 1.5625 = 4.6875 it would be 5.) */
static void rounded_products(ct_group *group, void *arg)
{
    const unsigned char factor = 0x3d;
    unsigned char got = 0;
    ct_op op = 0;

    (void)arg;
    EXPECT_OK(ct_op_premul(&factor, CT_F8E5M2, &op));
    EXPECT_OK(ct_all_reduce(group, &factor, &got, 1, CT_F8E5M2, op, NULL));
    EXPECT(got == 0x44);
    EXPECT_OK(ct_op_free(op));
}

static void premul_sum_rounds_each_product_and_then_the_sum(void **state)
{
    (void)state;
    run_ranks(3, rounded_products, NULL);
}

static void premul_sum_multiplies_by_each_ranks_own_scalar(void **state)
{
    ct_op op = 0;

    (void)state;
    run_ranks(1, scaled, NULL);
    run_ranks(3, scaled, NULL);
    EXPECT_STATUS(ct_op_premul(&op, CT_I32, &op), CT_ERR_INVALID);
    EXPECT_STATUS(ct_op_premul(NULL, CT_F32, &op), CT_ERR_INVALID);
    EXPECT_STATUS(ct_op_free(CT_SUM), CT_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_the_fold_in_rank_order),
        cmocka_unit_test(a_pair_without_meaning_is_refused_by_name),
        cmocka_unit_test(small_floats_are_rounded_once),
        cmocka_unit_test(averages_do_not_wrap_and_go_towards_zero),
        cmocka_unit_test(not_a_number_wins_min_and_max),
        cmocka_unit_test(complex_numbers_multiply),
        cmocka_unit_test(premul_sum_multiplies_by_each_ranks_own_scalar),
        cmocka_unit_test(premul_sum_rounds_each_product_and_then_the_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
