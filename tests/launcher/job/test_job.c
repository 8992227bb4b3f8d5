/* SPDX-License-Identifier: Apache-2.0 */
/* test_job.c - what a job does with messages of other nodes. */
#include "tests/harness.h"

#include <event2/event.h>

#include "launcher/job/job_internal.h"

static struct job job;
static struct plan next_round;

/* ---- Instead of launcher/report/first_failure.c ----------------------------------- */

/* When ctrun looks for dead workers it finds the last one of the round, and the next round begins,
 * if the test wants it. */
int first_failure_collect(struct first_failure *failures)
{
    (void)failures;
    if (next_round.round > job.plan.round) {
        job.state = ENDED;
        job_nodes_hooks.round(&job, &next_round);
    }
    return 0;
}

int first_failure_await_killed(struct first_failure *failures, int count)
{
    (void)failures;
    return count;
}

int first_failure_to_front(struct first_failure *failures, int count,
                           const struct run_folder *files)
{
    (void)failures;
    (void)files;
    return count;
}

int worker_was_killed(const struct worker *worker)
{
    (void)worker;
    return 0;
}

int signal_is_unprovoked(int number)
{
    return number == SIGKILL;
}

int64_t worker_noted_ns(const struct worker *worker, const struct run_folder *files)
{
    (void)worker;
    (void)files;
    return 0;
}

/* ---- Instead of launcher/job/job_round.c ------------------------------------------ */

void job_start_round(struct job *of)
{
    (void)of;
}

void job_end_round(struct job *of)
{
    (void)of;
}

void job_finish(struct job *of)
{
    (void)of;
}

struct failed_round job_failed_round(struct job *of, struct worker *first_failed)
{
    return (struct failed_round){ of->workers, of->size, first_failed, NULL, NULL, NULL, 0, NULL };
}

/* ---- Tests ------------------------------------------------------------------------ */

static void begin(struct event_base *base, const struct options *options)
{
    job = (struct job){ .options = options,
                        .state = RUNNING,
                        .plan = { .round = 3, .generation = "g" },
                        .events.fd = -1 };
    evtimer_assign(&job.grace, base, NULL, NULL);
    evtimer_assign(&job.spare, base, NULL, NULL);
    evtimer_assign(&job.stall.timer, base, NULL, NULL);
}

static void a_node_that_stops_a_round_stops_it(void **state)
{
    const struct options options = { .shutdown_timeout = 30 };
    struct event_base *base = event_base_new();

    (void)state;
    begin(base, &options);
    next_round = job.plan;
    job_nodes_hooks.stop(&job, 0, -1, "node 1: rank 4 failed");
    assert_int_equal(job.state, STOPPING);
    assert_string_equal(job.elsewhere, "node 1: rank 4 failed");
    event_del(&job.grace);
    event_base_free(base);
}

static void a_stop_of_the_round_before_does_not_stop_the_next_one(void **state)
{
    const struct options options = { .shutdown_timeout = 30 };
    struct event_base *base = event_base_new();

    (void)state;
    begin(base, &options);
    next_round = (struct plan){ .round = 4, .generation = "h" };
    job_nodes_hooks.stop(&job, 0, -1, "node hosta (pid 7) has come");
    assert_int_equal(job.plan.round, 4);
    assert_int_equal(job.state, RUNNING);
    assert_string_equal(job.elsewhere, "");
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_stops_a_round_stops_it),
        cmocka_unit_test(a_stop_of_the_round_before_does_not_stop_the_next_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
