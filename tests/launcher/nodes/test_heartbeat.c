/* SPDX-License-Identifier: Apache-2.0 */
/* test_heartbeat.c - how long the other end of a link may be silent. */
#include "tests/harness.h"

#include <event2/event.h>
#include <sys/time.h>

#include "launcher/nodes/heartbeat.h"
#include "runtime/util/clock.h"

static void nobody_speaks(void *arg)
{
    (void)arg;
}

static struct heartbeat heartbeat_of(struct event_base *base, int interval, int attempts)
{
    const struct rdzv_conf conf = { .keep_alive_interval = interval,
                                    .keep_alive_max_attempt = attempts,
                                    .keep_alive_given = 1 };
    struct heartbeat heartbeat;

    heartbeat_setup(&heartbeat, base, &conf, 1, nobody_speaks, NULL);
    heartbeat_start(&heartbeat);
    heartbeat_stop(&heartbeat);
    return heartbeat;
}

static void who_was_heard_within_the_patience_is_there(void **state)
{
    struct event_base *base = event_base_new();
    struct heartbeat heartbeat = heartbeat_of(base, 2, 3);
    const int64_t now = clock_ms();

    (void)state;
    heartbeat.woke = 0;
    assert_false(heartbeat_is_silent(&heartbeat, now));
    assert_true(heartbeat_is_silent(&heartbeat, now - 6001));
    event_base_free(base);
}

/* Another node may have fewer attempts, or a shorter interval: it must not wait for ours. */
static void the_beat_is_every_second_whatever_the_patience_is(void **state)
{
    struct event_base *base = event_base_new();
    struct heartbeat heartbeat;
    struct timeval next, now;

    (void)state;
    heartbeat = heartbeat_of(base, 3600, 3);
    heartbeat_start(&heartbeat);
    assert_true(event_pending(&heartbeat.tick, EV_TIMEOUT, &next));
    gettimeofday(&now, NULL);
    assert_true(next.tv_sec - now.tv_sec <= 1);
    heartbeat_stop(&heartbeat);
    event_base_free(base);
}

static void a_patience_of_years_does_not_turn_into_none(void **state)
{
    struct event_base *base = event_base_new();
    const struct heartbeat month = heartbeat_of(base, 1, 3000000),
                           years = heartbeat_of(base, 1000000, 2000);
    const struct heartbeat longest = heartbeat_of(base, INT32_MAX, 1);

    (void)state;
    assert_int_equal(month.patience_ms, INT64_C(3000000000));
    assert_int_equal(years.patience_ms, INT64_C(2000000000000));
    assert_int_equal(longest.patience_ms, INT64_C(2147483647000));
    assert_false(heartbeat_is_silent(&month, clock_ms()));
    assert_false(heartbeat_is_silent(&longest, clock_ms()));
    event_base_free(base);
}

/* The other end sends one message each second: with less patience than that it is always silent. */
static void the_least_patience_outlasts_a_late_beat(void **state)
{
    struct event_base *base = event_base_new();
    const struct heartbeat least = heartbeat_of(base, 1, 1), more = heartbeat_of(base, 2, 2);

    (void)state;
    assert_int_equal(least.patience_ms, 2000);
    assert_int_equal(more.patience_ms, 4000);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_was_heard_within_the_patience_is_there),
        cmocka_unit_test(the_beat_is_every_second_whatever_the_patience_is),
        cmocka_unit_test(the_least_patience_outlasts_a_late_beat),
        cmocka_unit_test(a_patience_of_years_does_not_turn_into_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
