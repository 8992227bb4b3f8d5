/* SPDX-License-Identifier: Apache-2.0 */
/* test_stop.c - ranks count their steps while somebody closes their words. */
#include "tests/harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/monitor/stop_step.h"

#define RANKS 4

static struct control_rank pages[RANKS];

/* The last step that it passed. */
static void *take_steps(void *arg)
{
    struct control_rank *own = arg;
    uint64_t step = 1;

    while (stop_pass(own, step))
        step++;
    return (void *)(uintptr_t)(step - 1);
}

static void a_closed_word_says_how_far_its_rank_came(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        pthread_t threads[RANKS];
        uint64_t closed[RANKS];

        for (int r = 0; r < RANKS; r++) {
            atomic_store(&pages[r].steps, 0);
            assert_int_equal(pthread_create(&threads[r], NULL, take_steps, &pages[r]), 0);
        }
        for (int r = 0; r < RANKS; r++) /* it is on its way */
            while (stop_steps(&pages[r]) == 0)
                sched_yield();
        for (int r = 0; r < RANKS; r++)
            closed[r] = stop_close(&pages[r]);
        for (int r = 0; r < RANKS; r++) {
            void *passed;

            pthread_join(threads[r], &passed);
            assert_int_equal((uintptr_t)passed, closed[r]);
            assert_int_equal(stop_steps(&pages[r]), closed[r]);
            assert_int_equal(stop_close(&pages[r]), closed[r]); /* twice is fine */
        }
    }
}

static void who_is_behind_catches_up_and_stays_closed(void **state)
{
    struct control_rank page = { .rank = 0 };

    (void)state;
    assert_int_equal(stop_pass(&page, 1), 1);
    stop_catch_up(&page, 5);
    assert_int_equal(stop_steps(&page), 5);
    stop_catch_up(&page, 2);
    assert_int_equal(stop_close(&page), 5);
    stop_catch_up(&page, 7);
    assert_int_equal(stop_pass(&page, 8), 0);
    assert_int_equal(stop_steps(&page), 7);
}

static void a_step_is_passed_once(void **state)
{
    struct control_rank page = { .rank = 0 };

    (void)state;
    assert_int_equal(stop_pass(&page, 1), 1);
    assert_int_equal(stop_pass(&page, 1), 0);
    assert_int_equal(stop_pass(&page, 2), 1);
    assert_int_equal(stop_steps(&page), 2);
}

/* As a data loader's: it is no rank, and nothing in it asks whether to stop. */
static void forks(ct_group *unused, void *arg)
{
    int status = 0;
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
        cmocka_unit_test(a_closed_word_says_how_far_its_rank_came),
        cmocka_unit_test(a_step_is_passed_once),
        cmocka_unit_test(who_is_behind_catches_up_and_stays_closed),
        cmocka_unit_test(a_child_of_a_rank_that_listens_dies_of_sigterm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
