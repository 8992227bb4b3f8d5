/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_handover.c - calls that streams hand over to each other (CT_HANDOVER=stream), beside
 * what else goes on in the group and in the process.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "tests/marks.h"
#include "tests/cuda/device.h"
#include "tests/cuda/handover.h"

enum { COUNT = 1000, GATES = 6, APART_MS = 1000, LIMIT_MS = 5000, BYTES = 256 << 10 };

/* A rank's GPU, two streams, two buffers there. */
struct scene {
    CUstream stream, other;
    int32_t *send, *recv;
};

/* A group's first call on device memory is in no stream. */
static int set_up(struct scene *s, ct_group *group)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING))
        || !CU(device.cuStreamCreate(&s->other, CU_STREAM_NON_BLOCKING)))
        return 0;
    s->send = device_alloc(COUNT * sizeof *s->send, 1);
    s->recv = device_alloc(COUNT * sizeof *s->recv, 0);
    return EXPECT(s->send != NULL && s->recv != NULL)
           && EXPECT_OK(ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL));
}

static void tear_down(struct scene *s)
{
    CU(device.cuStreamSynchronize(s->stream));
    CU(device.cuStreamSynchronize(s->other));
    CU(device.cuStreamDestroy(s->stream));
    CU(device.cuStreamDestroy(s->other));
    device_free(s->send);
    device_free(s->recv);
}

static ct_status sum(struct scene *s, ct_group *group)
{
    return ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL);
}

/* Rank 1 sends behind the call that rank 0 makes while a stream waits for the message. */
static void message_comes_later(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_work *work = NULL;
    int32_t value = me;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(sum(&s, group));
    if (me == 0) {
        EXPECT_OK(ct_irecv(group, &value, 1, CT_I32, 1, 0, &work));
        EXPECT_OK(ct_wait_on_stream(work, s.stream));
    }
    EXPECT_OK(ct_set_stream(group, s.other));
    EXPECT_OK(sum(&s, group));
    CU(device.cuStreamSynchronize(s.other));
    if (me == 1)
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 0));
    else
        EXPECT_OK(ct_wait(work));
    EXPECT(value == 1);
    tear_down(&s);
}

static void a_message_that_a_stream_awaits_keeps_no_call_waiting(void **state)
{
    (void)state;
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(2, message_comes_later, NULL);
    run_threads(2, message_comes_later, NULL);
}

static void *open_one_by_one(void *gates)
{
    for (int i = 0; i < GATES; i++) {
        nap(APART_MS);
        gate_open((struct gate *)gates + i);
    }
    return NULL;
}

/* Each has something before it, and all of that takes longer than any of them may. */
static void one_behind_the_other(ct_group *group, void *arg)
{
    const int late = ct_rank(group) == 1;
    struct gate gates[GATES];
    pthread_t opener;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    for (int i = 0; i < GATES; i++) {
        if (late)
            EXPECT(gate_close(&gates[i], s.stream));
        EXPECT_OK(ct_set_next_timeout(group, LIMIT_MS));
        EXPECT_OK(sum(&s, group));
    }
    if (late)
        EXPECT(pthread_create(&opener, NULL, open_one_by_one, gates) == 0);
    CU(device.cuStreamSynchronize(s.stream));
    if (late)
        pthread_join(opener, NULL);
    EXPECT_OK(ct_barrier(group, NULL));
    tear_down(&s);
}

static void a_calls_time_begins_when_those_before_it_are_over(void **state)
{
    (void)state;
    run_by("host", 2, one_behind_the_other, NULL);
    run_by("stream", 2, one_behind_the_other, NULL);
}

/* The part's first call falls in a time when nothing can be pinned. */
static void begins_beside_another(ct_group *group, void *arg)
{
    ct_group *part = NULL;
    CUgraph graph = NULL;
    struct gate gate;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, 0, &part)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT(gate_close(&gate, s.stream));
    EXPECT_OK(sum(&s, group));
    EXPECT_OK(ct_set_stream(part, s.other));
    EXPECT_OK(sum(&s, part));
    gate_open(&gate);
    EXPECT_OK(ct_barrier(group, NULL)); /* no rank is in the call any more */
    EXPECT_OK(sum(&s, part));
    CU(device.cuStreamSynchronize(s.other));
    CU(device.cuStreamBeginCapture(s.other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(sum(&s, part));
    CU(device.cuStreamEndCapture(s.other, &graph));
    CU(device.cuGraphDestroy(graph));
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT_OK(ct_barrier(group, NULL)); /* no rank's stream uses the memory of another any more */
    tear_down(&s);
}

static void a_group_that_began_while_a_stream_stood_still_has_words_later(void **state)
{
    (void)state;
    run_by("host", 2, begins_beside_another, NULL);
    run_by("stream", 2, begins_beside_another, NULL);
}

/* First of pools, which must be copied; then in no stream on rank 1. */
static void cant_be_handed_over(ct_group *group, void *arg)
{
    CUdeviceptr pooled;
    ct_work *work = NULL;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group)
        || !CU(device.cuMemAllocAsync(&pooled, COUNT * sizeof(int32_t), s.stream)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    for (int i = 0; i < 2; i++) { /* the first one gets memory for it */
        EXPECT_OK(
            ct_all_reduce(group, s.send, (void *)(uintptr_t)pooled, COUNT, CT_I32, CT_SUM, NULL));
        CU(device.cuStreamSynchronize(s.stream));
        EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
    }
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM,
                            ct_rank(group) == 1 ? &work : NULL));
    EXPECT_OK(ct_wait(work));
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(!strcmp(ct_last_algorithm(group), "fused"));
    CU(device.cuMemFree(pooled));
    tear_down(&s);
}

