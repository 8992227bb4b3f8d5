/* SPDX-License-Identifier: Apache-2.0 */
/* test_hier_blocks.c - as test_hier.c, of calls with a block for each rank, where NCCL's order of
 * the ranks is not ours.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include "tests/cuda/device.h"
#include "tests/cuda/hier.h"

/* Elements of all blocks: more than the scratch of a GPU has room for. */
enum { LARGE = HIER_SCRATCH / 4 + 4099 };

static void kinds(ct_group *group, void *arg)
{
    hier_compare_kinds(group, arg, ALL_GATHER, ALL_TO_ALL);
}

static void the_ranks_of_a_gpu_are_neighbours(void **state)
{
    (void)state;
    hier_go(kinds, &(struct hier_run){ .devices = "0011", .hosts = "hosts:0.0.1.1", BY_HIER });
    hier_go(kinds, &(struct hier_run){ .devices = "001122", BY_HIER });
}

static void or_they_are_not(void **state)
{
    (void)state;
    hier_go(kinds, &(struct hier_run){ .devices = "0101", .hosts = "hosts:0.1.0.1", BY_HIER });
    hier_go(kinds, &(struct hier_run){ .devices = "0110", BY_HIER });
}

static void nor_as_many_on_each(void **state)
{
    (void)state;
    hier_go(kinds,
            &(struct hier_run){ .devices = "01210", .hosts = "hosts:0.1.1.1.0", BY_UNEVEN_HIER });
    hier_go(kinds,
            &(struct hier_run){ .devices = "1000", .hosts = "hosts:1.0.0.0", BY_UNEVEN_HIER });
    hier_go(kinds, &(struct hier_run){ .devices = "00123", BY_UNEVEN_HIER });
    /* most of what NCCL would have is nobody's */
    hier_go(kinds, &(struct hier_run){
                       .devices = "0000123", .of_blocks = "staged", .of_averages = "staged" });
}

/* Before 2.28 it had no gather, no scatter and no all_to_all of its own. */
static void an_older_nccl_will_do(void **state)
{
    (void)state;
    hier_go(kinds, &(struct hier_run){ .devices = "0101",
                                       .hosts = "hosts:0.1.0.1",
                                       .variable = "CT_LIBNCCL",
                                       .value = OLD_FAKE_NCCL,
                                       BY_HIER });
}

static void lists(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    const int p = ct_size(group);
    struct hier_buffers b;

    if (!hier_open(run, ct_rank(group)))
        return;
    b = hier_take((size_t)p * HIER_COUNT * sizeof(float));
    for (int kind = ALL_GATHER; kind < CALL_KINDS; kind++)
        for (int root = 0; root < p; root += has_root((enum kind)kind) ? 1 : p)
            hier_compare(group, run,
                         &(struct pick){ .kind = (enum kind)kind,
                                         .root = root,
                                         .is_list = 1,
                                         .dtype = CT_I32,
                                         .op = CT_SUM,
                                         .n = HIER_COUNT },
                         &b);
    hier_give(group, b);
}

static void blocks_may_lie_apart(void **state)
{
    (void)state;
    hier_go(lists, &(struct hier_run){ .devices = "0101", .hosts = "hosts:0.1.0.1", BY_HIER });
    hier_go(lists, &(struct hier_run){ .devices = "011", BY_HIER });
}

static void lists_of_neighbours(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    struct hier_buffers b;
    struct pick call = { ALL_GATHER, .is_list = 1, .dtype = CT_I32, .op = CT_SUM, .n = HIER_COUNT };

    if (!hier_open(run, ct_rank(group)))
        return;
    b = hier_take((size_t)ct_size(group) * HIER_COUNT * sizeof(float));
    hier_compare(group, run, &call, &b);
    call.is_list = ct_rank(group) == 2; /* which is a team's executor */
    hier_compare(group, run, &call, &b);
    hier_give(group, b);
}

