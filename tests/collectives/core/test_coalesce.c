/* SPDX-License-Identifier: Apache-2.0 */
/* test_coalesce.c - collectives between ct_coalesce_begin() and ct_coalesce_end(): the same bits
 * as one by one, with fewer calls; lists that differ, and what is refused. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/group/group.h"

enum { CALLS = 100 };

/* Of element i of call k on rank r: f32 whose sum depends on the order of folding. */
static float input(int r, int k, size_t i)
{
    return (float)(1 + (r * 131 + k * 17 + (int)(i % 1000) * 7) % 1013) * 1.1f;
}

/* ---- All kinds, one after the other and together ------------------------------- */

struct world {
    int p, me;
    float *from[CALLS], *to[CALLS]; /* p blocks of count_of() each */
};

/* Sizes: nothing, a few, some KiB (together), more than a trip holds of one (alone). */
static size_t count_of(int k)
{
    static const size_t counts[] = { 3, 16, 0, 1, 700, 2048, 5, 2049, 40000, 33 };

    return counts[k % 10];
}

/* Call k of the list, from from[k] to to[k]; runs of one kind, and some that stand alone. */
static ct_status call(ct_group *group, const struct world *w, int k)
{
    const int p = w->p, root = k / 20 % p;
    const size_t n = count_of(k);

    switch (k / 10 % 6) {
    case 0:
        return ct_all_reduce(group, w->from[k], w->to[k], n, CT_F32, CT_SUM, NULL);
    case 1:
        return ct_broadcast(group, w->to[k], n, CT_F32, root, NULL);
    case 2:
        return ct_all_gather(group, w->from[k], w->to[k], n, CT_F32, NULL);
    case 3:
        return ct_reduce_scatter(group, w->from[k], w->to[k], n, CT_F32, CT_AVG, NULL);
    case 4:
        return k % 2 ? ct_all_reduce(group, w->to[k], w->to[k], n, CT_F32, CT_SUM, NULL)
                     : ct_all_to_all(group, w->from[k], w->to[k], n, CT_F32, NULL);
    default:
        return k % 3 ? ct_reduce(group, w->from[k], w->to[k], n, CT_F32, CT_MAX, root, NULL)
                     : ct_barrier(group, NULL);
    }
}

static void prepare(struct world *w, ct_group *group)
{
    w->p = ct_size(group);
    w->me = ct_rank(group);
    for (int k = 0; k < CALLS; k++) {
        const size_t n = count_of(k) * (size_t)w->p;

        w->from[k] = malloc((n + 1) * sizeof(float));
        w->to[k] = malloc((n + 1) * sizeof(float));
        for (size_t i = 0; i < n; i++) {
            w->from[k][i] = input(w->me, k, i);
            w->to[k][i] = input(w->me, k + 1, i);
        }
    }
}

static void compare(struct world *alone, struct world *together)
{
    for (int k = 0; k < CALLS; k++) {
        const size_t bytes = count_of(k) * (size_t)alone->p * sizeof(float);

        EXPECT(bytes == 0 || memcmp(alone->to[k], together->to[k], bytes) == 0);
        EXPECT(bytes == 0 || memcmp(alone->from[k], together->from[k], bytes) == 0);
        free(alone->from[k]);
        free(alone->to[k]);
        free(together->from[k]);
        free(together->to[k]);
    }
}

static void both_ways(ct_group *group, void *arg)
{
    const int asynchronous = *(const int *)arg;
    struct world alone, together;
    ct_work *work = NULL;

    prepare(&alone, group);
    prepare(&together, group);
    for (int k = 0; k < CALLS; k++)
        EXPECT_OK(call(group, &alone, k));
    EXPECT_OK(ct_coalesce_begin(group));
    for (int k = 0; k < CALLS; k++)
        EXPECT_OK(call(group, &together, k));
    EXPECT_OK(ct_coalesce_end(group, asynchronous ? &work : NULL));
    EXPECT(!asynchronous || work != NULL);
    EXPECT_OK(ct_wait(work));
    compare(&alone, &together);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void the_bits_are_those_of_one_by_one(void **state)
{
    int blocks = 0, asynchronous = 1;

    (void)state;
    run_sizes(both_ways, &blocks);
    run_ranks(3, both_ways, &asynchronous);
}

/* In the groups of even and odd ranks, backwards; each collects for itself, and the world too. */
static void in_parts(ct_group *group, void *arg)
{
    const int me = ct_rank(group), p = ct_size(group);
    ct_group *part = NULL;
    int32_t ones[2] = { 1, 1 };

    (void)arg;
    EXPECT_OK(ct_split_group(group, me % 2, -me, &part));
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_coalesce_begin(part));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(part, &ones[i], &ones[i], 1, CT_I32, CT_SUM, NULL));
    EXPECT(ones[0] == 1 && ones[1] == 1); /* only collected */
    EXPECT_OK(ct_coalesce_end(part, NULL));
    EXPECT(ones[0] == ct_size(part) && ones[1] == ct_size(part));
    for (int i = 0; i < 2; i++) {
        ones[i] = 1;
        EXPECT_OK(ct_all_reduce(group, &ones[i], &ones[i], 1, CT_I32, CT_SUM, NULL));
    }
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT(ones[0] == p && ones[1] == p);
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void each_group_collects_for_itself(void **state)
{
    (void)state;
    run_ranks(4, in_parts, NULL);
}

