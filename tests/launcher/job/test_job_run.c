/* SPDX-License-Identifier: Apache-2.0 */
/* test_job_run.c - a job that can't even begin. */
#include "tests/harness.h"

#include <string.h>

#include "launcher/job/job.h"

static char told[128];

static int opens(void *state, struct job *job)
{
    (void)job;
    *(int *)state = 7;
    strcat(told, "opens ");
    return 0;
}

static int refuses(void *state, struct job *job)
{
    (void)job;
    *(int *)state = 8;
    strcat(told, "refuses ");
    return 3;
}

static void closes(void *state, const struct job_end *end)
{
    assert_int_equal(end->code, 3);
    assert_null(end->round.first_failed);
    strcat(told, *(int *)state == 7 ? "first-closes " : "second-closes ");
}

static void an_observer_that_refuses_ends_the_job_and_later_ones_are_not_closed(void **state)
{
    static const struct job_observer first = { sizeof(int), .open = opens, .close = closes },
                                     second = { sizeof(int), .open = refuses, .close = closes },
                                     third = { sizeof(int), .open = opens, .close = closes };
    const struct job_observer *const table[] = { &first, &second, &third, NULL };
    char *words[] = { "ctrun", "--standalone", "/bin/true", NULL };
    const struct meeting meeting = { .kind = MEET_ALONE };
    struct options options;
    char error[200];

    (void)state;
    assert_int_equal(options_read(&options, words, error, sizeof error), OPTIONS_RUN);
    assert_int_equal(job_run(&options, &meeting, 1, table), 3);
    assert_string_equal(told, "opens refuses first-closes second-closes ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observer_that_refuses_ends_the_job_and_later_ones_are_not_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