/* Only one rank knows that its blocks lie apart, and all must go the same way. */
static void where_an_all_gather_needs_one_buffer_lists_are_staged(void **state)
{
    (void)state;
    hier_go(
        lists_of_neighbours,
        &(struct hier_run){ .devices = "0011", .hosts = "hosts:0.0.1.1", .of_blocks = "staged" });
}

static void large_ones(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    struct hier_buffers b;

    if (!hier_open(run, ct_rank(group)))
        return;
    b = hier_take((size_t)LARGE * sizeof(int32_t));
    for (int kind = ALL_GATHER; kind < CALL_KINDS; kind++)
        hier_compare(group, run,
                     &(struct pick){ .kind = (enum kind)kind,
                                     .root = 4 * has_root((enum kind)kind),
                                     .in_place = kind == REDUCE_SCATTER,
                                     .dtype = CT_I32,
                                     .op = CT_SUM,
                                     .n = LARGE / 5 },
                     &b);
    hier_give(group, b);
}

static void what_is_larger_than_the_scratch_goes_in_pieces(void **state)
{
    const struct hier_run run = { .devices = "01011", .hosts = "hosts:0.1.0.1.1", BY_UNEVEN_HIER };

    (void)state;
    hier_settings(&run);
    run_processes(5, large_ones, (void *)(uintptr_t)&run);
}

static void one_fails(ct_group *group, void *arg)
{
    static const struct pick call = { ALL_TO_ALL, .dtype = CT_I32, .n = HIER_COUNT };
    const struct hier_run *run = arg;
    const size_t bytes = (size_t)ct_size(group) * HIER_COUNT * sizeof(int32_t);
    ct_status status = CT_OK;
    char *there;

    if (!hier_open(run, ct_rank(group)))
        return;
    there = device_alloc(2 * bytes, 0);
    for (int i = 0; i < HIER_CALLS && status == CT_OK; i++)
        status = make(group, &call, there, there + bytes);
    EXPECT_ERROR(status, ct_rank(group) == 1 ? CT_ERR_NCCL : CT_ERR_PEER, "as it was told to");
    device_free(there); /* nothing uses it any more */
}

/* Of the executor of ranks 1 and 3, in the second call. */
static void an_error_of_nccl_is_told_in_its_words(void **state)
{
    (void)state;
    hier_go(one_fails, &(struct hier_run){ .devices = "0101",
                                           .hosts = "hosts:0.1.0.1",
                                           .variable = "FAKE_NCCL_FAIL",
                                           .value = "ncclAlltoAll:2:1" });
}

/* In a group's first call it is as in test_hier.c. */
static void who_is_left_hears_of_a_death(void **state)
{
    (void)state;
    hier_kill_each(&(struct hier_run){ .devices = "0101", .hosts = "hosts:0.1.0.1" },
                   &(struct pick){ ALL_TO_ALL, .dtype = CT_F32, .n = HIER_COUNT }, "all_to_all", 2);
    hier_kill_each(&(struct hier_run){ .devices = "0100", .hosts = "hosts:0.1.0.0" },
                   &(struct pick){ GATHER, .root = 2, .dtype = CT_F32, .n = HIER_COUNT }, "gather",
                   2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_ranks_of_a_gpu_are_neighbours, hier_forget_settings),
        cmocka_unit_test_teardown(or_they_are_not, hier_forget_settings),
        cmocka_unit_test_teardown(nor_as_many_on_each, hier_forget_settings),
        cmocka_unit_test_teardown(an_older_nccl_will_do, hier_forget_settings),
        cmocka_unit_test_teardown(blocks_may_lie_apart, hier_forget_settings),
        cmocka_unit_test_teardown(where_an_all_gather_needs_one_buffer_lists_are_staged,
                                  hier_forget_settings),
        cmocka_unit_test_teardown(what_is_larger_than_the_scratch_goes_in_pieces,
                                  hier_forget_settings),
        cmocka_unit_test_teardown(an_error_of_nccl_is_told_in_its_words, hier_forget_settings),
        cmocka_unit_test_teardown(who_is_left_hears_of_a_death, hier_forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without NCCL */
}

#endif
