/* SPDX-License-Identifier: Apache-2.0 */
/* test_streams.c - calls that belong to a stream: the host goes on at once, what is enqueued later
 * comes after them, and however they end the stream goes on.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "include/ct_cuda.h"
#include "runtime/log.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 1000, ROUNDS = 6, MANY = 1500, LARGE = 1 << 20, SOON_MS = 100 };

/* A rank's GPU, a stream, two buffers there, and host memory that the driver copies into late. */
struct scene {
    CUstream stream;
    int32_t *send, *recv;
    int32_t *seen;
};

/* A group's first call on device memory is in no stream. */
static int set_up(struct scene *s, ct_group *group)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING))
        || !CU(device.cuMemAllocHost((void **)&s->seen, COUNT * sizeof *s->seen)))
        return 0;
    memset(s->seen, 0, COUNT * sizeof *s->seen);
    s->send = device_alloc(COUNT * sizeof *s->send, 0);
    s->recv = device_alloc(COUNT * sizeof *s->recv, 0);
    return EXPECT(s->send != NULL && s->recv != NULL)
           && EXPECT_OK(ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL));
}

static void tear_down(struct scene *s)
{
    CU(device.cuStreamSynchronize(s->stream));
    CU(device.cuStreamDestroy(s->stream));
    device_free(s->send);
    device_free(s->recv);
    CU(device.cuMemFreeHost(s->seen));
}

/* Enqueued in the stream: every byte of send; and what recv holds, for the host to see. */
static void fill(const struct scene *s, unsigned char byte)
{
    CU(device.cuMemsetD8Async(at(s->send), byte, COUNT * sizeof *s->send, s->stream));
}

static void look(const struct scene *s, const void *buffer)
{
    CU(device.cuMemcpyDtoHAsync(s->seen, at(buffer), COUNT * sizeof *s->seen, s->stream));
}

static int all_seen_are(const struct scene *s, int32_t value)
{
    for (int i = 0; i < COUNT; i++)
        if (s->seen[i] != value) {
            print_error("element %d is %d, not %d\n", i, s->seen[i], value);
            return 0;
        }
    return 1;
}

/* Each with processes and threads as ranks, on one device and through the host. */
static void run_everywhere(void (*body)(ct_group *, void *), void *arg)
{
    run_processes(3, body, arg);
    run_threads(2, body, arg);
    run_processes(1, body, arg);
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, body, arg);
    unsetenv("CT_DEVICE");
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(3, body, arg);
    run_threads(2, body, arg);
    run_processes(1, body, arg);
    unsetenv("CT_HANDOVER");
}

/* ---- Calls without a work ------------------------------------------------------------- */

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

/* What rank 1 gives comes late in the first stream, and the second one does not wait for it. */
static void from_stream_to_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group), late = ct_rank(group) == 1;
    CUstream second = NULL;
    struct gate gate;
    pthread_t opener;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group) || !CU(device.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING)))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    if (late && EXPECT(gate_close(&gate, s.stream)))
        EXPECT(pthread_create(&opener, NULL, open_soon, &gate) == 0);
    fill(&s, 1);
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_set_stream(group, second));
    EXPECT_OK(ct_all_reduce(group, s.recv, s.recv, COUNT, CT_I32, CT_SUM, NULL));
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
    run_everywhere(from_stream_to_stream, NULL);
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
    run_processes(2, host_waits, NULL);
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(2, host_waits, NULL);
    unsetenv("CT_HANDOVER");
    unsetenv("FAKE_CUDA_WORDS");
}

/* ---- ct_wait_on_stream() ---------------------------------------------------------------- */

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
    int32_t value = 1, sum = 0;
    struct scene s;
    ct_work *work = NULL;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_all_reduce(group, &value, &sum, 1, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait_on_stream(work, s.stream));
    CU(device.cuMemcpyHtoDAsync(at(s.recv), &sum, sizeof sum, s.stream));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(s.seen[0] == ct_size(group));
    EXPECT_OK(ct_wait(work));
    tear_down(&s);
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

/* ---- Ends that are none ------------------------------------------------------------------- */

/* Not before the others have made their calls, of which this one would be the end. */
static void leave_behind_them(ct_group *group, const char *run)
{
    for (int i = 0; i < ct_size(group); i++)
        if (i != ct_rank(group))
            await(run, i);
    rank_leaves();
}

