/* SPDX-License-Identifier: Apache-2.0 */
/* test_streams.c - calls that belong to a stream: the host goes on at once, and what is enqueued
 * later comes after them.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/cuda/streams.h"

enum { ROUNDS = 6, MANY = 1500, LARGE = 1 << 20 };

/* The stream stands still, so nothing can have been done when the call returns. */
static void returns_at_once(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    struct gate gate;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT(gate_close(&gate, s.stream));
    fill(&s, 1);
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    look(&s, s.recv);
    EXPECT(device.cuStreamQuery(s.stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, p * 0x01010101));
    tear_down(&s);
}

static void a_call_in_a_stream_returns_at_once_and_the_stream_waits_for_it(void **state)
{
    (void)state;
    run_everywhere(returns_at_once, NULL);
}

/* Each round reads what the one before wrote, and nothing waits on the host. */
static void follow_each_other(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    int32_t expected = 0x01010101;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    fill(&s, 1);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
        EXPECT_OK(ct_broadcast(group, s.recv, COUNT, CT_I32, i % p, NULL));
        CU(device.cuMemcpyDtoDAsync(at(s.send), at(s.recv), COUNT * sizeof *s.send, s.stream));
        expected = (int32_t)((uint32_t)expected * (uint32_t)p);
    }
    look(&s, s.send);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, expected));
    tear_down(&s);
}

static void calls_in_a_stream_and_work_between_them_keep_their_order(void **state)
{
    (void)state;
    run_everywhere(follow_each_other, NULL);
}

static void *open_soon(void *gate)
{
    nap(SOON_MS);
    gate_open(gate);
    return NULL;
}

/* The second call: in another stream, in none, with a work, or among collected ones. */
static void second_call(ct_group *group, const struct scene *s, CUstream second, const char *how)
{
    ct_work *work = NULL;

    EXPECT_OK(ct_set_stream(group, strcmp(how, "none") != 0 ? second : NULL));
    if (!strcmp(how, "collected"))
        EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, s->recv, s->recv, COUNT, CT_I32, CT_SUM,
                            !strcmp(how, "with a work") ? &work : NULL));
    if (!strcmp(how, "collected"))
        EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT_OK(ct_wait(work));
}

/* What rank 1 gives comes late in the first stream, and the second one does not wait for it. */
static void from_stream_to_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group), late = ct_rank(group) == 1;
    CUstream second = NULL;
    struct gate gate;
    pthread_t opener;
    struct scene s;

    if (!set_up(&s, group) || !CU(device.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    if (late && EXPECT(gate_close(&gate, s.stream)))
        EXPECT(pthread_create(&opener, NULL, open_soon, &gate) == 0);
    fill(&s, 1);
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    second_call(group, &s, second, arg);
    CU(device.cuStreamSynchronize(second));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, p * p * 0x01010101));
    if (late)
        pthread_join(opener, NULL);
    CU(device.cuStreamDestroy(second));
    tear_down(&s);
}

static void a_call_in_another_stream_comes_after_those_in_the_one_before(void **state)
{
    (void)state;
    run_everywhere(from_stream_to_stream, (void *)(uintptr_t) "in another");
    run_by("stream", 3, from_stream_to_stream, (void *)(uintptr_t) "none");
    run_by("stream", 3, from_stream_to_stream, (void *)(uintptr_t) "with a work");
    run_by("stream", 3, from_stream_to_stream, (void *)(uintptr_t) "collected");
}

/* Rank 1's stream is late, so the call that all wait for is. */
static void barrier_behind(ct_group *group, void *arg)
{
    const int p = ct_size(group), late = ct_rank(group) == p - 1;
    ct_work *work = NULL;
    pthread_t opener;
    struct gate gate;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    for (int i = 0; i < 2; i++) {
        fill(&s, (unsigned char)(i + 1));
        if (late)
            EXPECT(gate_close(&gate, s.stream)
                   && pthread_create(&opener, NULL, open_soon, &gate) == 0);
        EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
        EXPECT_OK(ct_barrier(group, i ? &work : NULL));
        EXPECT_OK(ct_wait(work));
        CU(device.cuMemcpyDtoH(s.seen, at(s.recv), COUNT * sizeof *s.seen));
        EXPECT(all_seen_are(&s, p * (i + 1) * 0x01010101));
        if (late)
            pthread_join(opener, NULL);
    }
    tear_down(&s);
}