/* In place, lists, and a scalar that is freed before the end: rank r gives r+1 everywhere. */
static void forms(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int64_t gathered[2][MAX_RANKS], listed[2][MAX_RANKS], scattered[2][MAX_RANKS], own = me + 1;
    double sums[2] = { me + 1, me + 1 };
    const double factor = 2;
    void *list[MAX_RANKS];
    ct_op op;

    (void)arg;
    EXPECT_OK(ct_op_premul(&factor, CT_F64, &op));
    EXPECT_OK(ct_coalesce_begin(group));
    for (int k = 0; k < 2; k++) {
        gathered[k][me] = me + 1;
        EXPECT_OK(ct_all_gather(group, &gathered[k][me], gathered[k], 1, CT_I64, NULL));
        for (int i = 0; i < p; i++)
            list[i] = &listed[k][p - 1 - i];
        EXPECT_OK(ct_all_gather_list(group, &own, list, 1, CT_I64, NULL));
        memset(list, 0, sizeof list); /* copied at the call */
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < p; i++)
            scattered[k][i] = (me + 1) * (i + 1);
        EXPECT_OK(
            ct_reduce_scatter(group, scattered[k], &scattered[k][me], 1, CT_I64, CT_SUM, NULL));
    }
    EXPECT_OK(ct_all_reduce(group, &sums[0], &sums[0], 1, CT_F64, op, NULL));
    EXPECT_OK(ct_all_reduce(group, &sums[1], &sums[1], 1, CT_F64, CT_SUM, NULL));
    EXPECT_OK(ct_op_free(op));
    EXPECT_OK(ct_coalesce_end(group, NULL));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < p; i++) {
            EXPECT(gathered[k][i] == i + 1 && listed[k][p - 1 - i] == i + 1);
            EXPECT(scattered[k][i] == (i == me ? p * (p + 1) / 2 : me + 1) * (i + 1));
        }
        EXPECT(sums[k] == (k == 0 ? 2 : 1) * p * (p + 1) / 2);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void every_form_is_collected(void **state)
{
    (void)state;
    run_ranks(1, forms, NULL);
    run_ranks(3, forms, NULL);
}

/* ---- How many calls ------------------------------------------------------------ */

