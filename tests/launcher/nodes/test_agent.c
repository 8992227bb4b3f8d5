/* SPDX-License-Identifier: Apache-2.0 */
/* test_agent.c - what an agent asks for the coordinator's clock.  It has no connection: when it has
 * asked is all that is looked at. */
#include "tests/harness.h"

#include "launcher/nodes/agent.c"

static int readings;

static void on_clock(void *job, const struct clock_reading *reading)
{
    (void)job;
    assert_string_equal(reading->clock, "boot0/7");
    readings++;
}

static const struct nodes_hooks hooks = { .clock = on_clock };
static const struct options with_trace = { .trace = "run.json" };

/* The coordinator answers the last question; 1: another one followed at once. */
static int answer(struct agent *a)
{
    const int64_t asked = a->asked_ns;
    char text[64];

    snprintf(text, sizeof text, "%llx 5 boot0/7", (unsigned long long)asked);
    agent_take_beat(a, text);
    return a->asked_ns != asked;
}

static void an_agent_that_joins_asks_thirty_times_at_once(void **state)
{
    struct agent a = { .nodes = { .hooks = &hooks }, .options = &with_trace, .link = { .fd = -1 } };
    int asked = 1;

    (void)state;
    readings = 0;
    a.asks_at_once = CLOCK_ASKS;
    send_beat(&a);
    while (answer(&a))
        asked++;
    assert_int_equal(asked, 30);
    assert_int_equal(readings, 30);
}

/* The heartbeats that follow. */
static void later_answers_are_followed_by_no_question(void **state)
{
    struct agent a = { .nodes = { .hooks = &hooks }, .options = &with_trace, .link = { .fd = -1 } };

    (void)state;
    for (int i = 0; i < 100; i++) {
        send_beat(&a);
        assert_false(answer(&a));
    }
    assert_int_equal(a.asks_at_once, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_that_joins_asks_thirty_times_at_once),
        cmocka_unit_test(later_answers_are_followed_by_no_question),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
