/* SPDX-License-Identifier: Apache-2.0 */
/* test_console.c - a console whose reader is slow. */
#include "tests/harness.h"

#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/stdio/console.h"

#define MUCH (3 << 20)

static void count(void *arg)
{
    ++*(int *)arg;
}

/* Streams that wait for a full console would wait for ever. */
static void room_that_another_flush_made_is_said_too(void **state)
{
    struct event_base *base = event_base_new();
    struct console console;
    static char text[MUCH];
    int ends[2], relieved = 0;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    console_open(&console, base, ends[1], count, &relieved);
    console_add(&console, text, sizeof text);
    console_flush(&console);
    assert_true(console_full(&console));
    while (console_full(&console)) { /* as the output of another worker does */
        assert_true(read(ends[0], text, 4096) > 0);
        console_flush(&console);
    }
    assert_true(read(ends[0], text, 8192) > 0);
    event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    assert_true(relieved > 0);
    console.queue.used = console.from = 0;
    console_close(&console);
    close(ends[0]);
    close(ends[1]);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_that_another_flush_made_is_said_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
