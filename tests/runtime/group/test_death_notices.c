/* SPDX-License-Identifier: Apache-2.0 */
/* What the deaths of members mean to a group, from what ctrun tells of them. */
#include <signal.h>
#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/monitor/flight_recorder.h"
#include "tests/harness.h"

enum { WORLD = 4, ID = 77 };

/* Rank 0 of four, the others on other hosts. */
struct scene {
    struct mesh mesh;
    struct peer peers[WORLD];
    struct doorbell bell;
    pthread_mutex_t children;
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
    s->mesh.waiter.bell = &s->bell;
    s->mesh.waiter.event_fd = -1;
    pthread_mutex_init(&s->children, NULL);
    pthread_mutex_init(&s->group.broken_lock, NULL);
    s->group.mesh = &s->mesh;
    s->group.root = &s->group;
    s->group.children = &s->children;
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
    pthread_mutex_destroy(&s->group.broken_lock);
    pthread_mutex_destroy(&s->children);
    free(s);
}

static void dies(struct scene *s, int rank, uint64_t done)
{
    s->mesh.control.deaths[rank] = (struct control_death){
        .rank = rank, .how = CLD_KILLED, .code = SIGKILL, .tombs = 1, .tomb = { { ID, done, done } }
    };
    atomic_store(&s->peers[rank].death, (uint32_t)rank + 1);
    group_lose(&s->group, rank);
}

static void the_group_goes_on_until_the_call_that_a_dead_member_had_not_finished(void **state)
{
    struct scene *s = make_scene();

    (void)state;
    dies(s, 2, 9);
    assert_int_equal(atomic_load(&s->group.lost), 1 + 2);
    assert_int_equal(atomic_load(&s->group.lost_after), 9);
    assert_int_equal(atomic_load(&s->group.broken), CT_OK);
    free_scene(s);
}

/* Whoever died first: nobody can finish what one of them had not. */
static void of_several_dead_the_one_that_was_least_far_counts(void **state)
{
    const int orders[2][2] = { { 1, 2 }, { 2, 1 } };
    const uint64_t done[WORLD] = { 0, 9, 7, 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene *s = make_scene();

        dies(s, orders[i][0], done[orders[i][0]]);
        dies(s, orders[i][1], done[orders[i][1]]);
        assert_int_equal(atomic_load(&s->group.lost), 1 + 2);
        assert_int_equal(atomic_load(&s->group.lost_after), 7);
        free_scene(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_group_goes_on_until_the_call_that_a_dead_member_had_not_finished),
        cmocka_unit_test(of_several_dead_the_one_that_was_least_far_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
