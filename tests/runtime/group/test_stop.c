/* SPDX-License-Identifier: Apache-2.0 */
/* test_stop.c - ct_should_stop(): which calls vote, and that all ranks stop at the same one. */
#include "tests/harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/group/stop_schedule.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

/* ---- Which calls vote ------------------------------------------------------ */

static void a_rank_proposes_to_spend_half_a_percent_of_its_time_in_votes(void **state)
{
    (void)state;
    assert_int_equal(stop_interval(5 * US, MS, 100), 1);
    assert_int_equal(stop_interval(10 * US, MS, 100), 2);
    assert_int_equal(stop_interval(12 * US, MS, 100), 3);
    assert_int_equal(stop_interval(1, SECOND, 100), 1);
}

static void an_interval_is_at_most_twice_the_last_and_a_hundred_calls(void **state)
{
    (void)state;
    assert_int_equal(stop_interval(MS, US, 1), 2);
    assert_int_equal(stop_interval(MS, US, 50), 100);
    assert_int_equal(stop_interval(MS, US, 64), 100);
    assert_int_equal(stop_interval(MS, 0, 100), 100);
}

/* However long a vote took, be it that it waited for ranks which were late. */
static void calls_without_a_vote_take_at_most_a_second(void **state)
{
    (void)state;
    assert_int_equal(stop_interval(SECOND, 300 * MS, 100), 3);
    assert_int_equal(stop_interval(3600 * SECOND, 2 * SECOND, 100), 1);
}

struct run {
    struct stop_schedule schedule;
    int64_t now;
};

/* So many calls, each `step` behind the one before; how many voted. */
static int votes_of(struct run *run, int calls, int64_t step, int64_t vote)
{
    int votes = 0;

    for (int i = 0; i < calls; i++) {
        run->now += step;
        if (!stop_schedule_skip(&run->schedule)) {
            const int interval = stop_schedule_begin(&run->schedule, run->now);

            run->now += vote;
            stop_schedule_end(&run->schedule, run->now, interval);
            votes++;
        }
    }
    return votes;
}

/* Calls 1, 2, 3, 5, 9 and so on to 129, then each hundredth. */
static void short_steps_have_few_votes(void **state)
{
    struct run run = { .now = SECOND };

    (void)state;
    assert_int_equal(votes_of(&run, 129, 10 * US, 20 * US), 9);
    assert_int_equal(votes_of(&run, 99, 10 * US, 20 * US), 0);
    assert_int_equal(votes_of(&run, 10000, 10 * US, 20 * US), 100);
}

static void long_steps_vote_each_time(void **state)
{
    struct run run = { .now = SECOND };

    (void)state;
    assert_int_equal(votes_of(&run, 50, 10 * MS, 20 * US), 50);
}

static void steps_that_grow_vote_each_time_from_the_next_vote_on(void **state)
{
    struct run run = { .now = SECOND };

    (void)state;
    votes_of(&run, 229, 10 * US, 20 * US); /* the last one votes */
    assert_int_equal(votes_of(&run, 99, 10 * MS, 20 * US), 0);
    assert_int_equal(votes_of(&run, 50, 10 * MS, 20 * US), 50);
}

/* The first one is not counted; of a later one, its share in the average. */
static void one_vote_that_waits_changes_little(void **state)
{
    struct run run = { .now = SECOND };

    (void)state;
    votes_of(&run, 1, MS, 30 * MS);
    assert_int_equal(votes_of(&run, 50, MS, 5 * US), 50);
    votes_of(&run, 1, MS, 45 * US);
    assert_int_equal(run.schedule.vote_ns, 10 * US);
    votes_of(&run, 1, MS, 10 * US);
    assert_int_equal(run.schedule.interval, 2);
}

/* The ranks agree on the smallest of their proposals: this one's next is at most twice that. */
static void what_the_ranks_agreed_on_counts(void **state)
{
    struct run run = { .now = SECOND };

    (void)state;
    votes_of(&run, 129, 10 * US, 20 * US);
    run.schedule.next = run.schedule.calls + 1;
    stop_schedule_begin(&run.schedule, run.now);
    stop_schedule_end(&run.schedule, run.now += 20 * US, 3);
    assert_int_equal(votes_of(&run, 2, 10 * US, 20 * US), 0);
    assert_int_equal(votes_of(&run, 1, 10 * US, 20 * US), 1);
    assert_int_equal(run.schedule.interval, 6);
}

/* ---- The ranks ------------------------------------------------------------- */

enum { RANKS = 4, TOLD_AT = 20, GROWN_AT = 400 };

struct program {
    void (*step)(int call);
    int told_at; /* in this step rank 1 gets SIGTERM */
};

