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
#include "tests/cuda/numbers.h"

enum { SOON_MS = 100, ROUNDS = 20, LATE_MS = 100, GIVE_UP_MS = 150 };

/* Of a process; its driver begins all that is enqueued so late. */
static int open_late(int us)
{
    char text[16];

    snprintf(text, sizeof text, "%d", us);
    setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    setenv("FAKE_CUDA_LAG_US", text, 1);
    return device_open(0);
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

static void ranks_whose_memory_no_gpu_reaches_go_through_the_host(void **state)
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
        cmocka_unit_test(ranks_whose_memory_no_gpu_reaches_go_through_the_host),
        cmocka_unit_test(memory_that_cant_be_mapped_goes_through_the_host),
        cmocka_unit_test(the_user_may_choose_the_way),
        cmocka_unit_test(a_gpu_that_is_late_for_one_rank_spoils_nothing),
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

    setenv("CT_LIBNCCL", "/nowhere/libnccl.so.2", 1); /* the machine's own is not meant */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
