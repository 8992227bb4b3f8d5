/* SPDX-License-Identifier: Apache-2.0 */
/* test_slow_rank.c - of which rank it is said that it makes the others wait. */
#include "tests/harness.h"

#include "launcher/health/slow_rank_watch.h"

#define SLOW(looks, ...)                                                                       \
    slow_rank_of(                                                                              \
        (const struct rank_share[]){ __VA_ARGS__ },                                            \
        (int)(sizeof((const struct rank_share[]){ __VA_ARGS__ }) / sizeof(struct rank_share)), \
        looks)

static void one_that_is_inside_for_much_less_of_the_time_is_slow(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 60, 50, 0 }, { 5, 50, 0 }, { 70, 50, 0 }, { 62, 50, 0 }), 1);
    assert_int_equal(SLOW(100, { 0, 50, 0 }, { 100, 50, 0 }), 0);
    assert_int_equal(SLOW(100, { 30, 50, 0 }, { 10, 5, 0 }), 1); /* the least of all that counts */
}

static void ranks_that_are_alike_are_not(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 60, 50, 0 }, { 45, 50, 0 }, { 70, 50, 0 }), -1);
    assert_int_equal(SLOW(100, { 15, 50, 0 }, { 1, 50, 0 }), -1);  /* it hardly matters */
    assert_int_equal(SLOW(100, { 90, 50, 0 }, { 40, 50, 0 }), -1); /* both wait much */
    assert_int_equal(SLOW(100, { 60, 50, 0 }, { 5, 50, 0 }, { 6, 50, 0 }), -1); /* two are slow */
    assert_int_equal(SLOW(100, { 0, 0, 0 }, { 0, 0, 0 }), -1); /* no rank makes calls */
    assert_int_equal(SLOW(100, { 3, 50, 0 }), -1);             /* one alone */
}

static void one_that_makes_no_calls_is_a_stall_and_not_slow(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 100, 0, 0 }, { 0, 0, 0 }), -1);
    assert_int_equal(SLOW(100, { 100, 4, 0 }, { 0, 4, 0 }), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_inside_for_much_less_of_the_time_is_slow),
        cmocka_unit_test(ranks_that_are_alike_are_not),
        cmocka_unit_test(one_that_makes_no_calls_is_a_stall_and_not_slow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