/* From the signal to the next vote it may take as many calls as an interval has. */
static void stops_at_one_call(const struct program *program)
{
    int call = 1, answer, first, last;

    while ((answer = ct_should_stop(CT_WORLD)) == 0) {
        call++;
        program->step(call);
        if (call == program->told_at && program_rank() == 1)
            raise(SIGTERM);
    }
    EXPECT(answer == 1);
    EXPECT(call >= program->told_at && call < program->told_at + STOP_INTERVAL_MOST);
    EXPECT_OK(ct_all_reduce(CT_WORLD, &call, &first, 1, CT_I32, CT_MIN, NULL));
    EXPECT_OK(ct_all_reduce(CT_WORLD, &call, &last, 1, CT_I32, CT_MAX, NULL));
    EXPECT(first == last);
    EXPECT(ct_should_stop(CT_WORLD) == 1);
}

static void takes_its_own_time(int call)
{
    usleep((unsigned)((call * 7 + program_rank() * 13) % 11 * 200));
}

static void takes_none(int call)
{
    (void)call;
}

static void grows_on_rank_2(int call)
{
    if (call >= GROWN_AT && program_rank() == 2)
        nap(2);
}

static void ranks_stop(ct_group *unused, void *program)
{
    (void)unused;
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        return;
    stops_at_one_call(program);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void sigterm_to_one_rank_stops_all_at_one_call(void **state)
{
    struct program program = { takes_its_own_time, TOLD_AT };

    (void)state;
    run_programs(RANKS, ranks_stop, &program);
}

static void they_do_where_most_calls_have_no_vote(void **state)
{
    struct program program = { takes_none, TOLD_AT };

    (void)state;
    run_programs(RANKS, ranks_stop, &program);
}

static void they_do_when_the_steps_of_one_have_grown(void **state)
{
    struct program program = { grows_on_rank_2, GROWN_AT + TOLD_AT };

    (void)state;
    run_programs(RANKS, ranks_stop, &program);
}

/* Whether or not it would have voted. */
static void is_refused(ct_group *unused, void *arg)
{
    (void)unused;
    (void)arg;
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        return;
    for (int i = 0; i < 1000; i++)
        EXPECT(ct_should_stop(CT_WORLD) == 0);
    EXPECT_OK(ct_coalesce_begin(CT_WORLD));
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS((ct_status)ct_should_stop(CT_WORLD), CT_ERR_INVALID);
    EXPECT_OK(ct_coalesce_end(CT_WORLD, NULL));
    EXPECT(ct_should_stop(CT_WORLD) == 0);
    EXPECT_OK(ct_abort(CT_WORLD));
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS((ct_status)ct_should_stop(CT_WORLD), CT_ERR_ABORTED);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void each_call_fails_where_calls_fail(void **state)
{
    (void)state;
    run_programs(1, is_refused, NULL);
}

/* As a data loader's: it is no rank, and nothing in it asks whether to stop. */
static void forks(ct_group *unused, void *arg)
{
    int status = 0, calls = 0;
    pid_t child;

    (void)unused;
    (void)arg;
    if (!EXPECT_OK(ct_init_process_group(NULL)))
        return;
    EXPECT(ct_should_stop(CT_WORLD) == 0);
    if ((child = fork()) == 0) {
        alarm(20);
        for (;;)
            pause();
    }
    EXPECT(kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    EXPECT(ct_should_stop(CT_WORLD) == 0);
    raise(SIGTERM);
    while (ct_should_stop(CT_WORLD) == 0 && ++calls < STOP_INTERVAL_MOST)
        ;
    EXPECT(ct_should_stop(CT_WORLD) == 1);
    EXPECT_OK(ct_destroy_process_group(CT_WORLD));
}

static void a_child_of_a_rank_that_listens_dies_of_sigterm(void **state)
{
    (void)state;
    run_programs(1, forks, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_proposes_to_spend_half_a_percent_of_its_time_in_votes),
        cmocka_unit_test(an_interval_is_at_most_twice_the_last_and_a_hundred_calls),
        cmocka_unit_test(calls_without_a_vote_take_at_most_a_second),
        cmocka_unit_test(short_steps_have_few_votes),
        cmocka_unit_test(long_steps_vote_each_time),
        cmocka_unit_test(steps_that_grow_vote_each_time_from_the_next_vote_on),
        cmocka_unit_test(one_vote_that_waits_changes_little),
        cmocka_unit_test(what_the_ranks_agreed_on_counts),
        cmocka_unit_test(sigterm_to_one_rank_stops_all_at_one_call),
        cmocka_unit_test(they_do_where_most_calls_have_no_vote),
        cmocka_unit_test(they_do_when_the_steps_of_one_have_grown),
        cmocka_unit_test(each_call_fails_where_calls_fail),
        cmocka_unit_test(a_child_of_a_rank_that_listens_dies_of_sigterm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
