/* SPDX-License-Identifier: Apache-2.0 */
/* test_slow_rank.c - of which rank it is said that it makes the others wait; from 7 on, say, are
 * the ranks of a node. */
#include "tests/harness.h"

#include "launcher/observers/straggler_observer.h"

#define SHARES(looks, ...)                                                                     \
    shares_of(                                                                                 \
        (const struct rank_share[]){ __VA_ARGS__ },                                            \
        (int)(sizeof((const struct rank_share[]){ __VA_ARGS__ }) / sizeof(struct rank_share)), \
        looks, 7)

#define SLOW(looks, ...) \
    slow_rank_among(&(struct collective_shares[]){ SHARES(looks, __VA_ARGS__) }[0], 1).rank

static void one_that_is_inside_for_much_less_of_the_time_is_slow(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 60, 50 }, { 5, 50 }, { 70, 50 }, { 62, 50 }), 8);
    assert_int_equal(SLOW(100, { 0, 50 }, { 100, 50 }), 7);
    assert_int_equal(SLOW(100, { 30, 50 }, { 10, 5 }), 8); /* the least of all that counts */
}

static void ranks_that_are_alike_are_not(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 60, 50 }, { 45, 50 }, { 70, 50 }), -1);
    assert_int_equal(SLOW(100, { 15, 50 }, { 1, 50 }), -1);            /* it hardly matters */
    assert_int_equal(SLOW(100, { 90, 50 }, { 40, 50 }), -1);           /* both wait much */
    assert_int_equal(SLOW(100, { 60, 50 }, { 5, 50 }, { 6, 50 }), -1); /* two are slow */
    assert_int_equal(SLOW(100, { 0, 0 }, { 0, 0 }), -1);               /* no rank makes calls */
    assert_int_equal(SLOW(100, { 3, 50 }), -1);                        /* one alone */
}

static void one_that_makes_no_calls_is_a_stall_and_not_slow(void **state)
{
    (void)state;
    assert_int_equal(SLOW(100, { 100, 0 }, { 0, 0 }), -1);
    assert_int_equal(SLOW(100, { 100, 4 }, { 0, 4 }), -1);
}

/* rank, least, next, most, calls */
static void ranks_of_several_nodes_are_compared(void **state)
{
    static const struct collective_shares
        one_each[] = { { 0, 70, 100, 0, 50 }, { 1, 5, 100, 0, 50 }, { 2, 65, 100, 0, 50 } },
        among_many[] = { { 0, 60, 62, 80, 50 }, { 5, 4, 61, 90, 50 } },
        whole_node[] = { { 0, 60, 62, 80, 50 }, { 5, 4, 5, 6, 50 } },
        never_in[] = { { 0, 99, 99, 99, 50 }, { 5, 0, 0, 0, 50 } };
    struct slow_rank slow;

    (void)state;
    slow = slow_rank_among(one_each, 3);
    assert_int_equal(slow.rank, 1);
    assert_int_equal(slow.share, 5);
    assert_int_equal(slow.others_least, 65);
    assert_int_equal(slow.others_most, 70);
    slow = slow_rank_among(among_many, 2);
    assert_int_equal(slow.rank, 5);
    assert_int_equal(slow.others_least, 60);
    assert_int_equal(slow.others_most, 90);
    slow = slow_rank_among(whole_node, 2);
    assert_int_equal(slow.rank, -1);
    assert_int_equal(slow.node, 1);
    assert_int_equal(slow.share, 6);
    assert_int_equal(slow.others_least, 60);
    assert_int_equal(slow.others_most, 80);
    slow = slow_rank_among(never_in, 2);
    assert_int_equal(slow.node, 1);
    assert_int_equal(slow.share, 0);
    assert_int_equal(slow_rank_among(one_each, 1).rank, -1);
    assert_int_equal(slow_rank_among(one_each, 0).rank, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_inside_for_much_less_of_the_time_is_slow),
        cmocka_unit_test(ranks_that_are_alike_are_not),
        cmocka_unit_test(one_that_makes_no_calls_is_a_stall_and_not_slow),
        cmocka_unit_test(ranks_of_several_nodes_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
