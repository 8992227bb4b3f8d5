/* SPDX-License-Identifier: Apache-2.0 */
/* test_death_notices.c - what the death notices of members do to a group. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group_internal.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/monitor/flight_recorder.h"
#include "tests/harness.h"

enum { WORLD = 4, ID = 77 };

/* Rank 0 of four, the others on other hosts. */
struct scene {
    struct mesh mesh;
    struct peer peers[WORLD];
    struct peer_host hosts[1];
    struct doorbell bells[WORLD];
    struct transport transport; /* without links: what is sent waits */
    struct endpoint endpoints[WORLD];
    struct messages messages;
    int ranks[WORLD];
    struct ct_group group;
};

static struct scene *make_scene(void)
{
    struct scene *s = aligned_alloc(CACHE_PAIR, (sizeof *s / CACHE_PAIR + 1) * CACHE_PAIR);

    assert_non_null(s);
    memset(s, 0, sizeof *s);
    unsetenv("CT_CONTROL");
    assert_int_equal(control_open(&s->mesh.control, 0), CT_OK);
    s->mesh.control.world = WORLD;
    s->mesh.control.deaths = calloc(WORLD, sizeof *s->mesh.control.deaths);
    s->mesh.size = WORLD;
    s->mesh.peers = s->peers;
    s->mesh.hosts = s->hosts;
    s->mesh.waiter.bell = &s->bells[0];
    s->mesh.waiter.wake_fd = -1;
    pthread_mutex_init(&s->transport.lock, NULL);
    s->transport.endpoints = s->endpoints;
    s->mesh.transport = &s->transport;
    s->mesh.messages = &s->messages;
    atomic_store(&s->messages.waiting, 1); /* so that no progress thread begins */
    pthread_mutex_init(&s->group.children, NULL);
    pthread_mutex_init(&s->group.failure.lock, NULL);
    s->group.mesh = &s->mesh;
    s->group.root = &s->group;
    s->group.member = 1;
    s->group.size = WORLD;
    s->group.ranks = s->ranks;
    for (int i = 0; i < WORLD; i++)
        s->ranks[i] = i;
    record_open(&s->group.record, &s->mesh.control, ID, "world", 0, WORLD);
    return s;
}

static void free_scene(struct scene *s)
{
    free(s->mesh.control.deaths);
    control_close(&s->mesh.control);
    pthread_mutex_destroy(&s->group.failure.lock);
    pthread_mutex_destroy(&s->group.children);
    pthread_mutex_destroy(&s->transport.lock);
    free(s);
}

static void dies(struct scene *s, int rank, uint64_t done)
{
    s->mesh.control.deaths[rank] = (struct control_death){ .rank = rank,
                                                           .how = CLD_KILLED,
                                                           .code = SIGKILL,
                                                           .tombs = 1,
                                                           .tomb = { { ID, done, done, 1 } } };
    atomic_store(&s->peers[rank].death, (uint32_t)rank + 1);
    group_member_died(&s->group, rank);
}

static void the_group_goes_on_until_the_call_that_a_dead_member_had_not_finished(void **state)
{
    struct scene *s = make_scene();

    (void)state;
    dies(s, 2, 9);
    assert_int_equal(atomic_load(&s->group.failure.pending), 10);
    assert_int_equal(atomic_load(&s->group.failure.status), CT_OK);
    s->group.seq = 8;
    assert_false(group_fails_next_call(&s->group));
    s->group.seq = 9;
    assert_true(group_fails_next_call(&s->group));
    free_scene(s);
}

static struct group_failure reported_by(int rank, uint64_t from_call, const char *words)
{
    struct group_failure failure = { .from_call = from_call,
                                     .status = CT_ERR_INVALID,
                                     .rank = rank };

    snprintf(failure.words, sizeof failure.words, "%s", words);
    return failure;
}

/* Rank 1 failed in call 10 and said so, and then rank 2 ended because of that. */
static void what_a_rank_reported_of_a_call_is_its_cause_and_not_a_death(void **state)
{
    (void)state;
    for (int death_first = 0; death_first <= 1; death_first++) {
        const struct group_failure failure = reported_by(1, 10, "its program gave up");
        struct scene *s = make_scene();

        if (death_first)
            dies(s, 2, 9);
        group_fail_told(&s->group, &failure);
        if (!death_first)
            dies(s, 2, 9);
        assert_int_equal(atomic_load(&s->group.failure.pending), 10);
        assert_int_equal(group_begin(&s->group, 10), CT_ERR_PEER);
        assert_string_equal(s->group.failure.what.words, "its program gave up");
        free_scene(s);
    }
}