static void a_barrier_waits_on_the_host_for_calls_in_streams(void **state)
{
    (void)state;
    run_everywhere(barrier_behind, NULL);
}

/* A v form begins little of what later calls need: what they begin they begin in no stream.  Rank 1
 * comes late to both calls. */
static void v_form_first(ct_group *group, void *arg)
{
    const size_t ones[] = { 1, 1 };
    const int me = ct_rank(group);
    ct_group *part = NULL;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, me, &part)))
        return;
    EXPECT_OK(ct_set_stream(part, s.stream));
    for (int i = 0; i < 2; i++) {
        if (me == 1)
            nap(SOON_MS);
        if (i == 0)
            EXPECT_OK(ct_all_to_all_v(part, s.send, ones, NULL, s.recv, ones, NULL, CT_I32, NULL));
        else
            EXPECT_OK(ct_all_reduce(part, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
        CU(device.cuStreamQuery(s.stream));
    }
    EXPECT_OK(ct_destroy_process_group(part));
    tear_down(&s);
}

static void the_first_call_that_all_ranks_see_alike_is_in_no_stream(void **state)
{
    (void)state;
    run_processes(2, v_form_first, NULL);
}

static void collected(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    fill(&s, 1);
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, s.recv, s.recv, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_OK(ct_coalesce_end(group, NULL));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, p * 0x01010101));
    tear_down(&s);
}

static void collected_calls_are_in_the_stream_too(void **state)
{
    (void)state;
    run_everywhere(collected, NULL);
}

/* More than streams can wait for at one time. */
static void many(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    fill(&s, 1);
    for (int i = 0; i < MANY; i++)
        if (!EXPECT_OK(ct_all_reduce(group, s.send, s.recv, 8, CT_I32, CT_MAX, NULL)))
            break;
    EXPECT_OK(ct_barrier(group, NULL));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(s.seen[7] == 0x01010101 && s.seen[8] == 0);
    tear_down(&s);
}

static void thousands_of_calls_may_be_under_way(void **state)
{
    (void)state;
    run_processes(2, many, NULL);
}

/* The second call needs more of libct's own memory on the GPU, and the first may be given back only
 * when no stream stands still. */
static void grows(ct_group *group, void *arg)
{
    const size_t bytes = LARGE * sizeof(int32_t);
    CUdeviceptr pooled;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group) || !CU(device.cuMemAllocAsync(&pooled, bytes, s.stream)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    CU(device.cuMemsetD8Async(pooled, 1, bytes, s.stream));
    for (size_t count = COUNT; count <= LARGE; count *= 2)
        EXPECT_OK(ct_all_reduce(group, (void *)(uintptr_t)pooled, (void *)(uintptr_t)pooled, count,
                                CT_I32, CT_MAX, NULL));
    look(&s, (void *)(uintptr_t)pooled);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, 0x01010101));
    EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
    CU(device.cuMemFree(pooled));
    tear_down(&s);
}

/* The second time to get memory waits for whatever stands still. */
static void memory_of_libcts_own_may_grow_in_a_stream(void **state)
{
    (void)state;
    run_processes(2, grows, NULL);
    setenv("FAKE_CUDA_ALLOC", "waits", 1);
    run_processes(2, grows, NULL);
    unsetenv("FAKE_CUDA_ALLOC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_in_a_stream_returns_at_once_and_the_stream_waits_for_it),
        cmocka_unit_test(calls_in_a_stream_and_work_between_them_keep_their_order),
        cmocka_unit_test(a_call_in_another_stream_comes_after_those_in_the_one_before),
        cmocka_unit_test(a_barrier_waits_on_the_host_for_calls_in_streams),
        cmocka_unit_test(the_first_call_that_all_ranks_see_alike_is_in_no_stream),
        cmocka_unit_test(collected_calls_are_in_the_stream_too),
        cmocka_unit_test(thousands_of_calls_may_be_under_way),
        cmocka_unit_test(memory_of_libcts_own_may_grow_in_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