/* What is left is a call, but for "messages". */
static void somebody_leaves(ct_group *group, void *arg)
{
    const char *const run = arg;
    const int calls = strcmp(run, "messages") != 0;
    struct scene s;
    ct_work *work = NULL;

    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_barrier(group, NULL)); /* now there are connections to hear of it */
    if (ct_rank(group) == 1)
        leave_behind_them(group, run);
    EXPECT_OK(ct_set_stream(group, s.stream));
    if (calls) {
        EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    } else {
        EXPECT_OK(ct_irecv(group, s.recv, COUNT, CT_I32, 1, 0, &work));
        EXPECT_OK(ct_wait_on_stream(work, s.stream));
    }
    mark(run, ct_rank(group));
    CU(device.cuStreamSynchronize(s.stream));
    if (calls)
        EXPECT_ERROR(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_PEER,
                     "rank 1");
    else
        EXPECT_ERROR(ct_wait(work), CT_ERR_PEER, "irecv|rank 1");
    tear_down(&s);
}

/* Lines of the log. */
static void count_failed(void *arg, const char *line, size_t size)
{
    static const char words[] = "calls in a stream failed";

    *(int *)arg += memmem(line, size, words, sizeof words - 1) != NULL;
}

static void leaves_before_a_list(ct_group *group, void *arg)
{
    struct scene s;
    int said = 0;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_barrier(group, NULL)); /* now there are connections to hear of it */
    if (ct_rank(group) == 1)
        leave_behind_them(group, "list");
    log_divert(count_failed, &said);
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(ct_coalesce_begin(group));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_all_reduce(group, s.recv, s.send, COUNT, CT_I32, CT_SUM, NULL));
    EXPECT_OK(ct_coalesce_end(group, NULL));
    mark("list", ct_rank(group));
    CU(device.cuStreamSynchronize(s.stream));
    log_divert(NULL, NULL);
    EXPECT(said == 1);
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 1");
    tear_down(&s);
}

static void collected_calls_that_fail_in_a_stream_are_said(void **state)
{
    (void)state;
    setenv("CT_LOG", "warn", 1);
    run_processes(3, leaves_before_a_list, NULL);
    unsetenv("CT_LOG");
}

/* All have made the call, but rank 1's stream stands still, and then it is gone. */
static void gone_while_it_waits(ct_group *group, void *arg)
{
    struct gate gate;
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(ct_barrier(group, NULL)); /* now there are connections to hear of it */
    if (ct_rank(group) == 1)
        EXPECT(gate_close(&gate, s.stream));
    for (int i = 0; i < ROUNDS; i++)
        EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    if (ct_rank(group) == 1)
        leave_behind_them(group, "handed over");
    mark("handed over", ct_rank(group));
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "rank 1");
    tear_down(&s);
}

static void a_stream_goes_on_when_its_call_fails(void **state)
{
    (void)state;
    run_processes(3, somebody_leaves, (void *)(uintptr_t) "calls");
    run_processes(2, somebody_leaves, (void *)(uintptr_t) "messages");
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, somebody_leaves, (void *)(uintptr_t) "staged");
    unsetenv("CT_DEVICE");
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(3, gone_while_it_waits, NULL);
    unsetenv("CT_HANDOVER");
}

static void driver_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    struct scene s;

    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuStreamBatchMemOp:2", 1); /* the first one tries */
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_STATUS(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL),
                  me == 1 ? CT_ERR_CUDA : CT_OK);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT_STATUS(ct_barrier(group, NULL), me == 1 ? CT_ERR_CUDA : CT_ERR_PEER);
    all_marked(group, arg);
    tear_down(&s);
}

static void a_driver_that_refuses_breaks_the_group_and_leaves_no_stream_behind(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_processes(2, driver_fails, (void *)(uintptr_t) "refused to hosts");
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(2, driver_fails, (void *)(uintptr_t) "refused to streams");
    unsetenv("CT_HANDOVER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_in_a_stream_returns_at_once_and_the_stream_waits_for_it),
        cmocka_unit_test(calls_in_a_stream_and_work_between_them_keep_their_order),
        cmocka_unit_test(a_call_in_another_stream_comes_after_those_in_the_one_before),
        cmocka_unit_test(the_first_call_that_all_ranks_see_alike_is_in_no_stream),
        cmocka_unit_test(collected_calls_are_in_the_stream_too),
        cmocka_unit_test(thousands_of_calls_may_be_under_way),
        cmocka_unit_test(memory_of_libcts_own_may_grow_in_a_stream),
        cmocka_unit_test(where_no_stream_can_wait_the_host_does),
        cmocka_unit_test(any_stream_may_wait_for_a_work),
        cmocka_unit_test(a_stream_may_wait_for_host_memory_too),
        cmocka_unit_test(a_stream_may_wait_for_a_message),
        cmocka_unit_test(a_message_that_a_stream_waits_for_keeps_its_limit),
        cmocka_unit_test(without_a_context_there_is_no_stream),
        cmocka_unit_test(a_stream_goes_on_when_its_call_fails),
        cmocka_unit_test(collected_calls_that_fail_in_a_stream_are_said),
        cmocka_unit_test(a_driver_that_refuses_breaks_the_group_and_leaves_no_stream_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
