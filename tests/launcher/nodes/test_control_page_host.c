/* SPDX-License-Identifier: Apache-2.0 */
/* test_control_page_host.c - which deaths ctrun tells its workers, and how often. */
#include "tests/harness.h"

#include <signal.h>
#include <string.h>

#include "launcher/nodes/control_page_host.h"
#include "launcher/workers/worker.h"

/* By comparing each with each these would be 20,000,000,000 comparisons. */
enum { WORLD = 200000, HERE = 4, LOST = WORLD - HERE };

static struct control_host control = { .memory = -1, .event = -1 };

static int open_page(void **state)
{
    const struct plan plan = { .world = WORLD, .nodes = 2, .generation = "g" };

    (void)state;
    return control_host_open(&control, &plan, HERE, "job", "program");
}

static int close_page(void **state)
{
    (void)state;
    control_host_close(&control);
    return 0;
}

static struct control_death lost_from(int rank)
{
    struct control_death death = { .rank = rank, .how = CONTROL_HOST_LOST };

    strcpy(death.host, "hosta");
    return death;
}

static void a_lost_node_is_one_notice_for_all_its_workers(void **state)
{
    const struct control_death death = lost_from(HERE);

    (void)state;
    control_host_died(&control, &death, LOST);
    assert_int_equal(atomic_load(&control.head->deaths), LOST);
    assert_int_equal(atomic_load(&control.head->notices), 1);
    for (int i = 0; i < LOST; i++) {
        assert_int_equal(control_death_at(control.head, i)->rank, HERE + i);
        assert_string_equal(control_death_at(control.head, i)->host, "hosta");
    }
}

/* Its own end came first, then its node was lost: the first word stands. */
static void a_worker_dies_once(void **state)
{
    struct control_death own = lost_from(7), node = lost_from(HERE);

    (void)state;
    own.how = CLD_EXITED;
    own.code = 3;
    control_host_died(&control, &own, 1);
    control_host_died(&control, &own, 1);
    assert_int_equal(atomic_load(&control.head->deaths), 1);
    assert_int_equal(atomic_load(&control.head->notices), 1);
    control_host_died(&control, &node, 10);
    assert_int_equal(atomic_load(&control.head->deaths), 10);
    assert_int_equal(control_death_at(control.head, 0)->code, 3);
    for (int i = 1; i < 10; i++)
        assert_int_not_equal(control_death_at(control.head, i)->rank, 7);
    control_host_died(&control, &node, 10);
    assert_int_equal(atomic_load(&control.head->notices), 2);
}

static void ranks_that_the_job_does_not_have_do_not_die(void **state)
{
    const struct control_death below = lost_from(-1), above = lost_from(WORLD - 1);

    (void)state;
    control_host_died(&control, &below, 1);
    control_host_died(&control, &above, 2);
    assert_int_equal(atomic_load(&control.head->deaths), 0);
    control_host_died(&control, &above, 1);
    assert_int_equal(atomic_load(&control.head->deaths), 1);
}

/* A call that failed, and that the program survived, says nothing of the end. */
static void a_death_has_the_call_in_which_the_worker_was(void **state)
{
    const struct worker worker = { .rank = 1, .local_rank = 1, .how = CLD_KILLED, .code = SIGTERM };
    struct control_group *lines = control_rank_at(control.head, 1)->groups;
    struct control_death death;

    (void)state;
    for (int i = 0; i < 3; i++) {
        atomic_store(&lines[i].id, 5 + i);
        lines[i].now = (struct control_call){ .seq = 4 + i,
                                              .begun_ns = 10 - i,
                                              .phase = i == 0 ? CONTROL_FAILED : CONTROL_IN };
    }
    control_host_describe(&control, &worker, &death);
    assert_int_equal(death.blame.on.reason, BLAME_NONE);
    assert_int_equal(death.blame.group, 6);
    assert_int_equal(death.blame.call.seq, 5);
    assert_int_equal(death.blame.call_hash, control_call_hash(&lines[1].now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_death_has_the_call_in_which_the_worker_was, open_page,
                                        close_page),
        cmocka_unit_test_setup_teardown(a_lost_node_is_one_notice_for_all_its_workers, open_page,
                                        close_page),
        cmocka_unit_test_setup_teardown(a_worker_dies_once, open_page, close_page),
        cmocka_unit_test_setup_teardown(ranks_that_the_job_does_not_have_do_not_die, open_page,
                                        close_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
