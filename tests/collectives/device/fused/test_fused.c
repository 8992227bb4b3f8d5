/* SPDX-License-Identifier: Apache-2.0 */
/* test_fused.c - what one rank does for all that share a GPU: every form of a call, by one launch.
 *
 * Runs against tests/fake/, or against the driver of CT_TEST_DRIVER without what only the fake one
 * can be told to do. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/numbers.h"
#include "tests/marks.h"

/* Of each operation in turn: rank 0's second launch from now on fails, so one call goes well and
 * the next one does not. */
static void launches(ct_group *group, void *arg)
{
    const int p = ct_size(group), which = *(const int *)arg;
    ct_status status[2];
    int32_t *send, *recv;

    if (!EXPECT(device_open(0)))
        return;
    send = device_alloc((size_t)p * COUNT * sizeof *send, 1);
    recv = device_alloc((size_t)p * COUNT * sizeof *recv, 0);
    EXPECT_OK(
        ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_SUM, NULL)); /* loads the kernels */
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:2", 1);
    EXPECT(ct_rank(group) != 0 || device.cuInit(0) == CUDA_SUCCESS);
    for (int i = 0; i < 2; i++)
        status[i] = which == 0   ? ct_reduce_scatter(group, send, recv, COUNT, CT_I32, CT_SUM, NULL)
                    : which == 1 ? ct_all_gather(group, send, recv, COUNT, CT_I32, NULL)
                    : which == 2 ? ct_gather(group, send, recv, COUNT, CT_I32, 1, NULL)
                    : which == 3 ? ct_scatter(group, send, recv, COUNT, CT_I32, 1, NULL)
                                 : ct_all_to_all(group, send, recv, COUNT, CT_I32, NULL);
    EXPECT(status[0] == CT_OK && status[1] != CT_OK);
    device_free(send);
    device_free(recv);
}

static void a_call_is_one_launch(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    for (int which = 0; which < 5; which++)
        run_processes(4, launches, &which);
    unsetenv("FAKE_CUDA_FAIL");
}

/* Element i of block b of rank r is 100 r + b, in memory of its own for each block; by list forms,
 * then by those with a count for each rank, where block b has b elements and a gap behind it. */
static void forms(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    void *send[MAX_RANKS], *recv[MAX_RANKS];
    size_t counts[MAX_RANKS], displs[MAX_RANKS];
    int32_t *all, here[3 * MAX_RANKS];

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    for (int i = 0; i < p; i++) {
        send[i] = numbers(100 * me + i);
        recv[i] = numbers(-1);
        counts[i] = (size_t)i;
        displs[i] = 3 * (size_t)i;
    }
    EXPECT_OK(ct_all_to_all_list(group, (const void *const *)send, recv, COUNT, CT_I32, NULL));
    EXPECT(is_fused(group));
    for (int i = 0; i < p; i++)
        EXPECT(all_are(recv[i], 100 * i + me));
    EXPECT_OK(ct_all_gather_list(group, send[0], recv, COUNT, CT_I32, NULL));
    EXPECT(is_fused(group));
    for (int i = 0; i < p; i++)
        EXPECT(all_are(recv[i], 100 * i));
    EXPECT_OK(ct_reduce_scatter_list(group, (const void *const *)send, recv[0], COUNT, CT_I32,
                                     CT_MAX, NULL));
    EXPECT(is_fused(group) && all_are(recv[0], 100 * (p - 1) + me));
    EXPECT_OK(ct_gather_list(group, send[1], recv, COUNT, CT_I32, 1, NULL));
    EXPECT(is_fused(group) && (me != 1 || all_are(recv[2], 201)));
    EXPECT_OK(ct_scatter_list(group, (const void *const *)send, recv[0], COUNT, CT_I32, 2, NULL));
    EXPECT(is_fused(group) && all_are(recv[0], 200 + me));

    all = recv[p - 1];
    CU(device.cuMemsetD8Async(at(all), 0xff, COUNT * sizeof *all, NULL));
    EXPECT_OK(ct_all_gather_v(group, send[0], counts[me], all, counts, displs, CT_I32, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(all), sizeof here));
    for (int i = 0; i < p; i++)
        for (int j = 0; j < 3; j++)
            EXPECT(here[3 * i + j] == (j < i ? 100 * i : -1));
    EXPECT_OK(ct_reduce_scatter_v(group, send[1], all, counts, CT_I32, CT_SUM, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(all), sizeof here));
    EXPECT(me == 0 || here[me - 1] == 100 * p * (p - 1) / 2 + p);
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < p; i++) {
        device_free(send[i]);
        device_free(recv[i]);
    }
}

static void lists_and_counts_for_each_rank_are_fused(void **state)
{
    (void)state;
    run_processes(3, forms, NULL);
    run_threads(3, forms, NULL);
}

/* Rank r's input is multiplied by r + 1; rank 0's is not. */
static void scales(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    const float factor = (float)(me + 1), ones[] = { 1, 1, 1, 1 };
    float here[4], *buffer;
    ct_op op = CT_SUM;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = device_alloc(sizeof ones, 0);
    CU(device_put(at(buffer), ones, sizeof ones));
    if (me > 0)
        EXPECT_OK(ct_op_premul(&factor, CT_F32, &op));
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, 4, CT_F32, op, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(buffer), sizeof here));
    EXPECT(here[0] == p * (p + 1) / 2 && here[3] == p * (p + 1) / 2);
    if (me > 0)
        ct_op_free(op);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void premul_sum_is_fused(void **state)
{
    (void)state;
    run_processes(3, scales, NULL);
    run_threads(2, scales, NULL);
}

