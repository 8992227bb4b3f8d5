/* SPDX-License-Identifier: Apache-2.0 */
/* What ctctl doctor makes of what it measured between hosts. */
#include "launcher/doctor/matrix.c"
#include "tests/harness.h"

/* The other clock is 7000 ahead; one way takes 10, the other 10 and what a queue adds. */
static void the_shortest_trip_says_the_skew(void **state)
{
    const struct ping pings[] = { { 1000, 8010, 1500 },
                                  { 2000, 9010, 2020 },
                                  { 3000, 10400, 3410 } };
    int64_t trip;

    (void)state;
    assert_int_equal(skew_of_pings(pings, 3, &trip), 7000);
    assert_int_equal(trip, 20);
}

/* The clock was set back between the ping and its answer: that one says nothing. */
static void a_clock_that_is_set_meanwhile_is_passed_over(void **state)
{
    const struct ping pings[] = { { 1000, 500, 200 }, { 2000, 1010, 2020 } };
    int64_t trip;

    (void)state;
    assert_int_equal(skew_of_pings(pings, 2, &trip), -1000);
    assert_int_equal(trip, 20);
    assert_int_equal(skew_of_pings(pings, 1, &trip), 0);
    assert_int_equal(trip, -1);
}

static void set(struct matrix *matrix, int from, int to, int64_t trip, int64_t skew, double bytes)
{
    *matrix_pair(matrix, from, to) =
        (struct host_pair){ .measured = 1, .trip_ns = trip, .skew_ns = skew, .bytes_per_s = bytes };
}

/* 0 and 2 do not reach each other, 3 reaches none; from 1 to 2 the way is shorter than from 2 to 1.
 */
static void skews_go_through_other_hosts(void **state)
{
    struct matrix matrix;
    int64_t skews[4];

    (void)state;
    assert_int_equal(matrix_open(&matrix, 4), 0);
    set(&matrix, 0, 1, 30, 500, 1);
    set(&matrix, 1, 2, 40, -2000, 1);
    set(&matrix, 2, 1, 400, 2100, 1);
    assert_int_equal(matrix_skews(&matrix, skews), 0);
    assert_int_equal(skews[0], 0);
    assert_int_equal(skews[1], 500);
    assert_int_equal(skews[2], -1500);
    assert_true(skews[3] == NO_SKEW);
    matrix_close(&matrix);
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
    struct matrix matrix;
    double usual;

    (void)state;
    assert_int_equal(matrix_open(&matrix, 3), 0);
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            if (from != to)
                set(&matrix, from, to, 20000, 0, from == 2 || to == 2 ? 1e8 : 1e9);
    usual = usual_bandwidth(&matrix);
    assert_true(usual == 1e9);
    assert_true(pair_is_slow(matrix_pair(&matrix, 0, 2), usual));
    assert_false(pair_is_slow(matrix_pair(&matrix, 0, 1), usual));
    assert_true(host_is_slow(&matrix, 2, usual));
    assert_false(host_is_slow(&matrix, 0, usual));
    matrix_pair(&matrix, 0, 1)->trip_ns = 900000;
    assert_true(pair_is_far(matrix_pair(&matrix, 0, 1), usual_trip_us(&matrix)));
    assert_false(pair_is_far(matrix_pair(&matrix, 1, 0), usual_trip_us(&matrix)));
    matrix_close(&matrix);
}

static void in_a_tournament_each_two_hosts_meet_once(void **state)
{
    (void)state;
    for (int hosts = 1; hosts <= 9; hosts++) {
        int met[9][9] = { { 0 } }, a, b;

        for (int round = 0; round < tournament_rounds(hosts); round++) {
            int busy[9] = { 0 };

            for (int match = 0; match < (hosts + 1) / 2; match++)
                if (tournament_match(hosts, round, match, &a, &b)) {
                    assert_false(busy[a]++);
                    assert_false(busy[b]++);
                    met[a][b]++;
                    met[b][a]++;
                }
        }
        for (a = 0; a < hosts; a++)
            for (b = 0; b < hosts; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_trip_says_the_skew),
        cmocka_unit_test(a_clock_that_is_set_meanwhile_is_passed_over),
        cmocka_unit_test(skews_go_through_other_hosts),
        cmocka_unit_test(a_clock_is_judged_in_both_directions),
        cmocka_unit_test(of_three_hosts_the_slow_one_is_found),
        cmocka_unit_test(in_a_tournament_each_two_hosts_meet_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
