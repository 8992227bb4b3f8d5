/* SPDX-License-Identifier: Apache-2.0 */
/* test_stream_mishaps.c - calls in a stream that fail: a rank is gone, or its driver refuses.  The
 * stream goes on, and the next call says what was wrong.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/ct_cuda.h"
#include "runtime/util/log.h"
#include "tests/marks.h"
#include "tests/cuda/streams.h"

enum { ROUNDS = 6, LIMIT_MS = 2000 };

/* Not before the others have made their calls, of which this one would be the end. */
static void leave_behind_them(ct_group *group, const char *run)
{
    for (int i = 0; i < ct_size(group); i++)
        if (i != ct_rank(group))
            await(run, i);
    rank_leaves();
}

/* What is left is a call, but for "messages". */
static void one_rank_leaves(ct_group *group, void *arg)
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
    run_by("host", 3, one_rank_leaves, (void *)(uintptr_t) "calls");
    run_processes(2, one_rank_leaves, (void *)(uintptr_t) "messages");
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, one_rank_leaves, (void *)(uintptr_t) "staged");
    unsetenv("CT_DEVICE");
    run_by("stream", 3, gone_while_it_waits, NULL);
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

static void driver_fails(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_status status;
    struct scene s;

    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuStreamBatchMemOp:2", 1); /* the first one tries */
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    status = ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL);
    EXPECT(me == 1 ? status == CT_ERR_CUDA : status == CT_OK || status == CT_ERR_PEER);
    CU(device.cuStreamSynchronize(s.stream));
    if (me == 1)
        EXPECT_STATUS(ct_barrier(group, NULL), CT_ERR_CUDA);
    else
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, "on rank 1|letting a stream wait");
    all_marked(group, arg);
    tear_down(&s);
}

static void a_driver_that_refuses_breaks_the_group_and_leaves_no_stream_behind(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    run_by("host", 2, driver_fails, (void *)(uintptr_t) "refused to hosts");
    run_by("stream", 2, driver_fails, (void *)(uintptr_t) "refused to streams");
}

/* What a program sees that destroyed its stream, or took one of another GPU. */
static void destroyed_first(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    CU(device.cuStreamDestroy(s.stream));
    EXPECT_ERROR(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL), CT_ERR_CUDA,
                 "all_reduce: the stream of ct_set_stream()|not destroyed");
}

static void a_stream_that_is_no_stream_is_named(void **state)
{
    (void)state;
    if (!device_is_fake()) /* no manual says what a real driver does then */
        skip();
    run_processes(1, destroyed_first, NULL);
}

static void of_each_thread(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_ERROR(ct_set_stream(group, CU_STREAM_PER_THREAD), CT_ERR_INVALID, "per-thread|created");
    EXPECT_OK(ct_set_stream(group, CU_STREAM_LEGACY));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuStreamSynchronize(CU_STREAM_LEGACY));
    tear_down(&s);
}

static void *free_it(void *memory)
{
    if (EXPECT(device_open(0)))
        device_free(memory);
    return NULL;
}

static const char held[] = "held", handed_over[] = "call of streams";

static void wait_until_held(void)
{
    const char *const path = getenv("FAKE_CUDA_LOCK_SAYS");

    while (access(path, F_OK) != 0)
        nap(2);
}

/* Rank 0's stream waits for two messages, or each rank's for three calls. */
static void begin(ct_group *part, const struct scene *s, ct_work *works[2], int by_message)
{
    for (int i = 0; i < 2 && by_message && ct_rank(part) == 0; i++) {
        EXPECT_OK(ct_irecv(part, i == 0 ? s->recv : s->send, COUNT, CT_I32, 1, i, &works[i]));
        EXPECT_OK(ct_wait_on_stream(works[i], s->stream));
    }
    if (by_message)
        return;
    EXPECT_OK(ct_set_stream(part, s->stream));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_all_reduce(part, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL));
}

/* A thread frees memory while the driver keeps its lock.  It waits for the stream, which waits for
 * the calls or the messages, for which the group needs the driver.  The stream passes all of them
 * at the timeout of the first, so all fail. */
static void locked_out(ct_group *group, void *arg)
{
    const int by_message = !strcmp(arg, "message"), me = ct_rank(group);
    const int locks = !by_message || me == 0;
    int32_t sent[COUNT] = { 0 };
    void *memory = NULL;
    char path[160];
    ct_work *works[2] = { NULL, NULL };
    ct_group *part;
    pthread_t thread;
    struct gate gate;
    struct scene s;

    path_of(path, sizeof path, arg, me);
    setenv("FAKE_CUDA_LOCK_SAYS", path, 1);
    if (!set_up(&s, group) || !EXPECT(memory = device_alloc(100, 0))
        || !EXPECT_OK(ct_split_group(group, 0, me, &part))
        || !EXPECT_OK(ct_all_reduce(part, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL)))
        return;
    EXPECT_OK(ct_barrier(part, NULL));
    EXPECT_OK(ct_set_timeout(part, LIMIT_MS));
    if (locks)
        EXPECT(gate_close(&gate, s.stream)); /* nothing is over before it frees */
    begin(part, &s, works, by_message);
    if (locks) {
        EXPECT(pthread_create(&thread, NULL, free_it, memory) == 0);
        wait_until_held();
        mark(held, me);
        gate_open(&gate);
    } else {
        await(held, 0);
        for (int i = 0; i < 2; i++)
            EXPECT_OK(ct_send(part, sent, COUNT, CT_I32, 0, i));
        device_free(memory);
    }
    if (locks)
        EXPECT(pthread_join(thread, NULL) == 0);
    CU(device.cuStreamSynchronize(s.stream));
    for (int i = 0; i < 2 && works[i]; i++)
        EXPECT_ERROR(ct_wait(works[i]), CT_ERR_TIMEOUT,
                     "irecv of 1000 i32 from rank 1|driver did not return");
    if (!by_message)
        EXPECT((ct_barrier(part, NULL) == CT_OK) == (arg == handed_over));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT_OK(ct_barrier(group, NULL)); /* now no rank's GPU uses the buffers */
    tear_down(&s);
}

static void locked(const char *run)
{
    run_by("host", 2, locked_out, (void *)(uintptr_t)run);
}

static void a_thread_that_frees_memory_holds_a_call_until_its_timeout_at_most(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_LOCK", "kept", 1);
    locked("call");
    setenv("CT_DEVICE", "staged", 1);
    locked("staged call");
    unsetenv("CT_DEVICE");
    locked("message");
    unsetenv("FAKE_CUDA_LOCK");
}

static void but_it_holds_none_that_streams_hand_over(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("FAKE_CUDA_LOCK", "kept", 1);
    run_by("stream", 2, locked_out, (void *)(uintptr_t)handed_over);
    unsetenv("FAKE_CUDA_LOCK");
}

static void the_stream_of_each_thread_is_refused(void **state)
{
    (void)state;
    run_processes(1, of_each_thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_goes_on_when_its_call_fails),
        cmocka_unit_test(collected_calls_that_fail_in_a_stream_are_said),
        cmocka_unit_test(a_driver_that_refuses_breaks_the_group_and_leaves_no_stream_behind),
        cmocka_unit_test(a_stream_that_is_no_stream_is_named),
        cmocka_unit_test(a_thread_that_frees_memory_holds_a_call_until_its_timeout_at_most),
        cmocka_unit_test(but_it_holds_none_that_streams_hand_over),
        cmocka_unit_test(the_stream_of_each_thread_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
