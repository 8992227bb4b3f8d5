/* SPDX-License-Identifier: Apache-2.0 */
/* test_bounces.c - fused calls on memory that no other process can map: it is copied on the GPU, to
 * and from memory of libct's own.
 *
 * Runs against tests/fake/, or against the driver of CT_TEST_DRIVER without what only the fake one
 * can be told to do. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "tests/cuda/numbers.h"

/* Element i of block b of rank r is 1000 r + b. */
static void fill_blocks(CUdeviceptr there, int p, int me)
{
    int32_t here[3 * MAX_RANKS];

    for (int i = 0; i < 3 * p; i++)
        here[i] = 1000 * me + i / 3;
    CU(device_put(there, here, (size_t)p * 3 * sizeof *here));
}

static int blocks_are(CUdeviceptr there, int p, int by_rank, int by_block)
{
    int32_t here[3 * MAX_RANKS];

    if (device.cuMemcpyDtoH(here, there, (size_t)p * 3 * sizeof *here) != CUDA_SUCCESS)
        return 0;
    for (int i = 0; i < 3 * p; i++)
        if (here[i] != i / 3 * by_rank + by_block)
            return 0;
    return 1;
}

/* Blocks of three numbers in memory that no other process can map: rank 1's are ordinary. */
static void bounces(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    const size_t bytes = (size_t)p * 3 * sizeof(int32_t);
    CUdeviceptr a = 0, b = 0;
    int32_t *second;
    const void *list[MAX_RANKS];

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    if (me == 1) {
        a = at(device_alloc(bytes, 0));
        b = at(device_alloc(bytes, 0));
    } else {
        CU(device.cuMemAllocAsync(&a, bytes, NULL));
        CU(device.cuMemAllocAsync(&b, bytes, NULL));
    }
    second = (int32_t *)(uintptr_t)b;
    fill_blocks(a, p, me);
    EXPECT_OK(ct_all_to_all(group, (void *)(uintptr_t)a, second, 3, CT_I32, NULL));
    EXPECT(is_fused(group) && blocks_are(b, p, 1000, me) && blocks_are(a, p, 1, 1000 * me));
    EXPECT_OK(ct_all_to_all(group, second, second, 3, CT_I32, NULL)); /* in place: back again */
    EXPECT(is_fused(group) && blocks_are(b, p, 1, 1000 * me));
    EXPECT_OK(ct_all_gather(group, second + 3 * me, second, 3, CT_I32, NULL)); /* in place */
    EXPECT(is_fused(group) && blocks_are(b, p, 1001, 0));
    fill_blocks(b, p, me);
    EXPECT_OK(ct_broadcast(group, second, (size_t)(3 * p), CT_I32, 2, NULL));
    EXPECT(is_fused(group) && blocks_are(b, p, 1, 2000));
    for (int i = 0; i < p; i++)
        list[i] = second + 3 * (p - 1 - i);
    EXPECT_OK(ct_reduce_scatter_list(group, list, (void *)(uintptr_t)a, 3, CT_I32, CT_SUM, NULL));
    EXPECT(is_fused(group) && blocks_are(a, 1, 0, p * (2000 + p - 1 - me)));
    EXPECT_OK(ct_all_reduce(group, second, second, (size_t)(3 * p), CT_I32, CT_SUM, NULL));
    EXPECT(is_fused(group) && blocks_are(b, p, p, p * 2000));
    EXPECT_OK(ct_barrier(group, NULL));
    CU(device.cuMemFree(a));
    CU(device.cuMemFree(b));
}

static void memory_of_pools_bounces_on_the_gpu(void **state)
{
    (void)state;
    run_processes(3, bounces, NULL);
    run_threads(3, bounces, NULL);
}

/* One rank's GPU has no memory for it, once. */
static void lacks_room(ct_group *group, void *arg)
{
    const size_t bytes = COUNT * sizeof(int32_t);
    CUdeviceptr buffer;

    (void)arg;
    if (!EXPECT(device_open(0)) || !CU(device.cuMemAllocAsync(&buffer, bytes, NULL)))
        return;
    setenv("FAKE_CUDA_FAIL_ALLOC", "1", 1);
    EXPECT(ct_rank(group) != 1 || device.cuInit(0) == CUDA_SUCCESS);
    for (int i = 0; i < 3; i++) {
        int32_t here = 1;

        CU(device_put(buffer, &here, sizeof here));
        EXPECT_OK(ct_all_reduce(group, (void *)(uintptr_t)buffer, (void *)(uintptr_t)buffer, 1,
                                CT_I32, CT_SUM, NULL));
        CU(device.cuMemcpyDtoH(&here, buffer, sizeof here));
        EXPECT(here == ct_size(group) && is_fused(group) == (i > 0));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    CU(device.cuMemFree(buffer));
}

static void where_there_is_no_room_to_bounce_a_call_is_staged(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(3, lacks_room, NULL);
    unsetenv("FAKE_CUDA_FAIL_ALLOC");
}

/* Two blocks that lie differently, so two launches bring them to where they can be mapped; rank 0's
 * second one fails while the first still reads. */
static void half_bounced(ct_group *group, void *arg)
{
    CUdeviceptr buffer;
    const void *list[2];
    int32_t *there;

    (void)arg;
    setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    setenv("FAKE_CUDA_LAG_US", "20000", 1);
    if (!EXPECT(device_open(0)) || !CU(device.cuMemAllocAsync(&buffer, 4096, NULL)))
        return;
    CU(device.cuStreamSynchronize(NULL));
    there = (int32_t *)(uintptr_t)buffer;
    list[0] = there;
    list[1] = there + 5;
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:2", 1);
    EXPECT(ct_rank(group) != 0 || device.cuInit(0) == CUDA_SUCCESS);
    EXPECT_STATUS(ct_reduce_scatter_list(group, list, there + 64, 3, CT_I32, CT_SUM, NULL),
                  ct_rank(group) == 0 ? CT_ERR_CUDA : CT_ERR_PEER);
    CU(device.cuMemFree(buffer)); /* which ends the program if it is in use */
}

static void a_bounce_that_fails_leaves_nothing_at_the_buffers(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, half_bounced, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_pools_bounces_on_the_gpu),
        cmocka_unit_test(where_there_is_no_room_to_bounce_a_call_is_staged),
        cmocka_unit_test(a_bounce_that_fails_leaves_nothing_at_the_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
