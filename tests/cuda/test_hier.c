/* SPDX-License-Identifier: Apache-2.0 */
/* test_hier.c - several ranks on each of several GPUs that don't all reach each other: which calls
 * go by NCCL between one rank of each GPU, that they have the bits of the same calls on host
 * memory, and who hears of a death.  Calls with a block for each rank: test_hier_blocks.c.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/device.h"
#include "tests/cuda/hier.h"

/* Elements: more than the scratch of a GPU has room for. */
enum { LARGE = HIER_SCRATCH / 4 + 4099 };

/* ---- What is whole ------------------------------------------------------------------------ */

static void whole_kinds(ct_group *group, void *arg)
{
    hier_compare_kinds(group, arg, BROADCAST, ALL_REDUCE);
}

static void between_hosts_one_rank_of_each_gpu_talks(void **state)
{
    (void)state;
    hier_go(whole_kinds,
            &(struct hier_run){ .devices = "0011", .hosts = "hosts:0.0.1.1", BY_HIER });
    hier_go(whole_kinds,
            &(struct hier_run){ .devices = "001122", .hosts = "hosts:0.0.0.0.1.1", BY_HIER });
    hier_go(whole_kinds,
            &(struct hier_run){ .devices = "0101", .hosts = "hosts:0.1.0.1", BY_HIER });
    hier_go(whole_kinds,
            &(struct hier_run){ .devices = "0111", .hosts = "hosts:0.1.1.1", BY_UNEVEN_HIER });
}

static void so_it_is_between_gpus_that_dont_reach_each_other(void **state)
{
    (void)state;
    hier_go(whole_kinds, &(struct hier_run){ .devices = "0011", BY_HIER });
    /* three that are alone */
    hier_go(whole_kinds, &(struct hier_run){ .devices = "00123", BY_UNEVEN_HIER });
}

static void large_reduce(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    struct hier_buffers b;

    if (!hier_open(run, ct_rank(group)))
        return;
    b = hier_take((size_t)LARGE * sizeof(int32_t));
    hier_compare(group, run,
                 &(struct pick){ REDUCE, .root = 3, .dtype = CT_I32, .op = CT_SUM, .n = LARGE },
                 &b);
    hier_give(group, b);
}

static void what_is_larger_than_the_scratch_goes_in_pieces(void **state)
{
    const struct hier_run run = { .devices = "0011", .hosts = "hosts:0.0.1.1", BY_HIER };

    (void)state;
    hier_settings(&run);
    run_processes(4, large_reduce, (void *)(uintptr_t)&run);
}

/* ---- Which way ---------------------------------------------------------------------------- */

/* A sum of floats, and one of integers as is expected of blocks. */
static void sums(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    void *there;

    if (!hier_open(run, ct_rank(group)))
        return;
    there = device_alloc(sizeof one, 0);
    for (int i = 0; i < HIER_CALLS; i++) {
        EXPECT(device_put(at(there), &one, sizeof one) == CUDA_SUCCESS);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), run->expected));
        EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
        EXPECT(sum == (float)p);
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_I32, CT_MAX, NULL));
        EXPECT(!strcmp(ct_last_algorithm(group), run->of_blocks));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

/* Behind a call that is not for NCCL, which knows no such numbers. */
static void in_a_stream(ct_group *group, void *arg)
{
    const struct hier_run *run = arg;
    const int p = ct_size(group);
    const float one = 1;
    float sum = 0;
    CUstream stream;
    float *there;

    if (!hier_open(run, ct_rank(group))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    there = device_alloc(2 * sizeof one, 0);
    EXPECT(device_put(at(there), &one, sizeof one) == CUDA_SUCCESS);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_all_reduce(group, there + 1, there + 1, 1, CT_I16, CT_SUM, NULL));
    for (int i = 0; i < 2; i++)
        EXPECT_OK(ct_all_reduce(group, there, there, 1, CT_F32, CT_SUM, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(!strcmp(ct_last_algorithm(group), "hier"));
    EXPECT(device.cuMemcpyDtoH(&sum, at(there), sizeof sum) == CUDA_SUCCESS);
    EXPECT(sum == (float)(p * p));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    device_free(there);
}

static void it_begins_while_no_stream_waits(void **state)
{
    const struct hier_run run = { .devices = "0011", .hosts = "hosts:0.0.1.1" };

    (void)state;
    hier_settings(&run);
    run_processes(4, in_a_stream, (void *)(uintptr_t)&run);
}

static void what_cant_be_goes_another_way(void **state)
{
    static const char hosts[] = "hosts:0.0.1.1";

    (void)state;
    hier_go(sums, &(struct hier_run){ "0011", hosts, "staged", "hier", NULL, "CT_ORDER", "nodes" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "hier", "hier", NULL, "CT_ORDER", "fast" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "hier", "hier", NULL, "CT_DEVICE", "fused" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "hier", "hier", NULL, "CT_DEVICE", "nccl" });
    hier_go(sums,
            &(struct hier_run){ "0011", hosts, "staged", "staged", NULL, "CT_DEVICE", "staged" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "staged", "staged", NULL, "CT_LIBNCCL",
                                      "/nowhere" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "staged", "staged", NULL, "CT_LINK", "tcp" });
    hier_go(sums, &(struct hier_run){ "0011", hosts, "staged", "staged", NULL, "FAKE_NCCL_FAIL",
                                      "ncclCommInitRankConfig:1:1" });
    /* one of the GPUs is none that libct's kernels are for */
    hier_go(sums, &(struct hier_run){ "0011", hosts, "staged", "staged", NULL, "FAKE_CUDA_KERNELS",
                                      "0" });
    /* one GPU, two containers */
    hier_go(sums,
            &(struct hier_run){ "0011", "hosts:0.1.1.0", "staged", "staged", NULL, NULL, NULL });
}

static void who_is_left_hears_of_a_death(void **state)
{
    static const struct hier_run run = { .devices = "0011", .hosts = "hosts:0.0.1.1" };
    static const struct pick call = { ALL_REDUCE, .in_place = 1, .dtype = CT_F32, .op = CT_SUM,
                                      .n = HIER_COUNT };

    (void)state;
    hier_kill_each(&run, &call, "all_reduce", 1);
    hier_kill_each(&run, &call, "all_reduce", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(between_hosts_one_rank_of_each_gpu_talks, hier_forget_settings),
        cmocka_unit_test_teardown(so_it_is_between_gpus_that_dont_reach_each_other,
                                  hier_forget_settings),
        cmocka_unit_test_teardown(what_is_larger_than_the_scratch_goes_in_pieces,
                                  hier_forget_settings),
        cmocka_unit_test_teardown(it_begins_while_no_stream_waits, hier_forget_settings),
        cmocka_unit_test_teardown(what_cant_be_goes_another_way, hier_forget_settings),
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
