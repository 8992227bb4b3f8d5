/* SPDX-License-Identifier: Apache-2.0 */
/* test_fake_graphs.c - what tests of calls in CUDA graphs rely on: that the fake driver captures
 * and launches as cuda.h says.  What it refuses meanwhile: test_fake_captures.c. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include "tests/fake/fake_graphs.h"

static void CUDA_CB count_up(void *arg)
{
    ++*(int *)arg;
}

static void launches(struct scene *s)
{
    CUstreamCaptureStatus status;
    CUgraphExec exec;
    int calls = 0;

    CU(begin(s));
    CU(device.cuStreamIsCapturing(s->stream, &status));
    EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CU(device.cuMemcpyDtoDAsync(at(s->two), at(s->one), BYTES, s->stream));
    CU(set(s->one, 9, s->stream));
    CU(device.cuLaunchHostFunc(s->stream, count_up, &calls));
    exec = end_and_instantiate(s->stream);
    CU(device.cuStreamIsCapturing(s->stream, &status));
    EXPECT(status == CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT(byte_of(s->two) == 2 && calls == 0);
    for (int i = 3; i < 6; i++) {
        CU(set(s->one, (unsigned char)i, s->other));
        CU(device.cuGraphLaunch(exec, s->other));
        EXPECT(byte_of(s->two) == i && byte_of(s->one) == 9 && calls == i - 2);
    }
    CU(device.cuGraphLaunch(exec, s->other));
    CU(device.cuGraphExecDestroy(exec)); /* what was launched goes on */
    EXPECT(byte_of(s->two) == 9 && calls == 4);
}

static void what_is_captured_runs_at_each_launch_and_not_before(void **state)
{
    (void)state;
    run(launches);
}

static void forks(struct scene *s)
{
    CUgraphExec exec;

    CU(begin(s));
    CU(set(s->one, 7, s->stream));
    CU(follow(s->other, s->stream, s->event));
    CU(device.cuMemcpyDtoDAsync(at(s->two), at(s->one), BYTES, s->other));
    CU(follow(s->stream, s->other, s->event));
    CU(set(s->one, 8, s->stream));
    exec = end_and_instantiate(s->stream);
    CU(set(s->two, 5, s->other)); /* it is captured no more */
    EXPECT(byte_of(s->one) == 1 && byte_of(s->two) == 5);
    CU(device.cuGraphLaunch(exec, s->stream));
    EXPECT(byte_of(s->one) == 8 && byte_of(s->two) == 7);
    CU(device.cuGraphExecDestroy(exec));
}

static void a_stream_that_waits_for_a_captured_event_is_captured_too(void **state)
{
    (void)state;
    run(forks);
}

static void stays_apart(struct scene *s)
{
    CU(begin(s));
    CU(follow(s->other, s->stream, s->event));
    EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CU(begin(s));
    CU(follow(s->other, s->stream, s->event));
    CU(follow(s->stream, s->other, s->event));
    CU(set(s->one, 7, s->other));
    EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    EXPECT(byte_of(s->one) == 1);
}

static void a_stream_that_is_not_waited_for_again_spoils_the_graph(void **state)
{
    (void)state;
    run(stays_apart);
}

static void waits_across(struct scene *s)
{
    CUstream third;

    CU(device.cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    CU(device.cuEventRecord(s->event, s->other));
    CU(begin(s));
    EXPECT(device.cuStreamWaitEvent(s->stream, s->event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    EXPECT(set(s->one, 7, s->stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    CU(begin(s));
    CU(device.cuEventRecord(s->event, s->stream));
    CU(device.cuStreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(device.cuStreamWaitEvent(third, s->event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
    EXPECT(end(third) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* Of a capture that is over. */
    EXPECT(device.cuStreamWaitEvent(third, s->event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CU(device.cuStreamDestroy(third));
}

static void what_is_captured_and_what_is_not_do_not_wait_for_each_other(void **state)
{
    (void)state;
    run(waits_across);
}

/* ---- Memory ---------------------------------------------------------------------------- */

static void launch_what_was_freed(void)
{
    struct scene s;
    CUgraphExec exec;

    if (!set_up(&s) || begin(&s) != CUDA_SUCCESS || set(s.one, 7, s.stream) != CUDA_SUCCESS)
        return;
    exec = end_and_instantiate(s.stream);
    device_free(s.one);
    if (device_alloc(BYTES, 1) == s.one) /* other memory at the same place does not do */
        device.cuGraphLaunch(exec, s.stream);
}

static void freed(ct_group *group, void *arg)
{
    (void)group;
    (void)arg;
    EXPECT(
        device_ends(launch_what_was_freed, "a graph that is launched uses memory which was freed"));
}

static void the_launch_of_a_graph_whose_memory_was_freed_ends_the_program(void **state)
{
    (void)state;
    run_processes(1, freed, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_captured_runs_at_each_launch_and_not_before),
        cmocka_unit_test(a_stream_that_waits_for_a_captured_event_is_captured_too),
        cmocka_unit_test(a_stream_that_is_not_waited_for_again_spoils_the_graph),
        cmocka_unit_test(what_is_captured_and_what_is_not_do_not_wait_for_each_other),
        cmocka_unit_test(the_launch_of_a_graph_whose_memory_was_freed_ends_the_program),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
