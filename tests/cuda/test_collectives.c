/* SPDX-License-Identifier: Apache-2.0 */
/* test_collectives.c - calls on device memory: which way they go, what they wait for, what they
 * refuse.  That their results are right is for collectives/test_properties.c to show, which makes
 * its random calls there too (ctest cuda/properties).
 *
 * Runs against tests/fake/, or against the driver of CT_TEST_DRIVER without what only the fake one
 * can be told to do. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/ct_cuda.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 1000, SOON_MS = 100, ROUNDS = 20, LATE_MS = 100, GIVE_UP_MS = 150 };

#define CU(call) EXPECT((call) == CUDA_SUCCESS)

static CUdeviceptr at(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

/* Of a process; its driver begins all that is enqueued so late. */
static int open_late(int us)
{
    char text[16];

    snprintf(text, sizeof text, "%d", us);
    setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    setenv("FAKE_CUDA_LAG_US", text, 1);
    return device_open(0);
}

/* COUNT numbers on the device, all of them `value`. */
static int32_t *numbers(int32_t value)
{
    int32_t here[COUNT];
    void *there = device_alloc(sizeof here, 0);

    for (int i = 0; i < COUNT; i++)
        here[i] = value;
    if (!there || device.cuMemcpyHtoD(at(there), here, sizeof here) != CUDA_SUCCESS)
        abort();
    return there;
}

static int all_are(const int32_t *there, int32_t value)
{
    int32_t here[COUNT];

    if (device.cuMemcpyDtoH(here, at(there), sizeof here) != CUDA_SUCCESS)
        return 0;
    for (int i = 0; i < COUNT; i++)
        if (here[i] != value)
            return 0;
    return 1;
}

static int is_fused(ct_group *group)
{
    return !strcmp(ct_last_algorithm(group), "fused");
}

/* ---- The ways ------------------------------------------------------------------ */

struct way {
    const char *variable, *value; /* of the environment; NULL: none */
    int devices;
    const char *expected;
    int late; /* 1 + the rank whose driver is */
};

static void goes(ct_group *group, void *arg)
{
    const struct way *way = arg;
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *send, *recv;

    if (!EXPECT(way->late == me + 1 ? open_late(2000) : device_open(me % way->devices)))
        return;
    send = numbers(me + 1);
    recv = numbers(-1);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_OK(ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_SUM, NULL));
        EXPECT(all_are(recv, p * (p + 1) / 2));
        EXPECT(!strcmp(ct_last_algorithm(group), way->expected));
    }
    EXPECT(all_are(send, me + 1));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(send);
    device_free(recv);
}

static void go(const struct way *way)
{
    char devices[4];

    if (way->variable)
        setenv(way->variable, way->value, 1);
    snprintf(devices, sizeof devices, "%d", way->devices);
    setenv("FAKE_CUDA_DEVICES", devices, 1);
    run_processes(4, goes, (void *)(uintptr_t)way);
    if (!way->late)
        run_threads(3, goes, (void *)(uintptr_t)way);
    if (way->variable)
        unsetenv(way->variable);
    unsetenv("FAKE_CUDA_DEVICES");
}

static void one_rank_works_for_all_that_share_a_gpu(void **state)
{
    (void)state;
    go(&(struct way){ NULL, NULL, 1, "fused", 0 });
    run_processes(1, goes, &(struct way){ NULL, NULL, 1, "fused", 0 });
}

static void ranks_that_share_no_gpu_go_through_the_host(void **state)
{
    (void)state;
    if (device_is_fake()) /* else there may be one GPU only */
        go(&(struct way){ NULL, NULL, 2, "staged", 0 });
    go(&(struct way){ "CT_FAULT", "hosts:0.1.0.1", 1, "staged", 0 });
    go(&(struct way){ "CT_LINK", "tcp", 1, "staged", 0 });
}

static void memory_that_cant_be_mapped_goes_through_the_host(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    go(&(struct way){ "FAKE_CUDA_IPC", "0", 1, "staged", 0 });
}

static void the_user_may_choose_the_way(void **state)
{
    (void)state;
    go(&(struct way){ "CT_DEVICE", "staged", 1, "staged", 0 });
}

