/* SPDX-License-Identifier: Apache-2.0 */
/* test_waits.c - what calls on device memory wait for, and which ranks learn when it does not
 * come: a stream that has work left or waits itself, a GPU that is late, a rank that ends.
 *
 * Runs against tests/fake/, or against the driver of CT_TEST_DRIVER without what only the fake one
 * can be told to do. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdio.h>
#include <stdlib.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/numbers.h"

enum { SOON_MS = 100, LATE_MS = 100, GIVE_UP_MS = 150 };

/* The input is written in the group's stream, which stands still when the call is made. */
static void waits_for_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group);
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

/* Rank 0's device works for all, and late.  A rank that gave up meanwhile owns its buffer again.
 */
static void gives_up(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t *buffer;
    ct_status status;

    (void)arg;
    if (!EXPECT(me == 0 ? device_open_late(0, LATE_MS * 1000) : device_open(0)))
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
    all_marked(group, "seen"); /* before that others may still write to the buffer */
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
        cmocka_unit_test(a_call_begins_when_its_stream_has_done_what_it_had_to),
        cmocka_unit_test(a_stream_that_never_ends_is_a_timeout),
        cmocka_unit_test(who_gave_up_has_its_buffer_for_itself),
        cmocka_unit_test(the_programs_current_gpu_stays_so),
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
