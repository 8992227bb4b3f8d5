/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_tree.c - groups in shared memory that are so large that arrivals are counted in a tree.
 */
#include "tests/harness.h"

#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/group/shm_group.c"

enum {
    FEW = 33,  /* the smallest group with a tree: its last node has one rank */
    MANY = 40, /* two full nodes and one of eight */
    ODD_ONE = 21,
    QUICKLY_MS = 5000, /* well below the limit of the groups */
    BIG = 300000       /* more than a slot of one of these groups holds */
};

/* ---- What is right ---------------------------------------------------------------- */

static void exchange(ct_group *group, void *arg)
{
    const int me = ct_rank(group), p = ct_size(group);
    int32_t sum, all[MAX_RANKS], root, *big = malloc(BIG * sizeof *big);

    (void)arg;
    for (int round = 0; round < 20; round++) {
        int32_t mine = me + round;

        EXPECT_OK(ct_barrier(group, NULL));
        EXPECT_OK(ct_all_reduce(group, &mine, &sum, 1, CT_I32, CT_SUM, NULL));
        EXPECT(sum == p * (p - 1) / 2 + p * round);
        EXPECT_OK(ct_all_gather(group, &mine, all, 1, CT_I32, NULL));
        for (int i = 0; i < p; i++)
            EXPECT(all[i] == i + round);
        root = me == round % p ? 1000 + round : -1;
        EXPECT_OK(ct_broadcast(group, &root, 1, CT_I32, round % p, NULL));
        EXPECT(root == 1000 + round);
        EXPECT_OK(ct_gather(group, &mine, all, 1, CT_I32, round % p, NULL));
        for (int i = 0; i < p && me == round % p; i++)
            EXPECT(all[i] == i + round);
        EXPECT_OK(ct_reduce(group, &mine, &sum, 1, CT_I32, CT_MAX, round % p, NULL));
        EXPECT(me != round % p || sum == p - 1 + round);
    }
    for (int i = 0; i < BIG; i++)
        big[i] = me + i % 7;
    EXPECT_OK(ct_all_reduce(group, big, big, BIG, CT_I32, CT_SUM, NULL));
    for (int i = 0; i < BIG; i += 997)
        EXPECT(big[i] == p * (p - 1) / 2 + p * (i % 7));
    free(big);
}

static void groups_with_a_tree_exchange_what_small_ones_do(void **state)
{
    (void)state;
    run_processes(FEW, exchange, NULL);
    run_processes(MANY, exchange, NULL);
    run_threads(MANY, exchange, NULL);
}

/* The root comes when all others sleep, each of which waits for it alone. */
static void wait_for_a_late_root(ct_group *group, void *arg)
{
    int32_t value = 0;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < 3; i++) {
        const int root = (i * 17 + 5) % ct_size(group);

        if (ct_rank(group) == root)
            nap(30);
        value = ct_rank(group) == root ? i : -1;
        EXPECT_OK(ct_broadcast(group, &value, 1, CT_I32, root, NULL));
        EXPECT(value == i);
    }
}

static void a_late_root_wakes_all_that_wait_for_it(void **state)
{
    (void)state;
    run_processes(MANY, wait_for_a_late_root, NULL);
}

/* Even and odd ranks: groups that are not the mesh's first one; the one of 40 has no tree. */
static void split(ct_group *group, void *arg)
{
    ct_group *half = NULL;
    int32_t sum = 1;

    (void)arg;
    EXPECT_OK(ct_split_group(group, ct_rank(group) % 20 == 0, ct_rank(group), &half));
    EXPECT_OK(ct_all_reduce(half, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == (ct_rank(group) % 20 == 0 ? 2 : MANY - 2));
    EXPECT_OK(ct_destroy_process_group(half));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_large_group_made_from_another_has_a_tree_of_its_own(void **state)
{
    (void)state;
    run_processes(MANY, split, NULL);
}

/* ---- What goes wrong ---------------------------------------------------------------- */

static void call_something_else(ct_group *group, void *arg)
{
    float value = 1, sum;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE)
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_MISMATCH, "barrier|all_reduce");
    else
        EXPECT_ERROR(ct_all_reduce(group, &value, &sum, 1, CT_F32, CT_SUM, NULL), CT_ERR_MISMATCH,
                     "barrier|all_reduce");
}

static void another_call_is_found_in_the_tree(void **state)
{
    (void)state;
    run_processes(MANY, call_something_else, NULL);
}

static void come_without_one(ct_group *group, void *arg)
{
    ct_status status;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_set_timeout(group, 400));
    if (ct_rank(group) == ODD_ONE) {
        nap(2000);
        return;
    }
    status = ct_barrier(group, NULL);
    EXPECT(status == CT_ERR_TIMEOUT || status == CT_ERR_PEER); /* another rank gave up first */
    EXPECT_ERROR(status, status, "barrier #2|rank 21 (pid|did not come");
}

static void a_rank_that_does_not_come_is_named(void **state)
{
    (void)state;
    run_processes(MANY, come_without_one, NULL);
}

static void end_one(ct_group *group, void *arg)
{
    double start;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE)
        rank_leaves();
    start = now_ms();
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 21 (pid|ended");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_rank_whose_process_ends_is_named(void **state)
{
    (void)state;
    run_processes(MANY, end_one, NULL);
}

/* Its line says that it is in the round, but it has not counted itself in the tree. */
static void end_one_in_between(ct_group *group, void *arg)
{
    struct shm_group *f = group->shm;
    double start;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE) {
        atomic_store(&f->members[f->rank].lines[(f->round + 1) % 2].round, f->round + 1);
        rank_leaves();
    }
    start = now_ms();
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 21 (pid|ended");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_rank_that_ends_between_its_line_and_the_tree_is_named(void **state)
{
    (void)state;
    run_processes(MANY, end_one_in_between, NULL);
}

static void leave_with_one(ct_group *group, void *arg)
{
    double start;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE)
        return; /* the harness destroys its group */
    start = now_ms();
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 21 (pid|destroyed the group");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_rank_that_has_left_is_named(void **state)
{
    (void)state;
    run_processes(MANY, leave_with_one, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_with_a_tree_exchange_what_small_ones_do),
        cmocka_unit_test(a_late_root_wakes_all_that_wait_for_it),
        cmocka_unit_test(a_large_group_made_from_another_has_a_tree_of_its_own),
        cmocka_unit_test(another_call_is_found_in_the_tree),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
        cmocka_unit_test(a_rank_whose_process_ends_is_named),
        cmocka_unit_test(a_rank_that_ends_between_its_line_and_the_tree_is_named),
        cmocka_unit_test(a_rank_that_has_left_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