/* What one rank's driver does late, all of it, changes nothing. */
static void a_gpu_that_is_late_for_one_rank_spoils_nothing(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    for (int late = 1; late <= 4; late++) {
        go(&(struct way){ NULL, NULL, 1, "fused", late });
        go(&(struct way){ "CT_DEVICE", "staged", 1, "staged", late });
    }
}

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
    CU(device.cuMemcpyHtoD(at(buffer), ones, sizeof ones));
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

/* Element i of block b of rank r is 1000 r + b. */
static void fill_blocks(CUdeviceptr there, int p, int me)
{
    int32_t here[3 * MAX_RANKS];

    for (int i = 0; i < 3 * p; i++)
        here[i] = 1000 * me + i / 3;
    CU(device.cuMemcpyHtoD(there, here, (size_t)p * 3 * sizeof *here));
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

        CU(device.cuMemcpyHtoD(buffer, &here, sizeof here));
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
    CU(device.cuMemcpyHtoD(at(send), here, (size_t)(3 * p) * sizeof *here));
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

/* Rank 1 gives two numbers where the root awaits three: it is told as on host memory. */
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
    EXPECT(me == 1 || (status != CT_OK && strstr(ct_last_error(), "gather_v")));
    device_free(buffer);
}

static void counts_that_differ_are_told(void **state)
{
    (void)state;
    run_processes(2, differs, NULL);
}

/* Where the root's buffers are a GPU's and the others' managed, which is the host's, nobody works
 * for all. */
static void alternates(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    const size_t counts[] = { 1, 1, 1 };
    int32_t *send, *recv, *managed, here;
    CUdeviceptr there = 0;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    CU(device.cuMemAllocManaged(&there, sizeof here, CU_MEM_ATTACH_GLOBAL));
    managed = (int32_t *)(uintptr_t)there;
    *managed = me;
    send = numbers(me);
    recv = numbers(-1);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(
            ct_gather_v(group, me == 0 ? send : managed, 1, recv, counts, NULL, CT_I32, 0, NULL));
        EXPECT(!is_fused(group));
        CU(device.cuMemcpyDtoH(&here, at(recv + 2), sizeof here));
        EXPECT(me > 0 || here == 2);
        EXPECT_OK(ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_MIN, NULL));
        EXPECT(all_are(recv, 0));
        EXPECT(is_fused(group));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(send);
    device_free(recv);
    CU(device.cuMemFree(there));
}

static void a_call_that_cant_be_fused_does_not_keep_the_next_one_from_it(void **state)
{
    (void)state;
    run_processes(3, alternates, NULL);
    run_threads(3, alternates, NULL);
}

/* ---- What is waited for ---------------------------------------------------------- */

/* The input is written in the group's stream, which stands still when the call is made. */
static void waits_for_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *send, *recv;
    struct gate gate;
    ct_work *work = NULL;
    CUstream stream;
    int done = 1;

    (void)arg;
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    send = numbers(0);
    recv = numbers(-1);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT(gate_close(&gate, stream));
    CU(device.cuMemsetD8Async(at(send), 1, COUNT * sizeof *send, stream));
    EXPECT_OK(ct_all_reduce(group, send, recv, COUNT, CT_I32, CT_SUM, &work));
    nap(SOON_MS / 4);
    EXPECT_OK(ct_test(work, &done));
    EXPECT(!done);
    gate_open(&gate);
    EXPECT_OK(ct_wait(work));
    EXPECT(all_are(recv, p * 0x01010101));
    EXPECT_OK(ct_barrier(group, NULL));
    (void)me;
    device_free(send);
    device_free(recv);
    CU(device.cuStreamDestroy(stream));
}

static void a_call_begins_when_its_stream_has_done_what_it_had_to(void **state)
{
    (void)state;
    run_processes(3, waits_for_stream, NULL);
    run_threads(2, waits_for_stream, NULL);
    setenv("CT_DEVICE", "staged", 1);
    run_processes(2, waits_for_stream, NULL);
    unsetenv("CT_DEVICE");
}

