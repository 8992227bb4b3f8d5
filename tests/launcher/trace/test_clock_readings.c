/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock_readings.c - a node's clock by the coordinator's. */
#include "tests/harness.h"

#include "launcher/trace/clock_readings.h"

#define US 1000LL
#define MS 1000000LL
#define S 1000000000LL

static struct clock_readings readings;
static struct trace_clock line; /* of what was read */

/* The coordinator shows `shown` when the node shows `at`.  The answer takes as long as the
 * question.
 */
static void read_clock(const char *name, int64_t at, int64_t shown, int64_t each_way)
{
    const struct clock_reading reading = { at - each_way, shown, at + each_way, name };

    clock_readings_add(&readings, &reading);
}

/* 30 times at once from `from` s on, then each second.  The coordinator is `ahead`. */
static void read_on(int64_t from, int64_t until, int64_t ahead)
{
    for (int64_t i = 0; i < CLOCK_ASKS; i++)
        read_clock("c", from * S + i * 100 * US, from * S + i * 100 * US + ahead, 30 * US);
    for (int64_t at = from + 1; at <= until; at++)
        read_clock("c", at * S, at * S + ahead, 30 * US);
}

static void see(int64_t from, int64_t to)
{
    line = clock_readings_clock(&readings, from, to);
}

static void expect_near(int64_t value, int64_t wanted, int64_t most)
{
    if (value < wanted - most || value > wanted + most)
        fail_msg("%lld is not %lld +-%lld", (long long)value, (long long)wanted, (long long)most);
}

static void begin(void)
{
    readings = (struct clock_readings){ .count = 0 };
}

static void without_a_reading_the_clock_is_the_nodes_own(void **state)
{
    (void)state;
    begin();
    see(1 * S, 2 * S);
    assert_string_equal(line.name, "");
    assert_int_equal(line.error_ns, -1);
    assert_int_equal(trace_clock_map(&line, 12345), 12345);
}

static void the_coordinators_own_clock_is_exact(void **state)
{
    const struct clock_reading own = { .clock = "node 0 (h0)" };

    (void)state;
    begin();
    clock_readings_add(&readings, &own);
    see(1 * S, 7200 * S);
    assert_string_equal(line.name, "node 0 (h0)");
    assert_int_equal(line.error_ns, 0);
    assert_int_equal(trace_clock_map(&line, 7200 * S), 7200 * S);
}

/* In a second it may drift by 100 us at most. */
static void one_reading_is_wrong_by_half_of_its_round_trip_and_by_the_drift(void **state)
{
    (void)state;
    begin();
    read_clock("c", 5 * S, 100000 * S, 30 * US);
    see(5 * S, 5 * S);
    assert_int_equal(trace_clock_map(&line, 5 * S), 100000 * S);
    assert_int_equal(trace_clock_map(&line, 6 * S), 100001 * S);
    assert_int_equal(line.error_ns, 30 * US);
    see(4 * S, 5 * S);
    assert_int_equal(line.error_ns, 130 * US);
    see(5 * S, 6 * S);
    assert_int_equal(line.error_ns, 130 * US);
}

/* All of the 50 us went into the way there. */
static void the_truth_lies_within_the_error_if_one_way_takes_longer(void **state)
{
    const struct clock_reading reading = { 5 * S, 9 * S + 50 * US, 5 * S + 50 * US, "c" };

    (void)state;
    begin();
    clock_readings_add(&readings,
                       &reading); /* the clocks differ by 4 s, and the answer took no time */
    see(5 * S + 25 * US, 5 * S + 25 * US);
    expect_near(trace_clock_map(&line, 5 * S), 9 * S, line.error_ns);
    assert_int_equal(line.error_ns, 25 * US);
}

static void a_worse_reading_does_not_replace_a_better_one(void **state)
{
    (void)state;
    begin();
    read_clock("c", 5 * S, 9 * S, 400 * US);
    read_clock("c", 5 * S + 1 * MS, 9 * S + 1 * MS, 20 * US);
    read_clock("c", 5 * S + 2 * MS, 9 * S + 2 * MS + 300 * US, 300 * US);
    see(5 * S + 1 * MS, 5 * S + 1 * MS);
    assert_int_equal(trace_clock_map(&line, 5 * S), 9 * S);
    assert_int_equal(line.error_ns, 20 * US);
}

