/* SPDX-License-Identifier: Apache-2.0 */
/* test_mistakes.c - a wrong argument is CT_ERR_INVALID with a sentence that names
 * it, changes nothing, and leaves the group in working order. */
#include "tests/harness.h"

static void wrong_arguments(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    int32_t a[32] = { 0 }, b[32] = { 1 };
    float f[2] = { 0 }, g[2] = { 0 };

    (void)arg;
    EXPECT_ERROR(ct_all_reduce(group, NULL, b, 4, CT_I32, CT_SUM, NULL), CT_ERR_INVALID, "null");
    EXPECT_ERROR(ct_broadcast(group, a, 4, CT_I32, p, NULL), CT_ERR_INVALID, "root");
    EXPECT_ERROR(ct_broadcast(group, a, 4, CT_I32, -1, NULL), CT_ERR_INVALID, "root");
    EXPECT_ERROR(ct_broadcast(group, a, 4, (ct_dtype)99, 0, NULL), CT_ERR_INVALID, "dtype|99");
    EXPECT_ERROR(ct_all_reduce(group, a, b, 4, CT_I32, 99, NULL), CT_ERR_INVALID, "op|99");
    EXPECT_ERROR(ct_all_reduce(group, f, g, 2, CT_F32, CT_BXOR, NULL), CT_ERR_INVALID, "bxor|f32");
    EXPECT_ERROR(ct_all_reduce(group, a, b, SIZE_MAX / 2, CT_I32, CT_SUM, NULL), CT_ERR_INVALID,
                 "memory");
    EXPECT_ERROR(ct_all_reduce(group, a, a + 1, 4, CT_I32, CT_SUM, NULL), CT_ERR_INVALID,
                 "overlap");
    EXPECT_ERROR(ct_send(group, a, 1, CT_I32, 0, -2), CT_ERR_INVALID, "tag");
    EXPECT_ERROR(ct_send(group, a, 1, CT_I32, p, 0), CT_ERR_INVALID, "rank");
    EXPECT(a[0] == 0 && b[0] == 1);
    EXPECT_OK(ct_all_reduce(group, NULL, NULL, 0, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_wrong_argument_is_a_sentence_and_breaks_nothing(void **state)
{
    (void)state;
    run_ranks(1, wrong_arguments, NULL);
    run_ranks(3, wrong_arguments, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_argument_is_a_sentence_and_breaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
