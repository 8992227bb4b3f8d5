/* SPDX-License-Identifier: Apache-2.0 */
/* test_fake_graphs.c - what tests of calls in CUDA graphs rely on: that the fake driver captures,
 * launches and refuses as cuda.h says, and takes for unsafe what might be. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>
#include <stdlib.h>

#include "tests/cuda/device.h"

enum { BYTES = 64 };

/* Two streams, two buffers, an event. */
struct scene {
    CUstream stream, other;
    char *one, *two;
    CUevent event;
};

static int set_up(struct scene *s)
{
    *s = (struct scene){ .stream = NULL };
    if (!EXPECT(device_open(0)))
        return 0;
    CU(device.cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    CU(device.cuStreamCreate(&s->other, CU_STREAM_NON_BLOCKING));
    CU(device.cuEventCreate(&s->event, CU_EVENT_DISABLE_TIMING));
    s->one = device_alloc(BYTES, 1);
    s->two = device_alloc(BYTES, 2);
    return EXPECT(s->one && s->two);
}

static void tear_down(const struct scene *s)
{
    CU(device.cuCtxSynchronize());
    CU(device.cuEventDestroy(s->event));
    CU(device.cuStreamDestroy(s->stream));
    CU(device.cuStreamDestroy(s->other));
    device_free(s->one);
    device_free(s->two);
}

struct part {
    void (*body)(struct scene *);
};

static void in_a_scene(ct_group *group, void *arg)
{
    const struct part *part = arg;
    struct scene s;

    (void)group;
    if (!set_up(&s))
        return;
    part->body(&s);
    tear_down(&s);
}

/* Each test is a process of its own: none of them inherits a driver. */
static void run(void (*body)(struct scene *))
{
    run_processes(1, in_a_scene, &(struct part){ body });
}

static CUresult set(void *memory, unsigned char byte, CUstream stream)
{
    return device.cuMemsetD8Async(at(memory), byte, BYTES, stream);
}

/* Waits for the whole device. */
static int byte_of(const char *memory)
{
    char bytes[BYTES];

    if (device.cuCtxSynchronize() != CUDA_SUCCESS
        || device.cuMemcpyDtoH(bytes, at(memory), BYTES) != CUDA_SUCCESS)
        return -1;
    return bytes[BYTES - 1];
}

static CUresult begin(const struct scene *s)
{
    return device.cuStreamBeginCapture(s->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* With what error it ends; a graph is destroyed. */
static CUresult end(CUstream stream)
{
    CUgraph graph = NULL;
    const CUresult result = device.cuStreamEndCapture(stream, &graph);

    EXPECT((graph != NULL) == (result == CUDA_SUCCESS));
    if (graph)
        CU(device.cuGraphDestroy(graph));
    return result;
}

static CUgraphExec end_and_instantiate(CUstream stream)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    CU(device.cuStreamEndCapture(stream, &graph));
    CU(device.cuGraphInstantiate(&exec, graph, 0));
    CU(device.cuGraphDestroy(graph));
    return exec;
}

static CUresult follow(CUstream later, CUstream earlier, CUevent event)
{
    const CUresult result = device.cuEventRecord(event, earlier);

    return result == CUDA_SUCCESS ? device.cuStreamWaitEvent(later, event, 0) : result;
}

/* ---- What a graph does ---------------------------------------------------------------- */

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

/* ---- What makes a capture void ------------------------------------------------------------ */

enum question {
    QUERY,
    SYNCHRONIZE,
    QUERY_EVENT,
    OTHER_STREAM,
    CONTEXT,
    DESTROY,
    LAUNCH,
    QUESTIONS
};

static CUresult ask(const struct scene *s, enum question question, CUgraphExec exec)
{
    switch (question) {
    case QUERY:
        return device.cuStreamQuery(s->stream);
    case SYNCHRONIZE:
        return device.cuStreamSynchronize(s->stream);
    case QUERY_EVENT:
        CU(device.cuEventRecord(s->event, s->stream));
        return device.cuEventQuery(s->event);
    case OTHER_STREAM:
        CU(follow(s->other, s->stream, s->event));
        return device.cuStreamQuery(s->other);
    case CONTEXT:
        return device.cuCtxSynchronize();
    case LAUNCH:
        return device.cuGraphLaunch(exec, s->stream);
    default:
        CU(follow(s->other, s->stream, s->event));
        return device.cuStreamDestroy(s->other);
    }
}

static void asks(struct scene *s)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstreamCaptureStatus status;
    CUgraphExec exec;

    CU(begin(s));
    exec = end_and_instantiate(s->stream);
    CU(device.cuThreadExchangeStreamCaptureMode(&relaxed)); /* that changes nothing */
    EXPECT(relaxed == CU_STREAM_CAPTURE_MODE_GLOBAL);
    for (int i = 0; i < QUESTIONS; i++) {
        CU(begin(s));
        EXPECT(ask(s, (enum question)i, exec)
               == (i == QUERY_EVENT ? CUDA_ERROR_CAPTURED_EVENT
                   : i == DESTROY   ? CUDA_SUCCESS
                                    : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
        CU(device.cuStreamIsCapturing(s->stream, &status));
        EXPECT(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        if (i == DESTROY)
            CU(device.cuStreamCreate(&s->other, CU_STREAM_NON_BLOCKING));
    }
    CU(device.cuGraphExecDestroy(exec));
}

static void to_ask_what_is_captured_makes_it_void(void **state)
{
    (void)state;
    run(asks);
}

static void legacy(struct scene *s)
{
    CUstreamCaptureStatus status;
    CUstream blocking;

    CU(begin(s));
    CU(set(s->one, 7, NULL));
    CU(end(s->stream));
    CU(device.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CU(device.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(device.cuStreamIsCapturing(NULL, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CU(end(blocking));
    CU(device.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(set(s->one, 7, NULL) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT(end(blocking) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CU(device.cuStreamDestroy(blocking));
    EXPECT(device.cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED)
           == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static void the_default_stream_may_not_be_used_while_a_blocking_one_is_captured(void **state)
{
    (void)state;
    run(legacy);
}

/* Who makes a call, in which mode, while which is captured by the first thread. */
struct outsider {
    CUstreamCaptureMode captured, mine;
    int may;
};

static void *allocate(void *arg)
{
    const struct outsider *o = arg;
    CUstreamCaptureMode mode = o->mine;
    CUdeviceptr memory;

    if (!EXPECT(device_open(0)))
        return NULL;
    CU(device.cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT(device.cuMemAlloc(&memory, BYTES)
           == (o->may ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    if (o->may)
        CU(device.cuMemFree(memory));
    CU(device.cuThreadExchangeStreamCaptureMode(&mode));
    return NULL;
}

/* [captured][mine]: global, thread-local, relaxed */
static void unsafe_calls(struct scene *s)
{
    static const int by_itself[3][3] = { { 0, 0, 1 }, { 0, 0, 1 }, { 1, 1, 1 } };
    static const int by_another[3][3] = { { 0, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 } };
    pthread_t thread;

    for (int captured = 0; captured < 3; captured++)
        for (int mine = 0; mine < 3; mine++)
            for (int itself = 0; itself <= 1; itself++) {
                struct outsider o = { (CUstreamCaptureMode)captured, (CUstreamCaptureMode)mine,
                                      (itself ? by_itself : by_another)[captured][mine] };

                CU(device.cuStreamBeginCapture(s->stream, o.captured));
                if (itself)
                    allocate(&o);
                else if (EXPECT(pthread_create(&thread, NULL, allocate, &o) == 0))
                    pthread_join(thread, NULL);
                EXPECT(end(s->stream)
                       == (o.may ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
            }
}

static void what_might_be_unsafe_is_refused_by_the_modes_of_thread_and_capture(void **state)
{
    (void)state;
    run(unsafe_calls);
}

static void *ends_elsewhere(void *arg)
{
    CUgraph graph;

    if (EXPECT(device_open(0)))
        EXPECT(device.cuStreamEndCapture(arg, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    return NULL;
}

static void wrong_ends(struct scene *s)
{
    pthread_t thread;

    EXPECT(end(s->stream) == CUDA_ERROR_INVALID_VALUE);
    CU(begin(s));
    if (EXPECT(pthread_create(&thread, NULL, ends_elsewhere, s->stream) == 0))
        pthread_join(thread, NULL);
    CU(follow(s->other, s->stream, s->event));
    EXPECT(end(s->other) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    EXPECT(end(s->stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_capture_ends_where_and_by_whom_it_was_begun(void **state)
{
    (void)state;
    run(wrong_ends);
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
        device_ends(launch_what_was_freed, "a graph is launched that uses memory which was freed"));
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
        cmocka_unit_test(to_ask_what_is_captured_makes_it_void),
        cmocka_unit_test(the_default_stream_may_not_be_used_while_a_blocking_one_is_captured),
        cmocka_unit_test(what_might_be_unsafe_is_refused_by_the_modes_of_thread_and_capture),
        cmocka_unit_test(a_capture_ends_where_and_by_whom_it_was_begun),
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
