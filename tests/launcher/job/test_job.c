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
                        .plan = { .round = 3, .generation = "g" } };
    evtimer_assign(&job.grace, base, NULL, NULL);
    evtimer_assign(&job.spare, base, NULL, NULL);
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
    assert_string_equal(job.round.elsewhere, "node 1: rank 4 failed");
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
    assert_string_equal(job.round.elsewhere, "");
    event_base_free(base);
}

/* ---- The order at a worker's death --------------------------------------------------- */

static char told[64];

static void nodes_are_told(struct nodes *nodes, const struct control_death *death)
{
    (void)nodes;
    assert_int_equal(death->rank, 0);
    assert_int_equal(atomic_load(&job.control.head->deaths), 1);
    strcat(told, "nodes ");
}

static void first_is_told(void *state, struct worker *worker)
{
    assert_int_equal(*(int *)state, 1);
    assert_ptr_equal(worker, job.workers);
    strcat(told, "first ");
}

static void second_is_told(void *state, struct worker *worker)
{
    assert_int_equal(*(int *)state, 2);
    assert_ptr_equal(worker, job.workers);
    strcat(told, "second ");
}

static void a_death_is_told_to_the_ranks_here_then_to_the_nodes_then_to_observers(void **state)
{
    static const struct nodes_ops ops = { .died = nodes_are_told };
    static const struct job_observer first = { .worker_died = first_is_told }, silent = { 0 },
                                     second = { .worker_died = second_is_told };
    const struct job_observer *const table[] = { &first, &silent, &second, NULL };
    const struct plan plan = { .world = 2, .nodes = 2, .generation = "g" };
    struct worker worker = { .how = CLD_KILLED, .code = SIGKILL };
    struct nodes nodes = { .ops = &ops };
    int states[] = { 1, 0, 2 };

    (void)state;
    job = (struct job){ .control = { .memory = -1, .event = -1 },
                        .workers = &worker,
                        .size = 1,
                        .nodes = &nodes,
                        .watch = { .rows = table,
                                   .states = (void *[]){ &states[0], &states[1], &states[2] },
                                   .count = 3 } };
    assert_int_equal(control_host_open(&job.control, &plan, 1, "job", "program"), 0);
    root_graph_begin(&job.round.graph, 2);
    job_worker_died(&job, &worker);
    assert_string_equal(told, "nodes first second ");
    root_graph_free(&job.round.graph);
    control_host_close(&job.control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_stops_a_round_stops_it),
        cmocka_unit_test(a_stop_of_the_round_before_does_not_stop_the_next_one),
        cmocka_unit_test(a_death_is_told_to_the_ranks_here_then_to_the_nodes_then_to_observers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