static void a_death_before_the_reported_call_is_the_cause(void **state)
{
    (void)state;
    for (int death_first = 0; death_first <= 1; death_first++) {
        const struct group_failure failure = reported_by(1, 10, "its program gave up");
        struct scene *s = make_scene();

        if (death_first)
            dies(s, 2, 7);
        group_fail_told(&s->group, &failure);
        if (!death_first)
            dies(s, 2, 7);
        assert_int_equal(atomic_load(&s->group.failure.pending), 8);
        assert_int_equal(group_begin(&s->group, 8), CT_ERR_PEER);
        assert_non_null(strstr(s->group.failure.what.words, "SIGKILL"));
        free_scene(s);
    }
}

/* Rank 1 finished the call before this rank did, and reports that it failed afterwards. */
static void a_reported_failure_of_a_finished_call_counts_at_once(void **state)
{
    const struct group_failure failure = reported_by(1, 10, "its program gave up");
    struct scene *s = make_scene();

    (void)state;
    atomic_store(&s->group.begun, 10);
    group_fail_told(&s->group, &failure);
    assert_int_equal(atomic_load(&s->group.failure.status), CT_ERR_PEER);
    assert_int_equal(atomic_load(&s->group.failure.pending), 0);
    free_scene(s);
}

/* Whichever member died first: a call that one of them had not finished can't be finished. */
static void of_several_dead_the_one_that_was_least_far_counts(void **state)
{
    const int orders[2][2] = { { 1, 2 }, { 2, 1 } };
    const uint64_t done[WORLD] = { 0, 9, 7, 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene *s = make_scene();

        dies(s, orders[i][0], done[orders[i][0]]);
        dies(s, orders[i][1], done[orders[i][1]]);
        assert_int_equal(atomic_load(&s->group.failure.pending), 8);
        assert_int_equal(s->group.failure.death.from_call, 8);
        free_scene(s);
    }
}

/* ---- Whom a rank blames -------------------------------------------------------------- */

/* Rank 1 gave up because rank 0 got no further.  Rank 0 waited for rank 2, or saw its end. */
static void a_rank_that_is_blamed_blames_the_rank_for_which_it_waited(void **state)
{
    (void)state;
    for (int saw_end = 0; saw_end <= 1; saw_end++) {
        const struct blame awaited = { 2, saw_end ? BLAME_DIED : BLAME_LATE };
        const ct_status status = saw_end ? CT_ERR_PEER : CT_ERR_ABORTED;
        struct group_failure failure = reported_by(1, 10, "gave up");
        struct scene *s = make_scene();
        struct control_blame blame;

        failure.blame = (struct blame){ 0, BLAME_LATE };
        s->mesh.control.worker = 0;
        for (int i = 0; i < WORLD; i++)
            s->peers[i].worker = i;
        atomic_store(&s->group.begun, 10);
        atomic_store(&s->group.running, 10);
        group_fail_told(&s->group, &failure);
        ct_fail_because(awaited, status, "%s", "");
        assert_int_equal(group_cause(&s->group, status, 10), CT_ERR_PEER);
        assert_true(control_blame_read(s->mesh.control.own, WORLD, &blame));
        assert_int_equal(blame.on.rank, 2);
        assert_int_equal(blame.on.reason, awaited.reason);
        free_scene(s);
    }
}

/* ---- Messages ---------------------------------------------------------------------- */

/* The rank that reported takes part in nothing any more, whoever else has died. */
static void a_message_fails_of_what_a_rank_reported_also_beside_a_pending_death(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        const struct group_failure failure = reported_by(1, 10, "its program gave up");
        struct scene *s = make_scene();

        if (order == 1)
            dies(s, 2, 7);
        group_fail_told(&s->group, &failure);
        if (order == 2)
            dies(s, 2, 7);
        assert_int_equal(group_begin(&s->group, 0), CT_ERR_PEER);
        assert_non_null(strstr(ct_last_error(), "its program gave up"));
        free_scene(s);
    }
}

