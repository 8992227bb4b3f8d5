/* SPDX-License-Identifier: Apache-2.0 */
/* test_captures.c - which calls can't be in a CUDA graph, and what becomes of capture and group
 * then; and that libct's calls beside a capture leave it sound.
 *
 * Runs against tests/fake/ alone, its driver and its NCCL. */
#include "tests/harness.h"

#ifdef CT_WITH_NCCL

#include <stdlib.h>

#include "tests/marks.h"
#include "tests/cuda/graphs.h"

/* ---- What can't be ------------------------------------------------------------------- */

/* Refused in the same words on all ranks; the capture and the group are as sound as before. */
static void refused(const struct scene *s, ct_status got, const char *words)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    EXPECT_ERROR(got, CT_ERR_INVALID, words);
    CU(device.cuStreamIsCapturing(s->stream, &status));
    EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void not_joined(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    begin(&s);
    refused(&s, all_reduce(&s), "all_reduce|has not joined NCCL yet|once before the capture");
    refused(&s, ct_all_gather(group, s.send, s.recv, COUNT, CT_I32, NULL),
            "all_gather|has not joined NCCL yet");
    end_and_forget(&s);
    join(&s);
    launch_with_new_data(&s, &all_reduce_of_sums);
    scene_tear_down(&s);
}

static void a_group_that_has_not_joined_nccl_says_so(void **state)
{
    (void)state;
    run_apart(3, 2, not_joined, NULL);
}

/* What NCCL can't, on all ranks or on one. */
static void some_cant(ct_group *group, void *arg)
{
    static const char words[] =
        "a CUDA graph can contain only calls that use NCCL|on some rank this call does neither";
    const size_t ones[PARTS] = { 1, 1, 1, 1 };
    struct scene s;
    ct_work *work = NULL;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    join(&s);
    EXPECT_OK(all_reduce(&s));
    begin(&s);
    refused(&s, ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_BXOR, NULL), words);
    refused(&s, ct_all_reduce(group, s.send, s.recv, COUNT, CT_F32, CT_MAX, NULL), words);
    refused(&s, ct_all_to_all(group, s.send, s.me == 1 ? s.send : s.recv, COUNT, CT_I32, NULL),
            words);
    refused(&s, ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, &work),
            "being captured|without a work");
    refused(&s, ct_all_gather_v(group, s.send, 1, s.recv, ones, NULL, CT_I32, NULL), words);
    refused(&s, ct_all_to_all_v(group, s.send, ones, NULL, s.recv, ones, NULL, CT_I32, NULL),
            "being captured");
    EXPECT_OK(ct_coalesce_begin(group));
    refused(&s, all_reduce(&s), "being captured");
    EXPECT_OK(ct_coalesce_end(group, NULL));
    EXPECT_OK(all_reduce(&s)); /* as before */
    end_and_forget(&s);
    launch_with_new_data(&s, &all_reduce_of_sums);
    scene_tear_down(&s);
}

static void what_nccl_cant_is_refused_on_all_ranks_and_the_capture_stays_sound(void **state)
{
    (void)state;
    run_apart(3, 2, some_cant, NULL);
}

static void waits(ct_group *group, void *arg)
{
    struct scene s;
    ct_work *work = NULL;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_MAX, &work));
    begin(&s);
    refused(&s, ct_wait_on_stream(work, s.stream), "ct_wait_on_stream|being captured");
    end_and_forget(&s);
    EXPECT_OK(ct_wait(work));
    scene_tear_down(&s);
}

static void no_stream_that_is_captured_waits_for_a_work(void **state)
{
    (void)state;
    run_apart(2, 0, waits, NULL);
}

/* Its time has not begun to run, so it may come when that would be over. */
static void message_waits(ct_group *group, void *arg)
{
    enum { SOON_MS = 60 };
    int32_t value = 5, got = 0;
    ct_work *work = NULL;
    struct scene s;

    if (!scene_set_up(&s, group, 4))
        return;
    if (s.me == 0) {
        await(arg, 1);
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 1, 0));
    } else {
        EXPECT_OK(ct_irecv(group, &got, 1, CT_I32, 0, 0, &work));
        EXPECT_OK(ct_set_timeout(group, SOON_MS));
        begin(&s);
        refused(&s, ct_wait_on_stream(work, s.stream), "ct_wait_on_stream|being captured");
        end_and_forget(&s);
        nap(4 * SOON_MS);
        EXPECT_OK(ct_set_timeout(group, GROUP_TIMEOUT_MS));
        mark(arg, 1);
        EXPECT_OK(ct_wait(work));
        EXPECT(got == 5);
    }
    scene_tear_down(&s);
}

static void a_message_is_then_as_it_was(void **state)
{
    (void)state;
    run_apart(2, 0, message_waits, (void *)(uintptr_t) "refused");
}

/* What streams can do the group's first call finds out.  Only rank 0 has waited for that, so rank 1
 * must before it decides how the captured call goes. */