/* Rank r gives rank s (r + s) % p numbers 10 r + s, out of three it has for each; one rank has and
 * gets nothing, and gives no buffers. */
static void nothing(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group), idle = *(const int *)arg, root = 1;
    size_t sends[MAX_RANKS], recvs[MAX_RANKS], displs[MAX_RANKS];
    int32_t here[3 * MAX_RANKS], *send, *recv;

    if (!EXPECT(device_open(0)))
        return;
    send = numbers(0);
    recv = numbers(-1);
    EXPECT_OK(ct_all_reduce(group, send, send, 1, CT_I32, CT_SUM, NULL));
    for (int i = 0; i < p; i++) {
        sends[i] = recvs[i] = i == idle || me == idle ? 0 : (size_t)((i + me) % p);
        displs[i] = 3 * (size_t)i;
        for (int j = 0; j < 3; j++)
            here[3 * i + j] = 10 * me + i;
    }
    CU(device_put(at(send), here, (size_t)(3 * p) * sizeof *here));
    EXPECT_OK(ct_all_to_all_v(group, me == idle ? NULL : send, sends, displs,
                              me == idle ? NULL : recv, recvs, displs, CT_I32, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(recv), (size_t)(3 * p) * sizeof *here));
    for (int i = 0; i < 3 * p; i++)
        EXPECT(here[i] == ((size_t)(i % 3) < recvs[i / 3] ? 10 * (i / 3) + me : -1));
    for (int i = 0; i < p; i++)
        recvs[i] = i == idle ? 0 : (size_t)i + 1;
    EXPECT_OK(ct_gather_v(group, me == idle ? NULL : send, recvs[me], recv, recvs, displs, CT_I32,
                          root, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(recv), (size_t)(3 * p) * sizeof *here));
    for (int i = 0; i < 3 * p && me == root; i++)
        EXPECT((size_t)(i % 3) >= recvs[i / 3] || here[i] == 10 * (i / 3));
    EXPECT_OK(ct_scatter_v(group, send, recvs, displs, me == idle ? NULL : recv, recvs[me], CT_I32,
                           root, NULL));
    EXPECT(is_fused(group));
    CU(device.cuMemcpyDtoH(here, at(recv), sizeof *here));
    EXPECT(me == idle || here[0] == 10 * root + me);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(send);
    device_free(recv);
}

static void a_rank_may_have_nothing_in_a_fused_call(void **state)
{
    static const int idle[] = { 0, 2, -1 };

    (void)state;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        run_processes(3, nothing, (void *)(uintptr_t)&idle[i]);
        run_threads(3, nothing, (void *)(uintptr_t)&idle[i]);
    }
}

/* Rank 1 gives two numbers where the root awaits three: it is told as on host memory, by its next
 * call if it had finished its part. */
static void differs(ct_group *group, void *arg)
{
    const size_t counts[] = { 1, 3 };
    const int me = ct_rank(group);
    int32_t *buffer;
    ct_status status;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = numbers(1);
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, 1, CT_I32, CT_SUM, NULL));
    status =
        ct_gather_v(group, buffer + 10, me == 0 ? 1 : 2, buffer, counts, NULL, CT_I32, 0, NULL);
    if (me == 1 && status == CT_OK)
        status = ct_barrier(group, NULL);
    EXPECT_ERROR(status, CT_ERR_MISMATCH, "gather_v #2|ranks 0 and 1|different counts");
    all_marked(group, "told");
    device_free(buffer);
}

static void counts_that_differ_are_found(void **state)
{
    (void)state;
    run_processes(2, differs, NULL);
}

/* Twice in the group's stream, where nothing may be loaded. */
static void without_kernels(ct_group *group, void *arg)
{
    CUstream stream;
    int32_t *buffer;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    buffer = numbers(1);
    EXPECT_OK(ct_set_stream(group, stream));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL));
    CU(device.cuStreamSynchronize(stream));
    EXPECT(all_are(buffer, 1) && !strcmp(ct_last_algorithm(group), "staged"));
    EXPECT_OK(ct_barrier(group, NULL));
    CU(device.cuStreamDestroy(stream));
    device_free(buffer);
}

static void a_gpu_that_the_kernels_are_not_for_is_staged(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_KERNELS", "", 1);
    run_processes(1, without_kernels, NULL);
    run_processes(3, without_kernels, NULL);
    run_threads(2, without_kernels, NULL);
    unsetenv("FAKE_CUDA_KERNELS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_one_launch),
        cmocka_unit_test(lists_and_counts_for_each_rank_are_fused),
        cmocka_unit_test(premul_sum_is_fused),
        cmocka_unit_test(a_rank_may_have_nothing_in_a_fused_call),
        cmocka_unit_test(counts_that_differ_are_found),
        cmocka_unit_test(a_gpu_that_the_kernels_are_not_for_is_staged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