static void a_message_does_not_fail_of_a_pending_death_alone(void **state)
{
    struct scene *s = make_scene();

    (void)state;
    dies(s, 2, 7);
    assert_int_equal(group_begin(&s->group, 0), CT_OK);
    free_scene(s);
}

/* Call 7 runs on the group's thread meanwhile, and each member that it needs has finished it. */
static void a_message_that_fails_leaves_the_call_that_runs_alone(void **state)
{
    (void)state;
    for (int by_death = 0; by_death <= 1; by_death++) {
        const struct group_failure failure = reported_by(1, 10, "its program gave up");
        struct scene *s = make_scene();

        atomic_store(&s->group.begun, 7);
        atomic_store(&s->group.running, 7);
        if (by_death)
            dies(s, 2, 7);
        else
            group_fail_told(&s->group, &failure);
        ct_fail(CT_ERR_ABORTED, "the group was aborted");
        assert_int_equal(group_cause(&s->group, CT_ERR_ABORTED, 0), CT_ERR_PEER);
        assert_non_null(strstr(ct_last_error(), by_death ? "SIGKILL" : "its program gave up"));
        assert_int_equal(group_begin(&s->group, 0), by_death ? CT_OK : CT_ERR_PEER);
        assert_int_equal(atomic_load(&s->group.failure.status), CT_OK);
        assert_int_equal(atomic_load(&s->group.failure.pending), by_death ? 8 : 10);
        free_scene(s);
    }
}

/* ---- Memory of the host ------------------------------------------------------------- */

static struct shm_group *make_shm(struct scene *s)
{
    struct shm_group *f = calloc(1, sizeof *f);
    const size_t bytes = sizeof *f->head + WORLD * sizeof *f->members;

    assert_non_null(f);
    f->head = aligned_alloc(CACHE_PAIR, bytes);
    assert_non_null(f->head);
    memset(f->head, 0, bytes);
    f->mesh = &s->mesh;
    f->size = WORLD;
    f->peers = calloc(WORLD, sizeof *f->peers);
    f->members = (void *)(f->head + 1);
    s->mesh.node.bells = s->bells;
    s->mesh.node.wake_fd = -1;
    return f;
}

static void free_shm(struct shm_group *f)
{
    free(f->head);
    free(f->peers);
    free(f);
}

/* Each rank has a notice of the death, so only the report is passed on; and what this rank wrote
 * for the others is no failure of its own. */
static void a_report_is_passed_on_and_not_the_death_that_is_pending_before_it(void **state)
{
    const struct group_failure failure = reported_by(1, 10, "its program gave up");
    struct scene *s = make_scene();

    (void)state;
    s->group.host_shm = make_shm(s);
    atomic_store(&s->group.begun, 7);
    atomic_store(&s->group.running, 7);
    dies(s, 2, 7);
    group_fail_told(&s->group, &failure);
    assert_string_equal(s->group.host_shm->members[0].failure.words, "its program gave up");
    group_look_for_failure(&s->group);
    assert_int_equal(atomic_load(&s->group.failure.status), CT_OK);
    assert_int_equal(atomic_load(&s->group.failure.pending), 8);
    free_shm(s->group.host_shm);
    free_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_goes_on_until_the_call_that_a_dead_member_had_not_finished),
        cmocka_unit_test(what_a_rank_reported_of_a_call_is_its_cause_and_not_a_death),
        cmocka_unit_test(a_death_before_the_reported_call_is_the_cause),
        cmocka_unit_test(a_reported_failure_of_a_finished_call_counts_at_once),
        cmocka_unit_test(of_several_dead_the_one_that_was_least_far_counts),
        cmocka_unit_test(a_rank_that_is_blamed_blames_the_rank_for_which_it_waited),
        cmocka_unit_test(a_message_fails_of_what_a_rank_reported_also_beside_a_pending_death),
        cmocka_unit_test(a_message_does_not_fail_of_a_pending_death_alone),
        cmocka_unit_test(a_message_that_fails_leaves_the_call_that_runs_alone),
        cmocka_unit_test(a_report_is_passed_on_and_not_the_death_that_is_pending_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