/* 50 ppm: in an hour the clocks come apart by 180 ms. */
static void a_clock_that_drifts_lies_on_a_line(void **state)
{
    (void)state;
    begin();
    for (int64_t at = 0; at <= 3600; at++)
        read_clock("c", at * S, 7 * S + at * S + at * 50 * US, at % 10 ? 2 * MS : 20 * US);
    see(0, 3600 * S);
    for (int64_t at = 0; at <= 3600; at += 100)
        expect_near(trace_clock_map(&line, at * S), 7 * S + at * S + at * 50 * US, 2);
    expect_near(line.error_ns, 20 * US, 2);
}

/* Through readings at 0 s and 10 s, each wrong by 20 us at most, a line is wrong by 60 us at 20 s.
 */
static void behind_its_readings_the_error_of_a_line_grows(void **state)
{
    (void)state;
    begin();
    read_clock("c", 0, 7 * S, 20 * US);
    read_clock("c", 10 * S, 17 * S, 20 * US);
    see(0, 20 * S);
    expect_near(line.error_ns, 60 * US, 1);
    see(0, 10 * S);
    expect_near(line.error_ns, 20 * US, 1);
}

/* Two readings within a millisecond tell nothing of the drift. */
static void a_line_through_readings_that_lie_too_close_is_not_taken(void **state)
{
    (void)state;
    begin();
    read_clock("c", 5 * S, 9 * S, 20 * US);
    read_clock("c", 5 * S + 1 * MS, 9 * S + 1 * MS + 15 * US, 20 * US);
    see(5 * S, 7 * S);
    assert_true(line.drift == 0);
    expect_near(line.error_ns, 220 * US, 1 * US);
}

static void another_coordinators_clock_begins_anew(void **state)
{
    (void)state;
    begin();
    read_clock("boot0/7", 5 * S, 9 * S, 20 * US);
    read_clock("boot1/7", 6 * S, 100 * S, 40 * US);
    see(6 * S, 6 * S);
    assert_string_equal(line.name, "boot1/7");
    assert_int_equal(trace_clock_map(&line, 6 * S), 100 * S);
    assert_int_equal(line.error_ns, 40 * US);
}

/* Its machine was paused for 10 s when its clock showed 60 s. */
static void a_round_behind_a_jump_has_no_reading_before_it(void **state)
{
    (void)state;
    begin();
    read_on(1, 60, 0);
    for (int64_t at = 61; at < 600; at++)
        read_clock("c", at * S, at * S + 10 * S, 30 * US);
    see(585 * S, 599 * S);
    expect_near(trace_clock_map(&line, 585 * S), 595 * S, line.error_ns);
    expect_near(line.error_ns, 30 * US, 2);
}

static void a_round_in_which_the_clock_jumped_is_wrong_by_all_that_it_jumped(void **state)
{
    (void)state;
    begin();
    read_on(1, 60, 0);
    for (int64_t at = 61; at < 600; at++)
        read_clock("c", at * S, at * S + 10 * S, 30 * US);
    see(1 * S, 599 * S);
    expect_near(trace_clock_map(&line, 59 * S), 59 * S, line.error_ns);
    expect_near(trace_clock_map(&line, 598 * S), 608 * S, line.error_ns);
    assert_in_range(line.error_ns, 10 * S, 10 * S + 100 * MS);
}

static void jumps_of_one_round_add_up(void **state)
{
    (void)state;
    begin();
    read_on(1, 60, 0);
    read_on(61, 70, 10 * S);
    read_on(71, 80, 30 * S);
    see(1 * S, 80 * S);
    expect_near(trace_clock_map(&line, 59 * S), 59 * S, line.error_ns);
    assert_in_range(line.error_ns, 30 * S, 30 * S + 100 * MS);
    see(72 * S, 80 * S);
    expect_near(line.error_ns, 30 * US, 2);
}

/* 500 ppm, as a clock has that is being set. */
static void a_drift_is_no_jump(void **state)
{
    (void)state;
    begin();
    for (int64_t at = 1; at <= 600; at++)
        read_clock("c", at * S, at * S + at * 500 * US, 30 * US);
    see(1 * S, 600 * S);
    expect_near(line.error_ns, 30 * US, 2);
    expect_near(trace_clock_map(&line, 300 * S), 300 * S + 150 * MS, 2);
}