/* A hundred of 64 bytes; arg: how many calls that makes. */
static void hundred(ct_group *group, void *arg)
{
    const uint64_t wanted = *(const uint64_t *)arg, before = group->seq;
    static int32_t values[CALLS][16];
    int right = 0;

    for (int k = 0; k < CALLS; k++)
        for (int i = 0; i < 16; i++)
            values[k][i] = k * (ct_rank(group) + 1);
    EXPECT_OK(ct_coalesce_begin(group));
    for (int k = 0; k < CALLS; k++)
        EXPECT_OK(ct_all_reduce(group, values[k], values[k], 16, CT_I32, CT_SUM, NULL));
    EXPECT(group->seq == before);
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT(group->seq - before == wanted);
    for (int k = 0; k < CALLS; k++)
        for (int i = 0; i < 16; i++)
            right += values[k][i] == 3 * k;
    EXPECT(right == CALLS * 16);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_hundred_small_ones_are_one_call(void **state)
{
    uint64_t calls = 1;

    (void)state;
    run_processes(2, hundred, &calls);
    use_link("tcp");
    run_processes(2, hundred, &calls);
    use_link(NULL);
}

/* ---- What goes wrong ------------------------------------------------------------- */

/* Rank 0 lists 4 and 8 elements; rank 1 what arg says. */
static void other_lists(ct_group *group, void *arg)
{
    static const size_t zeros[] = { 4, 8 };
    const size_t *theirs = arg;
    int32_t values[3][8] = { { 0 } };
    const size_t *counts = ct_rank(group) == 0 ? zeros : theirs;
    const int n = ct_rank(group) == 0 || theirs[2] == 0 ? 2 : 3;

    EXPECT_OK(ct_coalesce_begin(group));
    for (int i = 0; i < n; i++)
        EXPECT_OK(ct_all_reduce(group, values[i], values[i], counts[i], CT_I32, CT_SUM, NULL));
    EXPECT_ERROR(ct_coalesce_end(group, NULL), CT_ERR_MISMATCH,
                 theirs[2] == 0 ? "all_reduce #1 (12 i32, sum, 2 calls in one)|different counts"
                                : "2 calls in one|3 calls in one|disagree");
    EXPECT_STATUS(ct_barrier(group, NULL), CT_ERR_MISMATCH);
}

static void lists_that_differ_are_found_and_named(void **state)
{
    size_t swapped[3] = { 8, 4, 0 }, longer[3] = { 4, 7, 1 };

    (void)state;
    run_ranks(2, other_lists, swapped);
    run_ranks(2, other_lists, longer);
}

/* What is refused is not in the list, and the list goes on. */
static void mistakes(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    int32_t ones[2] = { 1, 1 };
    ct_work *work = (ct_work *)1;
    ct_group *part = NULL;
    void *memory = NULL;

    (void)arg;
    EXPECT_ERROR(ct_coalesce_end(group, &work), CT_ERR_INVALID, "ct_coalesce_begin() comes first");
    EXPECT(work == NULL);
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_coalesce_end(group, &work)); /* nothing to do */
    EXPECT(work == NULL);
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, &ones[0], &ones[0], 1, CT_I32, CT_SUM, NULL));
    EXPECT_ERROR(ct_coalesce_begin(group), CT_ERR_INVALID, "collects calls already|1 so far");
    EXPECT_ERROR(
        ct_all_reduce(group, &ones[1], &ones[1], 1, CT_I32, CT_SUM, &work), CT_ERR_INVALID,
        "all_reduce|a collected call has no work; pass NULL here and &work to ct_coalesce_end()");
    EXPECT_ERROR(ct_all_reduce(group, NULL, &ones[1], 1, CT_I32, CT_SUM, NULL), CT_ERR_INVALID,
                 "all_reduce|NULL");
    EXPECT_ERROR(ct_split_group(group, 0, 0, &part), CT_ERR_INVALID, "split_group|can't wait");
    EXPECT_ERROR(ct_mem_alloc(group, 64, &memory), CT_ERR_INVALID, "mem_alloc|can't wait");
    EXPECT(part == NULL && memory == NULL);
    EXPECT_OK(ct_all_reduce(group, &ones[1], &ones[1], 1, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT(ones[0] == p && ones[1] == p);
    EXPECT_STATUS(ct_coalesce_end(group, NULL), CT_ERR_INVALID);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void what_is_refused_is_not_in_the_list(void **state)
{
    (void)state;
    run_ranks(1, mistakes, NULL);
    run_ranks(3, mistakes, NULL);
}

/* The second would take the result of the first. */
static void chained(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    int32_t a[4] = { 1, 1, 1, 1 }, b[4] = { 0 };

    (void)arg;
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, a, b, 4, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, b + 3, a, 1, CT_I32, CT_SUM, NULL));
    EXPECT_ERROR(ct_coalesce_end(group, NULL), CT_ERR_INVALID,
                 "all_reduce|overlap those of another call that is sent with it; no call was made");
    EXPECT(a[0] == 1 && b[0] == 0);
    EXPECT_OK(ct_coalesce_begin(group)); /* two that read the same are no trouble */
    EXPECT_OK(ct_all_reduce(group, a, b, 2, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, a, b + 2, 2, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_broadcast(group, b, 1, CT_I32, 0, NULL)); /* of another kind: after them */
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT(b[0] == p && b[3] == p);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void calls_that_need_each_other_are_refused(void **state)
{
    (void)state;
    run_ranks(2, chained, NULL);
}

static void given_up(ct_group *group, void *arg)
{
    int32_t value = ct_rank(group);
    ct_group *part = NULL, *outside = NULL;

    (void)arg;
    EXPECT_OK(ct_split_group(group, 0, 0, &part));
    EXPECT_OK(ct_split_group(group, ct_rank(group) == 0 ? 0 : -1, 0, &outside));
    if (ct_rank(group) != 0) {
        EXPECT_ERROR(ct_coalesce_begin(outside), CT_ERR_NOT_MEMBER, "ct_coalesce_begin");
        EXPECT_ERROR(ct_coalesce_end(outside, NULL), CT_ERR_NOT_MEMBER, "ct_coalesce_end");
    }
    EXPECT_OK(ct_coalesce_begin(part));
    EXPECT_OK(ct_all_reduce(part, &value, &value, 1, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT(value == ct_rank(group));
    EXPECT_OK(ct_destroy_process_group(outside));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_abort(group));
    EXPECT_STATUS(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL), CT_ERR_ABORTED);
    EXPECT_STATUS(ct_coalesce_end(group, NULL), CT_ERR_ABORTED);
    EXPECT(value == ct_rank(group));
    EXPECT_STATUS(ct_coalesce_begin(group), CT_ERR_ABORTED);
}

static void destroyed_or_aborted_in_between_none_is_made(void **state)
{
    (void)state;
    run_ranks(2, given_up, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_one_by_one),
        cmocka_unit_test(each_group_collects_for_itself),
        cmocka_unit_test(every_form_is_collected),
        cmocka_unit_test(a_hundred_small_ones_are_one_call),
        cmocka_unit_test(lists_that_differ_are_found_and_named),
        cmocka_unit_test(what_is_refused_is_not_in_the_list),
        cmocka_unit_test(calls_that_need_each_other_are_refused),
        cmocka_unit_test(destroyed_or_aborted_in_between_none_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
