/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_calls.c - calls on device memory: which path they take, that they may be collected or
 * stand beside messages, what they refuse.  collectives/test_properties.c checks their results,
 * with random calls (ctest cuda/properties), and test_waits.c what they wait for.
 *
 * Runs against tests/fake/, or against the driver of CT_TEST_DRIVER without what only the fake one
 * can be told to do. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/numbers.h"

enum { ROUNDS = 20 };

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

    if (!EXPECT(way->late == me + 1 ? device_open_late(0, 2000) : device_open(me % way->devices)))
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

static void ranks_without_peer_access_go_through_the_host(void **state)
{
    (void)state;
    if (device_is_fake()) /* else there may be one GPU only */
        go(&(struct way){ "FAKE_CUDA_PEERS", "2-3", 2, "staged", 0 });
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

static void the_user_may_choose_the_path(void **state)
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

/* ---- What is refused --------------------------------------------------------------- */

static void mixes(ct_group *group, void *arg)
{
    int32_t here[COUNT] = { 0 }, *there;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    there = numbers(0);
    EXPECT_ERROR(ct_all_reduce(group, there, here, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_INVALID,
                 "all_reduce|device memory|host memory|freed counts as");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_works_for_all_that_share_a_gpu),
        cmocka_unit_test(ranks_without_peer_access_go_through_the_host),
        cmocka_unit_test(memory_that_cant_be_mapped_goes_through_the_host),
        cmocka_unit_test(the_user_may_choose_the_path),
        cmocka_unit_test(a_gpu_that_is_late_for_one_rank_spoils_nothing),
        cmocka_unit_test(a_call_that_cant_be_fused_does_not_keep_the_next_one_from_it),
        cmocka_unit_test(a_call_in_two_kinds_of_memory_is_refused),
        cmocka_unit_test(a_batch_may_have_messages_of_device_memory),
        cmocka_unit_test(coalesced_calls_on_device_memory_go_alone),
    };

    setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1); /* the machine's own is not meant */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