static void an_answer_that_came_late_is_no_jump(void **state)
{
    const struct clock_reading late = { 61 * S, 61 * S, 63 * S, "c" };

    (void)state;
    begin();
    read_on(1, 60, 0);
    clock_readings_add(&readings, &late);
    read_on(64, 80, 0);
    see(1 * S, 80 * S);
    expect_near(line.error_ns, 30 * US, 2);
}

/* ctrun is killed after it has stored what a reading says and before it counts it. */
static void a_reading_that_is_not_counted_yet_changes_nothing(void **state)
{
    (void)state;
    begin();
    read_on(1, 2, 0);
    for (int64_t at = 3; at < 100; at++) {
        const struct clock_readings before = readings;
        struct trace_clock then;

        see(1 * S, at * S);
        then = line;
        read_clock("c", at * S, at * S + 1 * MS / 2, 0);
        readings.count = before.count;
        see(1 * S, at * S);
        assert_memory_equal(&line, &then, sizeof line);
        readings = before;
        read_clock("c", at * S, at * S, 30 * US);
    }
}

static void a_clock_without_a_counted_reading_has_no_name(void **state)
{
    (void)state;
    begin();
    read_clock("c", 5 * S, 9 * S, 20 * US);
    readings.count = 0;
    see(5 * S, 6 * S);
    assert_string_equal(line.name, "");
    assert_int_equal(line.error_ns, -1);
    assert_int_equal(trace_clock_map(&line, 12345), 12345);
}

/* What a broken coordinator may answer: no sum leaves 64 bits. */
static void readings_that_contradict_each_other_do_no_harm(void **state)
{
    const int64_t rounding = 128; /* of 10^18 as a double */

    (void)state;
    begin();
    read_clock("c", 1 * S, TRACE_MOST_NS, 1);
    read_clock("c", 1 * S + 1, 0, 1);
    read_clock("c", TRACE_MOST_NS - 1, TRACE_MOST_NS, 1);
    see(0, TRACE_MOST_NS);
    expect_near(trace_clock_map(&line, 1 * S), TRACE_MOST_NS, line.error_ns + rounding);
    expect_near(trace_clock_map(&line, 1 * S + 1), 0, line.error_ns + rounding);
    expect_near(trace_clock_map(&line, TRACE_MOST_NS), TRACE_MOST_NS + 1, line.error_ns + rounding);
    assert_in_range(line.error_ns, TRACE_MOST_NS - 1 * S, 2 * TRACE_MOST_NS);
    for (int64_t i = 0; i < 100; i++)
        read_clock("c", TRACE_MOST_NS - 1, i % 2 * TRACE_MOST_NS, 1);
    see(0, TRACE_MOST_NS);
    assert_in_range(line.error_ns, 5 * TRACE_MOST_NS, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_reading_the_clock_is_the_nodes_own),
        cmocka_unit_test(the_coordinators_own_clock_is_exact),
        cmocka_unit_test(one_reading_is_wrong_by_half_of_its_round_trip_and_by_the_drift),
        cmocka_unit_test(the_truth_lies_within_the_error_if_one_way_takes_longer),
        cmocka_unit_test(a_worse_reading_does_not_replace_a_better_one),
        cmocka_unit_test(a_clock_that_drifts_lies_on_a_line),
        cmocka_unit_test(behind_its_readings_the_error_of_a_line_grows),
        cmocka_unit_test(a_line_through_readings_that_lie_too_close_is_not_taken),
        cmocka_unit_test(another_coordinators_clock_begins_anew),
        cmocka_unit_test(a_round_behind_a_jump_has_no_reading_before_it),
        cmocka_unit_test(a_round_in_which_the_clock_jumped_is_wrong_by_all_that_it_jumped),
        cmocka_unit_test(jumps_of_one_round_add_up),
        cmocka_unit_test(a_drift_is_no_jump),
        cmocka_unit_test(an_answer_that_came_late_is_no_jump),
        cmocka_unit_test(a_reading_that_is_not_counted_yet_changes_nothing),
        cmocka_unit_test(a_clock_without_a_counted_reading_has_no_name),
        cmocka_unit_test(readings_that_contradict_each_other_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