static void what_streams_cant_hand_over_is_fused_by_the_hosts(void **state)
{
    (void)state;
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(3, cant_be_handed_over, NULL);
    run_threads(2, cant_be_handed_over, NULL);
}

/* Rank 1's stream stands still for a call that rank 0 makes when the other group has ended there.
 */
static void ends_before(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_group *part = NULL;
    struct scene s;

    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, 0, &part)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(sum(&s, part));
    if (me == 1) {
        EXPECT_OK(sum(&s, group));
        mark(arg, 1);
    } else {
        await(arg, 1);
    }
    EXPECT_OK(ct_destroy_process_group(part));
    if (me != 1)
        EXPECT_OK(sum(&s, group));
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT_OK(ct_barrier(group, NULL));
    tear_down(&s);
}

static void a_group_ends_beside_a_stream_that_stands_still(void **state)
{
    (void)state;
    setenv("CT_HANDOVER", "host", 1);
    run_threads(2, ends_before, (void *)(uintptr_t) "threads");
    run_processes(2, ends_before, (void *)(uintptr_t) "processes");
}

/* Rank 0's stream waits for rank 1's, which goes on when rank 0 has the message.  So many bytes
 * have pinned memory, if the driver may be asked. */
static void message_beside_a_call(ct_group *group, void *arg)
{
    const int late = ct_rank(group) == 1;
    char *const here = calloc(1, BYTES), *there;
    struct gate gate;
    struct scene s;
    int heard = 0, wrong = 0;

    (void)arg;
    if (!set_up(&s, group) || !EXPECT(here && (there = device_alloc(BYTES, 0)) != NULL))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    if (late)
        EXPECT(gate_close(&gate, s.stream));
    EXPECT_OK(sum(&s, group));
    EXPECT_OK(ct_set_stream(group, s.other));
    EXPECT_OK(ct_set_timeout(group, LIMIT_MS));
    if (late) {
        memset(here, 7, BYTES);
        EXPECT_OK(ct_send(group, here, BYTES, CT_U8, 0, 0));
        EXPECT_OK(ct_recv(group, &heard, 1, CT_I32, 0, 1, NULL));
        gate_open(&gate);
    } else {
        EXPECT_OK(ct_recv(group, there, BYTES, CT_U8, 1, 0, NULL));
        EXPECT_OK(ct_send(group, &heard, 1, CT_I32, 1, 1));
        CU(device.cuMemcpyDtoH(here, (CUdeviceptr)(uintptr_t)there, BYTES));
        for (int i = 0; i < BYTES; i++)
            wrong += here[i] != 7;
        EXPECT(wrong == 0);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    tear_down(&s);
    device_free(there);
    free(here);
}

static void a_message_gets_no_pinned_memory_while_a_stream_waits_for_another_rank(void **state)
{
    (void)state;
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(2, message_beside_a_call, NULL);
}

/* Also behind a run that failed. */
static int forget_settings(void **state)
{
    (void)state;
    unsetenv("CT_HANDOVER");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_message_that_a_stream_awaits_keeps_no_call_waiting,
                                  forget_settings),
        cmocka_unit_test_teardown(a_calls_time_begins_when_those_before_it_are_over,
                                  forget_settings),
        cmocka_unit_test_teardown(what_streams_cant_hand_over_is_fused_by_the_hosts,
                                  forget_settings),
        cmocka_unit_test_teardown(
            a_message_gets_no_pinned_memory_while_a_stream_waits_for_another_rank, forget_settings),
        cmocka_unit_test_teardown(a_group_ends_beside_a_stream_that_stands_still, forget_settings),
        cmocka_unit_test_teardown(a_group_that_began_while_a_stream_stood_still_has_words_later,
                                  forget_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
