/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_works.c - ct_wait_on_stream(): streams that wait for works, of calls in other
 * streams, on host memory, and of messages.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/streams.h"

static void other_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    struct gate gate;
    struct scene s;
    CUstream calls;
    ct_work *work = NULL;

    (void)arg;
    if (!set_up(&s, group) || !CU(device.cuStreamCreate(&calls, CU_STREAM_NON_BLOCKING)))
        return;
    EXPECT_OK(ct_set_stream(group, calls));
    EXPECT(gate_close(&gate, calls));
    CU(device.cuMemsetD8Async(at(s.send), 1, COUNT * sizeof *s.send, calls));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait_on_stream(work, s.stream));
    EXPECT_OK(ct_wait_on_stream(work, s.stream)); /* as often as one likes */
    look(&s, s.recv);
    EXPECT(device.cuStreamQuery(s.stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, p * 0x01010101));
    EXPECT_OK(ct_wait_on_stream(work, NULL)); /* it is over */
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_wait_on_stream(NULL, s.stream));
    CU(device.cuStreamDestroy(calls));
    tear_down(&s);
}

static void any_stream_may_wait_for_a_work(void **state)
{
    (void)state;
    run_everywhere(other_stream, NULL);
}

static void on_host_memory(ct_group *group, void *arg)
{
    int32_t value = 1, *sum; /* pinned: of other memory a copy is read when it is enqueued */
    struct scene s;
    ct_work *work = NULL;

    (void)arg;
    if (!set_up(&s, group) || !CU(device.cuMemAllocHost((void **)&sum, sizeof *sum)))
        return;
    *sum = 0;
    EXPECT_OK(ct_all_reduce(group, &value, sum, 1, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait_on_stream(work, s.stream));
    CU(device.cuMemcpyHtoDAsync(at(s.recv), sum, sizeof *sum, s.stream));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(s.seen[0] == ct_size(group));
    EXPECT_OK(ct_wait(work));
    tear_down(&s);
    CU(device.cuMemFreeHost(sum));
}

static void a_stream_may_wait_for_host_memory_too(void **state)
{
    (void)state;
    run_processes(3, on_host_memory, NULL);
}

/* Rank 0 sends when the receiver's stream has waited for a while. */
static void receives(ct_group *group, void *arg)
{
    int32_t value[COUNT];
    struct scene s;
    ct_work *work = NULL;
    int from = -1;

    (void)arg;
    for (int i = 0; i < COUNT; i++)
        value[i] = 5;
    if (!set_up(&s, group))
        return;
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_barrier(group, NULL));
        nap(SOON_MS / 4);
        EXPECT_OK(ct_isend(group, value, COUNT, CT_I32, 1, 0, &work));
        EXPECT_OK(ct_wait_on_stream(work, s.stream));
        CU(device.cuStreamSynchronize(s.stream));
        EXPECT_OK(ct_wait(work));
    } else {
        EXPECT_OK(ct_irecv(group, s.recv, COUNT, CT_I32, CT_ANY_SOURCE, 0, &work));
        EXPECT_OK(ct_wait_on_stream(work, s.stream));
        look(&s, s.recv);
        EXPECT_OK(ct_barrier(group, NULL));
        CU(device.cuStreamSynchronize(s.stream));
        EXPECT(all_seen_are(&s, 5));
        EXPECT_OK(ct_wait_from(work, &from));
        EXPECT(from == 0);
    }
    tear_down(&s);
}

static void a_stream_may_wait_for_a_message(void **state)
{
    (void)state;
    run_processes(2, receives, NULL);
    if (!getenv("FAKE_CUDA_LOCK")) /* a thread may free memory while another one's message lands */
        run_threads(2, receives, NULL);
}

