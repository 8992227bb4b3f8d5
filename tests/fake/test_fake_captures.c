/* SPDX-License-Identifier: Apache-2.0 */
/* test_fake_captures.c - what tests of calls in CUDA graphs rely on: that the fake driver refuses,
 * while a stream is captured, what cuda.h says, and takes for unsafe what might be. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <pthread.h>

#include "tests/fake/fake_graphs.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_ask_what_is_captured_makes_it_void),
        cmocka_unit_test(the_default_stream_may_not_be_used_while_a_blocking_one_is_captured),
        cmocka_unit_test(what_might_be_unsafe_is_refused_by_the_modes_of_thread_and_capture),
        cmocka_unit_test(a_capture_ends_where_and_by_whom_it_was_begun),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