/* Rank 0's stream never comes to the end of it: all are told, and the deadline is the call's. */
static void never_done(ct_group *group, void *arg)
{
    ct_work *work = NULL;
    struct gate gate;
    CUstream stream;
    int32_t *buffer;

    (void)arg;
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    buffer = numbers(1);
    EXPECT_OK(ct_set_stream(group, stream));
    EXPECT_OK(ct_set_timeout(group, ct_rank(group) == 0 ? SOON_MS : GROUP_TIMEOUT_MS));
    if (ct_rank(group) == 0)
        EXPECT(gate_close(&gate, stream));
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_ERROR(ct_wait(work), ct_rank(group) == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER, "all_reduce");
    if (ct_rank(group) == 0)
        gate_open(&gate);
    CU(device.cuStreamSynchronize(stream));
    device_free(buffer);
    CU(device.cuStreamDestroy(stream));
}

static void a_stream_that_never_ends_is_a_timeout(void **state)
{
    (void)state;
    run_processes(3, never_done, NULL);
}

/* Rank 0's device works for all, and late.  Who gave up meanwhile has its buffer for itself again.
 */
static void gives_up(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t *buffer;
    ct_status status;

    (void)arg;
    if (!EXPECT(me == 0 ? open_late(LATE_MS * 1000) : device_open(0)))
        return;
    buffer = numbers(1);
    EXPECT_OK(ct_barrier(group, NULL)); /* rank 0 came late to it */
    EXPECT_OK(ct_set_timeout(group, me == 1 ? GIVE_UP_MS : GROUP_TIMEOUT_MS));
    status = ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_SUM, NULL);
    EXPECT(status == CT_OK || status == (me == 1 ? CT_ERR_TIMEOUT : CT_ERR_PEER));
    CU(device.cuMemsetD8Async(at(buffer), 7, COUNT * sizeof *buffer, NULL));
    CU(device.cuStreamSynchronize(NULL));
    nap(3 * LATE_MS);
    EXPECT(all_are(buffer, 0x07070707));
    mark("seen", me); /* nobody frees what others may still write to */
    for (int i = 0; i < ct_size(group); i++)
        await("seen", i);
    device_free(buffer);
}

static void who_gave_up_has_its_buffer_for_itself(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(3, gives_up, NULL);
}

/* The program works on another GPU than the one of these buffers. */
static void looks_elsewhere(ct_group *group, void *arg)
{
    const int other = (ct_rank(group) + 1) % ct_size(group);
    CUcontext here = NULL, after = NULL;
    int32_t *buffer;
    ct_work *work;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    buffer = numbers(1);
    if (!EXPECT(device_open(1)))
        return;
    CU(device.cuCtxGetCurrent(&here));
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_MAX, &work));
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_irecv(group, buffer, COUNT, CT_I32, CT_ANY_SOURCE, 0, &work));
    EXPECT_OK(ct_send(group, buffer, COUNT, CT_I32, other, 0));
    EXPECT_OK(ct_wait(work));
    CU(device.cuCtxGetCurrent(&after));
    EXPECT(here && here == after);
    EXPECT(all_are(buffer, ct_size(group)));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(buffer);
}

