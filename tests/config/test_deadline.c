/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadline.c - a moment, however it was said. */
#include "tests/harness.h"

#include <stdlib.h>
#include <time.h>

#include "config/values/parse_deadline.h"

#define NOON INT64_C(1763726400) /* 2025-11-21 12:00:00 UTC */

static int64_t of(const char *words)
{
    int64_t at = -1;

    return deadline_of_words(words, NOON, &at) == 0 ? at : -1;
}

static void a_time_from_now(void **state)
{
    (void)state;
    assert_int_equal(of("90"), NOON + 90);
    assert_int_equal(of("90s"), NOON + 90);
    assert_int_equal(of("5m"), NOON + 300);
    assert_int_equal(of("2h"), NOON + 7200);
    assert_int_equal(of("1d"), NOON + 86400);
}

static void a_second_since_the_epoch(void **state)
{
    int64_t at = 0;

    (void)state;
    assert_int_equal(of("@1763740800"), 1763740800);
    assert_int_equal(of("1763740800"), 1763740800);
    assert_int_equal(deadline_of_epoch("1763740800", &at), 0);
    assert_int_equal(at, 1763740800);
}

static void the_next_time_by_the_clock(void **state)
{
    (void)state;
    setenv("TZ", "UTC0", 1);
    tzset();
    assert_int_equal(of("12:01"), NOON + 60);
    assert_int_equal(of("12:00"), NOON + 86400);
    assert_int_equal(of("06:30"), NOON + 66600);
    assert_int_equal(of("0:5"), NOON + 43500);
}

/* A job counts it in nanoseconds. */
static void the_last_moment_is_in_the_year_2255(void **state)
{
    static const char *const late[] = { "@9000000001", "9000000001", "@20000000000",
                                        "7236273601s", "2010077h",   "83754d" };
    (void)state;
    assert_int_equal(of("@9000000000"), INT64_C(9000000000));
    assert_int_equal(of("83753d"), NOON + INT64_C(83753) * 86400);
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        if (of(late[i]) != -1)
            fail_msg("'%s' was taken for a moment", late[i]);
}

static void what_is_no_moment(void **state)
{
    static const char *const wrong[] = { "",
                                         "0",
                                         "-5",
                                         "soon",
                                         "5 m",
                                         "5mm",
                                         "5w",
                                         "24:00",
                                         "12:",
                                         "12:60",
                                         "1:2:3",
                                         "@",
                                         "@5",
                                         "m",
                                         ":30",
                                         "1h30m",
                                         "99999999999999999999",
                                         "@-1763740800" };
    int64_t at;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (of(wrong[i]) != -1)
            fail_msg("'%s' was taken for a moment", wrong[i]);
    assert_int_equal(deadline_of_epoch("90", &at), -1); /* a duration, or 1970 */
    assert_int_equal(deadline_of_epoch("12:30", &at), -1);
}

static void a_job_that_ends_soon_has_half_of_its_time(void **state)
{
    (void)state;
    assert_int_equal(deadline_before(NOON + 3600, NOON), NOON + 3540);
    assert_int_equal(deadline_before(NOON + 120, NOON), NOON + 60);
    assert_int_equal(deadline_before(NOON + 58, NOON), NOON + 29);
    assert_int_equal(deadline_before(NOON + 1, NOON), NOON + 1);
    assert_int_equal(deadline_before(NOON - 9, NOON), NOON - 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_from_now),
        cmocka_unit_test(a_job_that_ends_soon_has_half_of_its_time),
        cmocka_unit_test(a_second_since_the_epoch),
        cmocka_unit_test(the_next_time_by_the_clock),
        cmocka_unit_test(the_last_moment_is_in_the_year_2255),
        cmocka_unit_test(what_is_no_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
