/* SPDX-License-Identifier: Apache-2.0 */
/* test_mappings.c - what one rank has mapped of the others' device memory, to work for all, and
 * when that ends: with the groups that used it.  Here to free what is mapped elsewhere ends the
 * program.
 */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/device.h"
#include "tests/cuda/handover.h"

enum { COUNT = 1000 };

/* By all ranks of the group, with memory of their own: the first has it mapped. */
static void sum(ct_group *group, int32_t *buffer)
{
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
}

static void groups_end(ct_group *group, void *arg)
{
    const int me = ct_rank(group), together = ct_size(group) - 1;
    int32_t *buffer, *kept;
    ct_group *one, *other, *last;
    int before;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    kept = device_alloc(COUNT * sizeof *buffer, 1);
    buffer = device_alloc(COUNT * sizeof *buffer, 1);
    before = device_allocations_here();
    EXPECT_OK(ct_split_group(group, 0, me, &one));
    EXPECT_OK(ct_split_group(group, 0, me, &other));
    EXPECT_OK(ct_split_group(group, 0, me, &last));
    sum(one, buffer);
    sum(other, buffer);
    sum(other, kept);
    EXPECT(device_allocations_here() == before + (me == 0 ? 2 * together : 0));
    EXPECT_OK(ct_destroy_process_group(one));
    EXPECT(device_allocations_here() == before + (me == 0 ? 2 * together : 0));
    sum(other, buffer);
    sum(last, kept);
    EXPECT_OK(ct_destroy_process_group(other));
    EXPECT(device_allocations_here() == before + (me == 0 ? together : 0));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
    sum(last, kept);
    EXPECT_OK(ct_destroy_process_group(last));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(kept);
}

static void memory_may_be_freed_when_the_last_group_that_used_it_has_ended(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MAPPED", "stays", 1);
    run_processes(3, groups_end, NULL);
    run_processes(2, groups_end, NULL);
    unsetenv("FAKE_CUDA_MAPPED");
}

/* Rank 1 is gone: what it had stays on the device for as long as it is mapped. */
static void owner_is_gone(ct_group *group, void *arg)
{
    int32_t *buffer;
    ct_status status = CT_OK;
    int before;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(COUNT * sizeof *buffer, 1);
    before = device_allocations_here();
    sum(group, buffer);
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1)
        rank_leaves();
    while (status == CT_OK)
        status = ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL);
    EXPECT_ERROR(status, CT_ERR_PEER, "rank 1");
    EXPECT(device_allocations_here() == before);
    device_free(buffer);
}

static void a_call_that_fails_for_a_rank_that_is_gone_leaves_nothing_mapped(void **state)
{
    (void)state;
    run_processes(3, owner_is_gone, NULL);
}

/* Rank 0 has nothing in the call, and would have worked for the others. */
static void idle_leader(ct_group *group, void *arg)
{
    const size_t counts[] = { 0, 1, 1 };
    const int me = ct_rank(group);
    ct_status status = CT_OK;
    int32_t *buffer;
    int before;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(COUNT * sizeof *buffer, 1);
    before = device_allocations_here();
    sum(group, buffer);
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 1)
        rank_leaves();
    while (status == CT_OK)
        status = ct_gather_v(group, me == 0 ? NULL : buffer + COUNT / 2, counts[me], buffer, counts,
                             NULL, CT_I32, 2, NULL);
    EXPECT_ERROR(status, CT_ERR_PEER, "rank 1");
    EXPECT(device_allocations_here() == before);
    device_free(buffer);
}

static void nor_does_one_where_the_rank_has_nothing_itself(void **state)
{
    (void)state;
    run_processes(3, idle_leader, NULL);
}

/* ---- Memory of libct's own ---------------------------------------------------------------- */

/* What can't be mapped bounces through memory that can.  The last rank leaves each group while the
 * first still has its memory mapped. */
static void one_leaves_first(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int before = 0;
    CUdeviceptr pooled;

    if (!EXPECT(device_open(0))
        || !EXPECT(device.cuMemAllocAsync(&pooled, COUNT * sizeof(int32_t), NULL) == CUDA_SUCCESS))
        return;
    for (int i = 0; i < 4; i++) {
        ct_group *part;

        EXPECT_OK(ct_split_group(group, 0, me, &part));
        sum(part, (int32_t *)(uintptr_t)pooled);
        EXPECT_OK(ct_barrier(group, NULL));
        if (me == 0)
            await(arg, i);
        EXPECT_OK(ct_destroy_process_group(part));
        if (me == ct_size(group) - 1)
            mark(arg, i);
        if (i == 0)
            before = device_allocations_here();
    }
    EXPECT(device_allocations_here() == before); /* each group got what the one before it had */
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuMemFree(pooled) == CUDA_SUCCESS);
}