static void the_programs_current_gpu_stays_so(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    run_processes(2, looks_elsewhere, NULL);
    setenv("CT_DEVICE", "staged", 1);
    run_processes(2, looks_elsewhere, NULL);
    unsetenv("CT_DEVICE");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* ---- What is refused --------------------------------------------------------------- */

static void mixes(ct_group *group, void *arg)
{
    int32_t here[COUNT] = { 0 }, *there;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    there = numbers(0);
    EXPECT_ERROR(ct_all_reduce(group, there, here, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_INVALID,
                 "all_reduce|device memory|host memory");
    EXPECT_ERROR(ct_all_gather(group, here, there, 1, CT_I32, NULL), CT_ERR_INVALID,
                 "all_gather|device memory|host memory");
    EXPECT_OK(ct_all_reduce(group, here, here, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_ERROR(ct_all_reduce(group, ct_rank(group) ? there : here, ct_rank(group) ? there : here,
                               COUNT, CT_I32, CT_SUM, NULL),
                 CT_ERR_MISMATCH, "device memory");
    device_free(there);
}

static void a_call_in_two_kinds_of_memory_is_refused(void **state)
{
    (void)state;
    run_processes(2, mixes, NULL);
    run_threads(3, mixes, NULL);
}

/* ---- Messages ------------------------------------------------------------------------ */

static void batches(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group), right = (me + 1) % p,
              left = (me + p - 1) % p;
    int32_t *out, *in, here[COUNT];
    ct_work *works[3];
    ct_p2p ops[] = {
        { .kind = CT_P2P_RECV, .count = COUNT, .dtype = CT_I32, .peer = left, .tag = 1 },
        { .kind = CT_P2P_SEND, .count = COUNT, .dtype = CT_I32, .peer = right, .tag = 1 },
        { .kind = CT_P2P_SEND, .count = COUNT, .dtype = CT_I32, .peer = right, .tag = 2 },
    };

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    out = numbers(me);
    in = numbers(-1);
    ops[0].buf = in;
    ops[1].buf = ops[2].buf = out;
    for (int with_works = 0; with_works < 2; with_works++) {
        CU(device.cuMemsetD8Async(at(in), 0xff, COUNT * sizeof *in, NULL));
        EXPECT_OK(ct_batch_isend_irecv(group, ops, 3, with_works ? works : NULL));
        EXPECT_OK(ct_recv(group, here, COUNT, CT_I32, left, 2, NULL));
        for (int i = 0; with_works && i < 3; i++)
            EXPECT_OK(ct_wait(works[i]));
        EXPECT(all_are(in, left) && here[0] == left && here[COUNT - 1] == left);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(out);
    device_free(in);
}

static void a_batch_may_have_messages_of_device_memory(void **state)
{
    (void)state;
    run_processes(3, batches, NULL);
    use_link("tcp");
    run_processes(2, batches, NULL);
    use_link(NULL);
}

static void coalesces(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *a, *b, here = me;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    a = numbers(1);
    b = numbers(me);
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, a, a, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, &here, &here, 1, CT_I32, CT_MAX, NULL));
    EXPECT_OK(ct_all_reduce(group, b, b, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT(all_are(a, p) && all_are(b, p - 1) && here == p - 1);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(a);
    device_free(b);
}

static void coalesced_calls_on_device_memory_go_alone(void **state)
{
    (void)state;
    run_processes(3, coalesces, NULL);
}

/* ---- Deaths -------------------------------------------------------------------------- */

static void one_ends(ct_group *group, void *arg)
{
    const int victim = *(const int *)arg;
    int32_t *buffer;
    char who[16];
    ct_status status = CT_OK;

    if (!EXPECT(device_open(0)))
        return;
    buffer = numbers(1);
    EXPECT_OK(ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == victim)
        rank_leaves();
    snprintf(who, sizeof who, "rank %d", victim);
    while (status == CT_OK)
        status = ct_all_reduce(group, buffer, buffer, COUNT, CT_I32, CT_MAX, NULL);
    EXPECT_ERROR(status, CT_ERR_PEER, who);
    device_free(buffer);
}

static void a_rank_that_ends_is_named_to_the_others(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++)
        run_processes(3, one_ends, &victim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_works_for_all_that_share_a_gpu),
        cmocka_unit_test(ranks_that_share_no_gpu_go_through_the_host),
        cmocka_unit_test(memory_that_cant_be_mapped_goes_through_the_host),
        cmocka_unit_test(the_user_may_choose_the_way),
        cmocka_unit_test(a_gpu_that_is_late_for_one_rank_spoils_nothing),
        cmocka_unit_test(a_call_is_one_launch),
        cmocka_unit_test(lists_and_counts_for_each_rank_are_fused),
        cmocka_unit_test(premul_sum_is_fused),
        cmocka_unit_test(memory_of_pools_bounces_on_the_gpu),
        cmocka_unit_test(where_there_is_no_room_to_bounce_a_call_is_staged),
        cmocka_unit_test(a_rank_may_have_nothing_in_a_fused_call),
        cmocka_unit_test(counts_that_differ_are_told),
        cmocka_unit_test(a_call_that_cant_be_fused_does_not_keep_the_next_one_from_it),
        cmocka_unit_test(a_call_begins_when_its_stream_has_done_what_it_had_to),
        cmocka_unit_test(a_stream_that_never_ends_is_a_timeout),
        cmocka_unit_test(the_programs_current_gpu_stays_so),
        cmocka_unit_test(who_gave_up_has_its_buffer_for_itself),
        cmocka_unit_test(a_call_in_two_kinds_of_memory_is_refused),
        cmocka_unit_test(a_batch_may_have_messages_of_device_memory),
        cmocka_unit_test(coalesced_calls_on_device_memory_go_alone),
        cmocka_unit_test(a_rank_that_ends_is_named_to_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