/* Two messages: the second one's turn comes when the first has landed, with the limit of then. */
static void keeps_its_limit(ct_group *group, void *arg)
{
    int32_t value[2] = { 5, 6 }, got[2] = { 0, 0 };
    ct_work *works[2] = { NULL, NULL };
    struct scene s;

    if (!set_up(&s, group))
        return;
    if (ct_rank(group) == 0) {
        await(arg, 1);
        EXPECT_OK(ct_send(group, &value[0], 1, CT_I32, 1, 0));
        nap(4 * SOON_MS);
        EXPECT_OK(ct_send(group, &value[1], 1, CT_I32, 1, 1));
    } else {
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(ct_irecv(group, &got[i], 1, CT_I32, 0, i, &works[i]));
            EXPECT_OK(ct_wait_on_stream(works[i], s.stream));
        }
        nap(SOON_MS);                                   /* the first one's turn has come */
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS)); /* of what comes now */
        mark(arg, 1);
        for (int i = 0; i < 2; i++)
            EXPECT_OK(ct_wait(works[i]));
        EXPECT(got[0] == 5 && got[1] == 6);
        EXPECT_OK(ct_set_next_timeout(group, GROUP_TIMEOUT_MS));
    }
    tear_down(&s);
}

/* The first message never comes; the second one comes when the time of the first is over. */
static void second_comes(ct_group *group, void *arg)
{
    ct_work *works[2] = { NULL, NULL };
    int32_t sent[COUNT], first = 0;
    struct scene s;

    for (int i = 0; i < COUNT; i++)
        sent[i] = 7;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        await(arg, 1);
        nap(2 * SOON_MS);
        EXPECT_OK(ct_send(group, sent, COUNT, CT_I32, 1, 1));
        await(arg, 2);
    } else {
        EXPECT_OK(ct_set_next_timeout(group, SOON_MS));
        EXPECT_OK(ct_irecv(group, &first, 1, CT_I32, 0, 0, &works[0]));
        EXPECT_OK(ct_wait_on_stream(works[0], s.stream));
        EXPECT_OK(ct_set_next_timeout(group, GROUP_TIMEOUT_MS));
        EXPECT_OK(ct_irecv(group, s.recv, COUNT, CT_I32, 0, 1, &works[1]));
        EXPECT_OK(ct_wait_on_stream(works[1], s.stream));
        look(&s, s.recv);
        EXPECT_STATUS(ct_wait(works[0]), CT_ERR_TIMEOUT);
        mark(arg, 1);
        CU(device.cuStreamSynchronize(s.stream));
        EXPECT(all_seen_are(&s, 7));
        EXPECT_OK(ct_wait(works[1]));
        mark(arg, 2);
    }
    tear_down(&s);
}

static void a_message_that_times_out_does_not_let_the_stream_pass_the_next(void **state)
{
    (void)state;
    run_processes(2, second_comes, (void *)(uintptr_t) "second");
}

static void a_message_that_a_stream_waits_for_keeps_its_limit(void **state)
{
    (void)state;
    run_processes(2, keeps_its_limit, (void *)(uintptr_t) "waits");
}

static void no_context(ct_group *group, void *arg)
{
    int32_t value = 1;
    ct_work *work = NULL;

    (void)arg;
    if (!EXPECT(device_load()) || !CU(device.cuInit(0)))
        return;
    EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, &work));
    EXPECT_ERROR(ct_wait_on_stream(work, NULL), CT_ERR_UNSUPPORTED,
                 "ct_wait_on_stream|no CUDA context is current");
    EXPECT_OK(ct_wait(work));
}

static void without_a_context_there_is_no_stream(void **state)
{
    (void)state;
    run_processes(2, no_context, NULL);
}

static void host_waits(ct_group *group, void *arg)
{
    struct scene s;
    ct_work *work = NULL;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    fill(&s, 1);
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_OK(ct_all_reduce(group, s.recv, s.recv, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait_on_stream(work, s.stream));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, ct_size(group) * 0x01010101));
    EXPECT_OK(ct_wait(work));
    tear_down(&s);
}

static void where_no_stream_can_wait_the_host_does(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_WORDS", "0", 1);
    run_by("host", 2, host_waits, NULL);
    run_by("stream", 2, host_waits, NULL);
    unsetenv("FAKE_CUDA_WORDS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_stream_may_wait_for_a_work),
        cmocka_unit_test(a_stream_may_wait_for_host_memory_too),
        cmocka_unit_test(a_stream_may_wait_for_a_message),
        cmocka_unit_test(a_message_that_a_stream_waits_for_keeps_its_limit),
        cmocka_unit_test(a_message_that_times_out_does_not_let_the_stream_pass_the_next),
        cmocka_unit_test(without_a_context_there_is_no_stream),
        cmocka_unit_test(where_no_stream_can_wait_the_host_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