static void behind_a_work(ct_group *group, void *arg)
{
    CUgraphExec exec;
    struct scene s;
    ct_work *work = NULL;

    if (!scene_set_up(&s, group, *(const int *)arg))
        return;
    put(&s, 1);
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, &work));
    if (s.me == 0)
        EXPECT_OK(ct_wait(work));
    begin(&s);
    EXPECT_OK(all_reduce(&s));
    exec = end(&s);
    if (s.me != 0)
        EXPECT_OK(ct_wait(work));
    for (int round = 2; round < 4 && exec; round++) {
        put(&s, round);
        CU(device.cuGraphLaunch(exec, s.stream));
        look(&s, s.recv, round, COUNT, sum_is);
    }
    if (exec)
        CU(device.cuGraphExecDestroy(exec));
    scene_tear_down(&s);
}

static void a_captured_call_follows_a_first_call_that_one_rank_has_not_waited_for(void **state)
{
    static const int apart = 4, shared = 1;

    (void)state;
    setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    setenv("FAKE_CUDA_LAG_US", "20000", 1);
    run_apart(2, 2, behind_a_work, (void *)(uintptr_t)&shared);
    run_apart(2, 2, behind_a_work, (void *)(uintptr_t)&apart);
}

static void elsewhere(ct_group *group, void *arg)
{
    struct scene s;

    (void)arg;
    if (!scene_set_up(&s, group, 1))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    for (int i = 0; i < 2; i++) {
        begin(&s);
        refused(&s, all_reduce(&s),
                i ? "can contain only calls that use NCCL" : "once before the capture");
        end_and_forget(&s);
        put(&s, i);
        EXPECT_OK(all_reduce(&s));
        look(&s, s.recv, i, COUNT, sum_is);
    }
    scene_tear_down(&s);
}

static void calls_that_the_host_works_in_are_refused(void **state)
{
    (void)state;
    setenv("CT_DEVICE", "staged", 1);
    run_apart(1, 0, elsewhere, NULL);
    run_apart(2, 0, elsewhere, NULL);
    setenv("CT_DEVICE", "nccl", 1);
    run_apart(2, 0, elsewhere, NULL);
}

static void one_is_void(ct_group *group, void *arg)
{
    CUgraph graph;
    struct scene s;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    join(&s);
    begin(&s);
    if (s.me == 1)
        EXPECT(device.cuStreamQuery(s.stream) != CUDA_SUCCESS);
    EXPECT_ERROR(all_reduce(&s), CT_ERR_INVALID,
                 s.me == 1 ? "the capture of the group's stream is void"
                           : "can contain only calls that use NCCL");
    if (s.me == 1)
        EXPECT(device.cuStreamEndCapture(s.stream, &graph) != CUDA_SUCCESS);
    else
        end_and_forget(&s);
    launch_with_new_data(&s, &all_reduce_of_sums);
    scene_tear_down(&s);
}

static void a_capture_that_is_void_takes_no_call(void **state)
{
    (void)state;
    run_apart(3, 0, one_is_void, NULL);
}

/* ---- Ranks that differ --------------------------------------------------------------- */

static void one_captures(ct_group *group, void *arg)
{
    const int gpus = *(const int *)arg;
    struct scene s;

    if (!scene_set_up(&s, group, gpus))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(all_reduce(&s));
    CU(device.cuStreamSynchronize(s.stream));
    if (s.me == 0) {
        begin(&s);
        EXPECT_ERROR(all_reduce(&s), CT_ERR_MISMATCH, "the ranks disagree|in a CUDA graph");
        end_and_forget(&s);
    } else {
        EXPECT_OK(ct_set_stream(group, NULL)); /* says by itself how it fared */
        EXPECT_ERROR(all_reduce(&s), CT_ERR_MISMATCH, "the ranks disagree|in a CUDA graph");
    }
    scene_free(&s);
}

static void one_rank_that_captures_alone_makes_another_call(void **state)
{
    static const int apart = 4, shared = 1;

    (void)state;
    run_apart(2, 2, one_captures, (void *)(uintptr_t)&apart);
    run_apart(2, 0, one_captures, (void *)(uintptr_t)&shared);
    use_link("tcp");
    run_apart(2, 0, one_captures, (void *)(uintptr_t)&apart);
    use_link(NULL);
    setenv("CT_DEVICE", "staged", 1);
    run_apart(2, 0, one_captures, (void *)(uintptr_t)&apart);
}

