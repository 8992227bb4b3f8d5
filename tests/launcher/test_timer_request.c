/* SPDX-License-Identifier: Apache-2.0 */
/* test_timer_request.c - lines of the watchdog's FIFO. */
#include "tests/harness.h"

#include "launcher/health/timer_request.c"

static struct timer_request got;

static int reads(const char *line)
{
    got = (struct timer_request){ 0 };
    return timer_request_read(&got, line) == 0;
}

/* As PyTorch's FileTimerClient writes it: json.dumps(), one line. */
static void pytorchs_requests_are_read(void **state)
{
    (void)state;
    assert_true(reads("{\"version\": 1, \"pid\": 1234, \"scope_id\": \"a/b.py#12\", "
                      "\"expiration_time\": 1763700000.25, \"signal\": 9}"));
    assert_int_equal(got.pid, 1234);
    assert_string_equal(got.scope, "a/b.py#12");
    assert_true(got.expires == 1763700000.25);
    assert_int_equal(got.signal, 9);
    assert_true(
        reads("{\"version\":1,\"pid\":7,\"scope_id\":\"\",\"expiration_time\":-1,\"signal\":0}"));
    assert_true(got.expires < 0);
}

static void order_and_other_members_do_not_matter(void **state)
{
    (void)state;
    assert_true(
        reads(" {\"signal\":15 , \"x\":null,\"y\":\"\\\"}\",\"z\":-1.5e+3,\"expiration_time\":1e9,"
              "\"scope_id\":\"s\\\\\\u00e9\",\"pid\":1.0,\"version\":1} \r"));
    assert_int_equal(got.signal, 15);
    assert_string_equal(got.scope, "s\\\\\\u00e9");
}

/* Each differs from a good line in one thing. */
static void everything_else_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "{}",
        "junk",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9,}",
        "{\"version\":2,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":0,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":-7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7.5,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":\"7\",\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"pid\":8,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":1,\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s,\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"\\x\",\"expiration_time\":1,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1e999,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":NaN,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":.5,\"signal\":9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":99}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":-9}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9,\"x\":{}}",
        "{\"version\":1,\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9,\"x\":tru}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (reads(lines[i]))
            fail_msg("was read: %s", lines[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorchs_requests_are_read),
        cmocka_unit_test(order_and_other_members_do_not_matter),
        cmocka_unit_test(everything_else_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