static void memory_of_libcts_own_is_never_freed_but_used_again(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_MAPPED", "stays", 1);
    run_processes(3, one_leaves_first, (void *)(uintptr_t) "left");
    unsetenv("FAKE_CUDA_MAPPED");
}

/* ---- While a stream waits for a call ------------------------------------------------------ */

/* To unmap may be to wait for all that runs: so for the call that unmaps.  Then such a call is
 * staged, and the next one finds it done. */
static void in_a_stream(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_status status = CT_OK;
    ct_group *part = NULL;
    CUstream stream;
    int32_t *buffer;
    int before;

    if (!EXPECT(device_open(0)) || !EXPECT_OK(ct_split_group(group, 0, me, &part))
        || !EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    before = device_allocations_here();
    buffer = device_alloc(COUNT * sizeof *buffer, 1);
    sum(part, buffer);
    EXPECT_OK(ct_set_stream(part, stream));
    for (size_t count = COUNT; count < 5 * COUNT; count += COUNT) {
        EXPECT_OK(ct_barrier(part, NULL));
        device_free(buffer);
        buffer = device_alloc(count * sizeof *buffer, 1); /* at the same place */
        EXPECT_OK(ct_all_reduce(part, buffer, buffer, count, CT_I32, CT_MAX, NULL));
    }
    EXPECT_OK(ct_barrier(part, NULL));
    EXPECT_OK(ct_all_reduce(part, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(!strcmp(ct_last_algorithm(part), "fused"));
    EXPECT_OK(ct_barrier(part, NULL));
    mark(arg, me);
    if (me == 1) {
        await(arg, 0);
        rank_leaves();
    }
    while (status == CT_OK) {
        status = ct_all_reduce(part, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL);
        EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    }
    EXPECT_ERROR(status, CT_ERR_PEER, "rank 1");
    EXPECT_OK(ct_destroy_process_group(part));
    device_free(buffer);
    EXPECT(device_allocations_here() == before);
}

static void a_call_in_a_stream_does_not_wait_for_itself_to_unmap(void **state)
{
    (void)state;
    run_by("host", 3, in_a_stream, (void *)(uintptr_t) "unmaps by hosts");
    run_by("stream", 3, in_a_stream, (void *)(uintptr_t) "unmaps by streams");
}

/* Rank 1 makes the call that rank 0's stream stands still for when rank 0 has left the other group:
 * what that had mapped is of the other GPU. */
static void on_two_gpus(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    CUstream stream;
    ct_group *parts[2];
    int32_t *buffers[2];

    for (int i = 0; i < 2; i++) {
        if (!EXPECT(device_open(i)) || !EXPECT_OK(ct_split_group(group, 0, me, &parts[i])))
            return;
        buffers[i] = device_alloc(COUNT * sizeof(int32_t), 1);
        sum(parts[i], buffers[i]);
    }
    if (!EXPECT(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS))
        return;
    EXPECT_OK(ct_set_stream(parts[1], stream));
    if (me == 1)
        await(arg, 0);
    EXPECT_OK(ct_all_reduce(parts[1], buffers[1], buffers[1], COUNT, CT_I32, CT_MAX, NULL));
    if (me == 0) {
        EXPECT_OK(ct_destroy_process_group(parts[0]));
        mark(arg, 0);
    }
    EXPECT(device.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    if (me == 1)
        EXPECT_OK(ct_destroy_process_group(parts[0]));
    EXPECT_OK(ct_destroy_process_group(parts[1]));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT(device.cuStreamDestroy(stream) == CUDA_SUCCESS);
    for (int i = 0; i < 2; i++)
        device_free(buffers[i]);
}

static void nor_does_it_for_a_stream_of_another_gpu(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    run_by("host", 2, on_two_gpus, (void *)(uintptr_t) "other");
    unsetenv("FAKE_CUDA_DEVICES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_be_freed_when_the_last_group_that_used_it_has_ended),
        cmocka_unit_test(a_call_that_fails_for_a_rank_that_is_gone_leaves_nothing_mapped),
        cmocka_unit_test(nor_does_one_where_the_rank_has_nothing_itself),
        cmocka_unit_test(memory_of_libcts_own_is_never_freed_but_used_again),
        cmocka_unit_test(a_call_in_a_stream_does_not_wait_for_itself_to_unmap),
        cmocka_unit_test(nor_does_it_for_a_stream_of_another_gpu),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