/* libct has left this thread as it was. */
static int thread_is_global(void)
{
    CUstreamCaptureMode now = CU_STREAM_CAPTURE_MODE_GLOBAL;

    return device.cuThreadExchangeStreamCaptureMode(&now) == CUDA_SUCCESS
           && now == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

static void one_fails(ct_group *group, void *arg)
{
    CUgraph graph;
    struct scene s;

    (void)arg;
    if (!scene_set_up(&s, group, 4))
        return;
    join(&s);
    begin(&s);
    EXPECT_STATUS(all_reduce(&s), s.me == 1 ? CT_ERR_NCCL : CT_OK);
    EXPECT(thread_is_global());
    if (s.me == 1)
        EXPECT(device.cuStreamEndCapture(s.stream, &graph)
               == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    else
        end_and_forget(&s);
    EXPECT_STATUS(ct_barrier(group, NULL), s.me == 1 ? CT_ERR_NCCL : CT_ERR_PEER);
    scene_free(&s);
}

static void a_call_that_fails_leaves_no_half_of_it_in_a_graph(void **state)
{
    (void)state;
    setenv("FAKE_NCCL_FAIL", "ncclAllReduce:2:1", 1);
    run_apart(3, 0, one_fails, NULL);
}

/* ---- A capture of another stream --------------------------------------------------------- */

static void beside_a_capture(ct_group *group, void *arg)
{
    const int gpus = *(const int *)arg;
    ct_work *work = NULL, *other = NULL;
    ct_group *part = NULL;
    int32_t here = 1;
    CUstream calls;
    struct scene s;

    if (!scene_set_up(&s, group, gpus) || !CU(device.cuStreamCreate(&calls, CU_STREAM_NON_BLOCKING))
        || !EXPECT_OK(ct_split_group(group, 0, s.me, &part)))
        return;
    put(&s, 3);
    EXPECT_OK(all_reduce(&s)); /* the GPU's first; the part's comes in the capture */
    s.group = part;
    EXPECT_OK(ct_barrier(group, NULL)); /* all that the test itself allocates is there */
    CU(device.cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CU(device.cuMemsetD8Async(at(s.recv), 7, 1, s.stream));
    EXPECT_OK(ct_all_reduce(part, s.send, s.recv, COUNT, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_all_reduce(part, s.send, s.recv, COUNT, CT_I32, CT_SUM, &other));
    EXPECT_OK(ct_wait_on_stream(work, calls));
    EXPECT_OK(ct_wait(work));
    EXPECT_OK(ct_wait(other));
    EXPECT_OK(ct_set_stream(part, calls));
    EXPECT_OK(all_reduce(&s));
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_send(part, &here, 1, CT_I32, (s.me + 1) % s.p, 0));
    EXPECT_OK(ct_recv(part, s.send, 1, CT_I32, CT_ANY_SOURCE, 0, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
    end_and_forget(&s);
    EXPECT(thread_is_global());
    EXPECT_OK(ct_barrier(group, NULL)); /* no rank captures any more */
    put(&s, 3);
    EXPECT_OK(all_reduce(&s));
    CU(device.cuStreamSynchronize(calls));
    look(&s, s.recv, 3, COUNT, sum_is);
    EXPECT_OK(ct_destroy_process_group(part));
    s.group = group;
    CU(device.cuStreamDestroy(calls));
    scene_tear_down(&s);
}

static void calls_beside_a_capture_leave_it_sound(void **state)
{
    static const int apart = 4, shared = 1;

    (void)state;
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&apart);
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&shared);
    setenv("CT_DEVICE", "staged", 1);
    run_apart(3, 2, beside_a_capture, (void *)(uintptr_t)&shared);
}

static void a_group_ends(ct_group *group, void *arg)
{
    ct_group *part = NULL;
    struct scene s, of_part;

    (void)arg;
    if (!scene_set_up(&s, group, 4) || !EXPECT_OK(ct_split_group(group, 0, 0, &part)))
        return;
    of_part = s;
    of_part.group = part;
    join(&of_part);
    begin(&s);
    EXPECT_OK(all_reduce(&of_part));
    end_and_forget(&s);
    EXPECT_OK(ct_barrier(group, NULL));
    begin(&s); /* in the stream of that call */
    EXPECT_OK(ct_destroy_process_group(part));
    end_and_forget(&s);
    scene_tear_down(&s);
}

static void so_does_the_end_of_a_group(void **state)
{
    (void)state;
    run_apart(2, 0, a_group_ends, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_group_that_has_not_joined_nccl_says_so, forget_settings),
        cmocka_unit_test_teardown(
            what_nccl_cant_is_refused_on_all_ranks_and_the_capture_stays_sound, forget_settings),
        cmocka_unit_test_teardown(no_stream_that_is_captured_waits_for_a_work, forget_settings),
        cmocka_unit_test_teardown(a_message_is_then_as_it_was, forget_settings),
        cmocka_unit_test_teardown(
            a_captured_call_follows_a_first_call_that_one_rank_has_not_waited_for, forget_settings),
        cmocka_unit_test_teardown(calls_that_the_host_works_in_are_refused, forget_settings),
        cmocka_unit_test_teardown(a_capture_that_is_void_takes_no_call, forget_settings),
        cmocka_unit_test_teardown(one_rank_that_captures_alone_makes_another_call, forget_settings),
        cmocka_unit_test_teardown(a_call_that_fails_leaves_no_half_of_it_in_a_graph,
                                  forget_settings),
        cmocka_unit_test_teardown(calls_beside_a_capture_leave_it_sound, forget_settings),
        cmocka_unit_test_teardown(so_does_the_end_of_a_group, forget_settings),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA or NCCL */
}

#endif
