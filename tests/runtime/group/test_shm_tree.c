/* SPDX-License-Identifier: Apache-2.0 */
/* test_shm_tree.c - groups in shared memory that are so large that arrivals are counted in a tree.
 */
#include "tests/marks.h"

#include <stdlib.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/tree.c"
#include "runtime/util/clock.h"

enum {
    FEW = 33,  /* the last leaf has one rank */
    MANY = 40, /* two full leaves and one of eight */
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

/* ---- A gate --------------------------------------------------------------------- */

/* A round as calls over several hosts make it, here among the ranks of one: the gate answers with
 * the sum of what all show.  opens: else it ends first. */
static ct_status pass_a_gate(struct shm_group *f, int gate, int opens, int *sum)
{
    ct_status status = shm_group_next_slot(f, sizeof *sum);

    if (status != CT_OK)
        return status;
    memcpy(shm_group_own(f), &f->rank, sizeof f->rank);
    status = f->rank == gate ? shm_group_hold_gate(f, gate) : shm_group_enter_gate(f, gate);
    *sum = 0;
    for (int i = 0; i < f->size && f->rank == gate && status == CT_OK; i++)
        *sum += *(const int *)shm_group_slot(f, i);
    if (f->rank == gate && !opens)
        rank_leaves();
    if (status == CT_OK && f->rank == gate) {
        memcpy(shm_group_answer(f), sum, sizeof *sum);
        shm_group_open_gate(f);
    } else if (status == CT_OK) {
        status = shm_group_pass_gate(f, gate);
        memcpy(sum, shm_group_slot(f, gate), sizeof *sum);
    }
    return status;
}

static void pass_gates(ct_group *group, void *arg)
{
    const int p = ct_size(group);

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    for (int gate = 0; gate < p; gate += 3) {
        int sum = 0;

        if (ct_rank(group) == gate && gate % 2 == 0)
            nap(5); /* the others sleep by then */
        EXPECT_OK(pass_a_gate(group->shm, gate, 1, &sum));
        EXPECT(sum == p * (p - 1) / 2);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_gate_answers_all_ranks_of_a_group_with_and_without_a_tree(void **state)
{
    (void)state;
    run_processes(4, pass_gates, NULL);
    run_processes(MANY, pass_gates, NULL);
}

static void wait_for_a_gate_that_ends(ct_group *group, void *arg)
{
    double start;
    int sum = 0;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    start = now_ms();
    EXPECT_ERROR(pass_a_gate(group->shm, 2, 0, &sum), CT_ERR_PEER, "rank 2 (pid|ended");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_gate_that_ends_before_it_answers_is_named(void **state)
{
    (void)state;
    run_processes(4, wait_for_a_gate_that_ends, NULL);
    run_processes(MANY, wait_for_a_gate_that_ends, NULL);
}

/* All others are in the round when their time begins; the gate is too, or is not. */
static void wait_for_a_late_gate(ct_group *group, void *arg)
{
    const int gate = 2, *const comes = arg;
    struct shm_group *const f = group->shm;

    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(shm_group_next_slot(f, 0));
    if (f->rank == gate && *comes)
        EXPECT_OK(shm_group_hold_gate(f, gate));
    if (f->rank != gate)
        EXPECT_OK(shm_group_enter_gate(f, gate));
    for (int i = 0; i < f->size; i++) {
        if (i != gate && f->rank != gate)
            EXPECT_OK(shm_group_wait(f, i));
        else if (i != gate)
            await("gave up", i);
    }
    if (f->rank == gate)
        return;
    shm_group_begin_call(f, &f->signature, deadline_after(100), f->given_up);
    EXPECT_STATUS(shm_group_pass_gate(f, gate), CT_ERR_TIMEOUT);
    EXPECT(ct_last_blame().rank == gate && ct_last_blame().reason == BLAME_LATE);
    mark("gave up", f->rank);
}

static void a_gate_that_does_not_answer_in_time_is_blamed(void **state)
{
    (void)state;
    for (int comes = 0; comes <= 1; comes++) {
        run_processes(4, wait_for_a_late_gate, &comes);
        run_processes(MANY, wait_for_a_late_gate, &comes);
    }
}

/* Rank 3 does not come; the gate ends, or does not come either. */
static void wait_for_a_gate_without_one(ct_group *group, void *arg)
{
    const int gate = 2, late = 3, *const ends = arg;
    struct shm_group *const f = group->shm;
    const double start = now_ms();

    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(shm_group_next_slot(f, 0));
    if (f->rank == gate && *ends)
        rank_leaves();
    if (f->rank == gate || f->rank == late) {
        await("gave up", 0);
        await("gave up", 1);
        return;
    }
    EXPECT_OK(shm_group_enter_gate(f, gate));
    shm_group_begin_call(f, &f->signature, deadline_after(*ends ? 10000 : 100), f->given_up);
    if (*ends) {
        EXPECT_ERROR(shm_group_pass_gate(f, gate), CT_ERR_PEER, "rank 2 (pid|ended");
        EXPECT(now_ms() - start < QUICKLY_MS);
    } else {
        EXPECT_STATUS(shm_group_pass_gate(f, gate), CT_ERR_TIMEOUT);
        EXPECT(ct_last_blame().rank == late && ct_last_blame().reason == BLAME_LATE);
    }
    mark("gave up", f->rank);
}

static void of_a_gate_and_a_rank_it_waits_for_the_one_at_fault_is_named(void **state)
{
    (void)state;
    for (int ends = 0; ends <= 1; ends++)
        run_processes(4, wait_for_a_gate_without_one, &ends);
}

/* ---- What goes wrong ---------------------------------------------------------------- */

/* Until all others are counted in the next round, which begins here. */
static void await_all_others(const struct shm_group *f)
{
    enum { LEAVES = (MANY + TREE_RADIX - 1) / TREE_RADIX };
    const uint64_t rounds = f->round + 1 - f->before;

    while (atomic_load(&f->tree[LEAVES].arrivals) < rounds * LEAVES - 1
           || atomic_load(&f->tree[ODD_ONE / TREE_RADIX].arrivals) < rounds * TREE_RADIX - 1)
        nap(1);
}

static void call_something_else(ct_group *group, void *comes_last)
{
    float value = 1, sum;

    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE && comes_last)
        await_all_others(group->shm);
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
    run_processes(MANY, call_something_else, "comes last");
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
    EXPECT_ERROR(status, status, "barrier #2|rank 21 (pid|has not joined");
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

/* It completes a leaf, and ends before it counts that in the root. */
static void end_one_in_the_tree(ct_group *group, void *arg)
{
    const struct shm_group *const f = group->shm;
    _Atomic uint64_t *const leaf = &f->tree[ODD_ONE / TREE_RADIX].arrivals;
    double start;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE) {
        while (atomic_load(leaf) < (f->round + 1 - f->before) * TREE_RADIX - 1)
            nap(1);
        atomic_fetch_add(leaf, 1);
        rank_leaves();
    }
    start = now_ms();
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 21 (pid|ended");
    EXPECT(now_ms() - start < QUICKLY_MS);
}

static void a_rank_that_ends_on_its_way_up_the_tree_is_named(void **state)
{
    (void)state;
    run_processes(MANY, end_one_in_the_tree, NULL);
}

/* It is the last one that is counted, and its line does not show the round: the others need nothing
 * more from it. */
static void end_one_before_its_line(ct_group *group, void *arg)
{
    struct shm_group *f = group->shm;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == ODD_ONE) {
        await_all_others(f);
        f->round++;
        shm_line(f, f->rank, f->round)->signature = f->calls[f->round % SHM_LINES] = f->signature;
        EXPECT_OK(shm_tree_count(f, NO_RANK));
        rank_leaves();
    }
    EXPECT_OK(shm_group_next_slot(f, 0));
    EXPECT_OK(shm_group_publish(f));
    EXPECT_OK(shm_group_wait_all(f));
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 21 (pid|ended");
}

static void a_rank_that_ends_between_the_tree_and_its_line_has_arrived(void **state)
{
    (void)state;
    run_processes(MANY, end_one_before_its_line, NULL);
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
        cmocka_unit_test(a_gate_answers_all_ranks_of_a_group_with_and_without_a_tree),
        cmocka_unit_test(a_gate_that_ends_before_it_answers_is_named),
        cmocka_unit_test(a_gate_that_does_not_answer_in_time_is_blamed),
        cmocka_unit_test(of_a_gate_and_a_rank_it_waits_for_the_one_at_fault_is_named),
        cmocka_unit_test(another_call_is_found_in_the_tree),
        cmocka_unit_test(a_rank_that_does_not_come_is_named),
        cmocka_unit_test(a_rank_whose_process_ends_is_named),
        cmocka_unit_test(a_rank_that_ends_on_its_way_up_the_tree_is_named),
        cmocka_unit_test(a_rank_that_ends_between_the_tree_and_its_line_has_arrived),
        cmocka_unit_test(a_rank_that_has_left_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
