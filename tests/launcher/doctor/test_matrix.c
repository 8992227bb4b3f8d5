/* SPDX-License-Identifier: Apache-2.0 */
/* What ctctl doctor makes of what it measured between hosts. */
#include "launcher/doctor/matrix.c"
#include "tests/harness.h"

/* The other clock is 7000 ns ahead; one way takes 10 ns, the other 10 and what a queue adds. */
static void the_shortest_ping_says_the_skew(void **state)
{
    struct host_pair pair = { .level = LEVEL_OK };

    (void)state;
    pair_take(&pair, 0, 500, 1000, 8010);
    pair_take(&pair, 0, 20, 2000, 9010);
    pair_take(&pair, 0, 410, 3000, 10400);
    assert_true(pair.skew_ns == 7000);
    assert_true(pair.figure[TRIP_US] == 0.02);
}

/* 4000 bytes in 4 us are 1 GB/s. */
static void the_fastest_burst_says_the_bandwidth(void **state)
{
    struct host_pair pair = { .level = LEVEL_OK };

    (void)state;
    pair_take(&pair, 1000, 4000, 0, 0);
    pair_take(&pair, 4000, 4000, 0, 0);
    pair_take(&pair, 4000, 8000, 0, 0);
    assert_true(pair.figure[BYTES_PER_S] == 1e9);
    assert_true(pair.figure[TRIP_US] == 0);
}

static void a_pair_that_fails_after_all_is_not_measured(void **state)
{
    struct host_pair pair = { .figure = { 20, 1e9 } };

    (void)state;
    assert_true(pair_is_measured(&pair));
    pair.error = "the connection broke";
    assert_false(pair_is_measured(&pair));
    assert_false(pair_is_bad(&pair, BYTES_PER_S, (double[]){ 20, 1e12 }));
}

static void set(struct matrix *matrix, int from, int to, int64_t skew, double bytes)
{
    *matrix_pair(matrix, from, to) = (struct host_pair){ .figure = { 20, bytes }, .skew_ns = skew };
}

/* Host 0's clock is 500 ns behind that of host 1, which reaches host 0; host 2 does not. */
static void a_skew_is_that_of_the_pings_to_the_first_host(void **state)
{
    struct host_pair pairs[9] = { { .level = LEVEL_OK } };
    struct matrix matrix = { 3, pairs };

    (void)state;
    set(&matrix, 1, 0, -500, 1);
    set(&matrix, 1, 2, 7000, 1);
    assert_true(matrix_skew(&matrix, 0) == 0);
    assert_true(matrix_skew(&matrix, 1) == 500);
    assert_true(matrix_skew(&matrix, 2) == NO_SKEW);
}

static void a_clock_is_judged_in_both_directions(void **state)
{
    (void)state;
    assert_int_equal(clock_level(20000000), LEVEL_OK);
    assert_int_equal(clock_level(-200000000), LEVEL_WARN);
    assert_int_equal(clock_level(-6000000000), LEVEL_FAIL);
}

static void of_three_hosts_the_slow_one_is_found(void **state)
{
    struct host_pair pairs[9] = { { .level = LEVEL_OK } };
    struct matrix matrix = { 3, pairs };
    double usual[FIGURES];

    (void)state;
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            if (from != to)
                set(&matrix, from, to, 0, from == 2 || to == 2 ? 1e8 : 1e9);
    matrix_pair(&matrix, 0, 1)->figure[TRIP_US] = 900;
    usual[BYTES_PER_S] = matrix_usual(&matrix, BYTES_PER_S);
    usual[TRIP_US] = matrix_usual(&matrix, TRIP_US);
    assert_true(usual[BYTES_PER_S] == 1e9);
    assert_true(usual[TRIP_US] == 20);
    assert_true(pair_is_bad(matrix_pair(&matrix, 0, 2), BYTES_PER_S, usual));
    assert_false(pair_is_bad(matrix_pair(&matrix, 0, 1), BYTES_PER_S, usual));
    assert_true(host_is_slow(&matrix, 2, usual));
    assert_false(host_is_slow(&matrix, 0, usual));
    assert_true(pair_is_bad(matrix_pair(&matrix, 0, 1), TRIP_US, usual));
    assert_false(pair_is_bad(matrix_pair(&matrix, 1, 0), TRIP_US, usual));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_ping_says_the_skew),
        cmocka_unit_test(the_fastest_burst_says_the_bandwidth),
        cmocka_unit_test(a_pair_that_fails_after_all_is_not_measured),
        cmocka_unit_test(a_skew_is_that_of_the_pings_to_the_first_host),
        cmocka_unit_test(a_clock_is_judged_in_both_directions),
        cmocka_unit_test(of_three_hosts_the_slow_one_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
