/* SPDX-License-Identifier: Apache-2.0 */
/* test_roots.c - ranks that disagree about the root of a call.
 *
 * The worst case is a call in which no rank waits: each takes itself for the root that sends, or
 * each sends to a rank that does not take itself for the root.  The ranks make the call one after
 * the other, so the last rank can compare with all others.
 *
 * And roots, or ranks that send to a root, that do not wait for a late rank. */
#include "tests/marks.h"

#include <string.h>

enum operation { BROADCAST, SCATTER, REDUCE, GATHER, OPERATIONS };

static const char *const names[] = { "broadcast #", "scatter #", "reduce #", "gather #" };

/* Broadcast and scatter: each rank is the root.  Reduce and gather: no rank is the root. */
static ct_status call_alone(ct_group *group, enum operation operation)
{
    const int p = ct_size(group), me = ct_rank(group), next = (me + 1) % p;
    int32_t one[2] = { me, me }, all[MAX_RANKS * 2] = { 0 };

    switch (operation) {
    case BROADCAST:
        return ct_broadcast(group, one, 2, CT_I32, me, NULL);
    case SCATTER:
        return ct_scatter(group, all, one, 2, CT_I32, me, NULL);
    case REDUCE:
        return ct_reduce(group, one, all, 2, CT_I32, CT_SUM, next, NULL);
    default:
        return ct_gather(group, one, all, 2, CT_I32, next, NULL);
    }
}

/* Each rank is connected to all, so its messages have arrived when the next rank begins. */
static ct_group *new_group(ct_group *world)
{
    const int p = ct_size(world), me = ct_rank(world);
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    int32_t one = me, all[MAX_RANKS];
    int list[MAX_RANKS];
    ct_group *group = NULL;

    for (int i = 0; i < p; i++)
        list[i] = i;
    options.parent = world;
    options.name = "own";
    if (!EXPECT_OK(ct_new_group_with(list, p, &options, &group)))
        return NULL;
    EXPECT_OK(ct_all_gather(group, &one, all, 1, CT_I32, NULL));
    return group;
}

/* A rank that had finished its part gets the error from its next call or from the group's end. */
static void one_after_the_other(ct_group *world, enum operation operation, int is_last)
{
    const int p = ct_size(world), me = ct_rank(world), turn = 2 * operation + is_last;
    ct_group *const group = new_group(world);
    char called[32], found[32];
    ct_status status;

    snprintf(called, sizeof called, "called%d", turn);
    snprintf(found, sizeof found, "found%d", turn);
    if (!group)
        return;
    if (me > 0)
        await(called, me - 1);
    status = call_alone(group, operation);
    if (me == p - 1) {
        EXPECT_ERROR(status, CT_ERR_MISMATCH, names[operation]);
        EXPECT(strstr(ct_last_error(), "root"));
    }
    mark(called, me);
    if (me == p - 1)
        mark(found, me);
    else
        await(found, p - 1);
    if (status == CT_OK && is_last)
        EXPECT_ERROR(ct_destroy_process_group(group), CT_ERR_MISMATCH, names[operation]);
    else if (!is_last)
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_MISMATCH, names[operation]);
    if (status != CT_OK || !is_last)
        EXPECT_OK(ct_destroy_process_group(group));
}

static void each_alone(ct_group *world, void *arg)
{
    (void)arg;
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int is_last = 0; is_last < 2; is_last++)
            one_after_the_other(world, (enum operation)operation, is_last);
}

static void ranks_that_disagree_about_the_root_are_told_by_that_call_or_the_end(void **state)
{
    (void)state;
    for (int p = 2; p <= 4; p++)
        run_ranks(p, each_alone, NULL);
    run_processes(26, each_alone, NULL); /* a tree */
}

enum { AHEAD = 8, CALLS = 40, MOST = 4096 };

/* Call `k` of `n` elements.  Returns 1 if a rank that receives has what was sent in this call. */
static int call_with_late(ct_group *group, enum operation operation, int late, int k, size_t n)
{
    static _Thread_local int32_t one[MOST], all[4 * MOST];
    const int p = ct_size(group), me = ct_rank(group);
    const int root = operation == BROADCAST || operation == SCATTER ? (late + 1) % p : late;
    ct_status status;
    int32_t wanted = 100 * k + root;

    for (size_t i = 0; i < n; i++)
        one[i] = 100 * k + me;
    for (size_t i = 0; i < (size_t)p * n; i++)
        all[i] = 100 * k + me;
    if (operation == BROADCAST) {
        status = ct_broadcast(group, one, n, CT_I32, root, NULL);
    } else if (operation == SCATTER) {
        status = ct_scatter(group, all, one, n, CT_I32, root, NULL);
    } else if (operation == REDUCE) {
        status = ct_reduce(group, one, all, n, CT_I32, CT_SUM, root, NULL);
        wanted = p * 100 * k + p * (p - 1) / 2;
    } else {
        status = ct_gather(group, one, all, n, CT_I32, root, NULL);
        wanted = 100 * k + p - 1;
    }
    if (!EXPECT_OK(status))
        return 0;
    if (operation == REDUCE || operation == GATHER)
        return me != root || all[operation == GATHER ? (size_t)p * n - 1 : n - 1] == wanted;
    return one[0] == wanted && one[n - 1] == wanted;
}

static void ahead_of_late(ct_group *group, void *arg)
{
    static const size_t counts[] = { 2, 300, MOST };
    const int p = ct_size(group), me = ct_rank(group), late = p - 1;
    char here[32];

    (void)arg;
    for (int turn = 0; turn < 3 * OPERATIONS; turn++) {
        snprintf(here, sizeof here, "ahead%d", turn);
        EXPECT_OK(ct_barrier(group, NULL));
        for (int i = 0; me == late && i < late; i++)
            await(here, i);
        for (int k = 0; k < CALLS; k++) {
            if (!EXPECT(call_with_late(group, turn / 3, late, k, counts[turn % 3])))
                return;
            if (k == AHEAD - 1)
                mark(here, me);
        }
    }
}

static void a_rank_that_waits_for_nobody_may_be_eight_calls_ahead_of_a_late_one(void **state)
{
    (void)state;
    for (int p = 2; p <= 4; p++) {
        run_processes(p, ahead_of_late, NULL);
        run_threads(p, ahead_of_late, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_waits_for_nobody_may_be_eight_calls_ahead_of_a_late_one),
        cmocka_unit_test(ranks_that_disagree_about_the_root_are_told_by_that_call_or_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
