/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_capture.c - the fake driver's streams that are captured into graphs.
 *
 *   cuStreamBeginCapture()   what is enqueued in the stream goes to a graph, in order
 *   -> a stream that waits for an event of the capture is captured too
 *   -> cuStreamEndCapture()  all such streams were waited for again; the graph is the caller's
 *
 * A capture is void after what would be wrong or might be, by cuda.h's words about
 * cuThreadExchangeStreamCaptureMode(); what "might be unsafe" is read as widely as it can be.
 *
 * Each stream of a capture counts its steps, and how many of the others' come before its next one.
 * The first stream must have seen all of them in the end. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdlib.h>

struct seat {
    CUstream stream;
    uint64_t seen[CAPTURED_STREAMS]; /* of each seat's steps, its own too */
};

struct capture {
    struct capture *next;
    CUgraph graph;
    CUstreamCaptureMode mode;
    pthread_t thread; /* that began it */
    unsigned long long id;
    int is_void;
    int streams;
    struct seat seats[CAPTURED_STREAMS]; /* first: in which it began */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct capture *captures;
static _Atomic int live;
static unsigned long long last_id;
static _Thread_local CUstreamCaptureMode mode; /* of this thread; global at first */

/* ---- With the lock held ------------------------------------------------------- */

/* NULL: the stream is not captured. */
static struct capture *capture_of(CUstream stream, int *seat)
{
    for (struct capture *c = captures; c; c = c->next)
        for (*seat = 0; *seat < c->streams; ++*seat)
            if (c->seats[*seat].stream == stream)
                return c;
    return NULL;
}

static struct capture *capture_by_id(unsigned long long id)
{
    struct capture *c = captures;

    while (c && c->id != id)
        c = c->next;
    return c;
}

static void step(struct capture *c, int seat)
{
    c->seats[seat].seen[seat]++;
}

/* The legacy stream would wait for the blocking streams of its context, or they for it: those that
 * are captured.  void_them: then they are void. */
static int is_implied(CUstream stream, int void_them)
{
    const CUcontext context = fake_context_of(stream);
    int implied = 0;

    for (struct capture *c = captures; c && stream == context->legacy; c = c->next)
        for (int i = 0; i < c->streams; i++)
            if (fake_context_of(c->seats[i].stream) == context
                && fake_is_blocking(c->seats[i].stream)) {
                implied = 1;
                c->is_void |= void_them;
            }
    return implied;
}

/* Whoever is captured is void with this error; otherwise the legacy stream is looked at. */
static CUresult refuse(CUstream stream, CUresult error)
{
    int seat;
    struct capture *c = capture_of(stream, &seat);

    if (!c)
        return is_implied(stream, 1) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    if (c->is_void)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    c->is_void = error != CUDA_SUCCESS;
    return error;
}

static void see(struct seat *seat, const uint64_t *seen)
{
    for (int i = 0; i < CAPTURED_STREAMS; i++)
        if (seat->seen[i] < seen[i])
            seat->seen[i] = seen[i];
}

/* ---- What other calls ask ------------------------------------------------------- */

CUresult capture_allows(const char *function)
{
    static const char *const unsafe[] = {
        "cuMemAlloc",         "cuMemAllocManaged",   "cuMemAllocHost",    "cuMemFree",
        "cuMemFreeHost",      "cuMemcpyHtoD",        "cuMemcpyDtoH",      "cuMemcpyDtoD",
        "cuStreamCreate",     "cuStreamQuery",       "cuEventQuery",      "cuStreamSynchronize",
        "cuEventSynchronize", "cuCtxSynchronize",    "cuModuleLoadData",  "cuModuleUnload",
        "cuIpcOpenMemHandle", "cuIpcCloseMemHandle", "cuMemHostRegister", "cuMemHostUnregister"
    };
    CUresult result = CUDA_SUCCESS;
    int is_unsafe = 0;

    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe && atomic_load(&live); i++)
        is_unsafe |= fake_is_named(function, unsafe[i]);
    if (!is_unsafe || mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (struct capture *c = captures; c; c = c->next)
        if (pthread_equal(c->thread, pthread_self())
                ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                      && mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
            c->is_void = 1;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult refuse_if_captured(CUstream stream, CUresult error)
{
    CUresult result;

    if (!atomic_load(&live))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    result = refuse(stream, error);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult capture_admits(CUstream stream)
{
    return refuse_if_captured(stream, CUDA_SUCCESS);
}

CUresult capture_asks(CUstream stream)
{
    return refuse_if_captured(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult capture_asks_all(CUcontext context)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    for (struct capture *c = captures; c; c = c->next)
        for (int i = 0; i < c->streams; i++)
            if (fake_context_of(c->seats[i].stream) == context) {
                c->is_void = 1;
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Also of a capture that has ended. */
CUresult capture_asks_event(const struct captured *event)
{
    struct capture *c;

    if (event->capture == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    c = capture_by_id(event->capture);
    if (c)
        c->is_void = 1;
    pthread_mutex_unlock(&lock);
    return CUDA_ERROR_CAPTURED_EVENT;
}

/* ---- What is captured ------------------------------------------------------------ */

int capture_takes(CUstream stream, struct op *op)
{
    struct capture *c = NULL;
    int seat;

    if (!atomic_load(&live))
        return 0;
    pthread_mutex_lock(&lock);
    c = capture_of(stream, &seat);
    if (c) {
        step(c, seat);
        op_keep(op);
        graph_add(c->graph, op);
    }
    pthread_mutex_unlock(&lock);
    return c != NULL;
}

int capture_records(CUstream stream, struct captured *event)
{
    const struct capture *c = NULL;
    int seat;

    if (!atomic_load(&live))
        return 0;
    pthread_mutex_lock(&lock);
    c = capture_of(stream, &seat);
    if (c) {
        event->capture = c->id;
        for (int i = 0; i < CAPTURED_STREAMS; i++)
            event->seen[i] = c->seats[seat].seen[i];
    }
    pthread_mutex_unlock(&lock);
    return c != NULL;
}

/* The stream becomes one of the capture's: what comes later there must be waited for. */
static CUresult fork_off(CUstream stream, struct capture *c, const struct captured *event)
{
    if (c->is_void)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == fake_context_of(stream)->legacy) {
        c->is_void = 1;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (c->streams == CAPTURED_STREAMS)
        fake_dies("a capture of more than %d streams", CAPTURED_STREAMS);
    c->seats[c->streams] = (struct seat){ .stream = stream };
    see(&c->seats[c->streams], event->seen);
    step(c, c->streams++);
    return CUDA_SUCCESS;
}

static CUresult wait_across(struct capture *waiting, struct capture *recorded, CUresult error)
{
    waiting->is_void = 1;
    if (recorded)
        recorded->is_void = 1;
    return error;
}

CUresult capture_waits(CUstream stream, const struct captured *event, int *taken)
{
    CUresult result = CUDA_SUCCESS;
    struct capture *c, *from;
    int seat;

    pthread_mutex_lock(&lock);
    c = capture_of(stream, &seat);
    from = event->capture ? capture_by_id(event->capture) : NULL;
    *taken = c || event->capture;
    if (c && event->capture == c->id) {
        see(&c->seats[seat], event->seen);
        step(c, seat);
    } else if (c) {
        result = wait_across(c, from,
                             event->capture ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                                            : CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    } else if (event->capture) {
        result = from ? fork_off(stream, from, event) : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- The driver's functions -------------------------------------------------------- */

static struct capture *begin(CUstream stream, CUstreamCaptureMode how)
{
    struct capture *c = calloc(1, sizeof *c);

    if (!c)
        fake_dies("no memory");
    *c = (struct capture){ .next = captures,
                           .graph = graph_create(),
                           .mode = how,
                           .thread = pthread_self(),
                           .id = ++last_id,
                           .streams = 1,
                           .seats = { { .stream = stream } } };
    atomic_fetch_add(&live, 1);
    return c;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode how)
{
    CUresult result = fake_begin_stream(__func__, &stream);
    int seat;

    if (result != CUDA_SUCCESS)
        return result;
    if (stream == fake_context_of(stream)->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    if (capture_of(stream, &seat))
        result = refuse(stream, CUDA_ERROR_INVALID_VALUE);
    else
        captures = begin(stream, how);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Nothing of the others that the first has not waited for. */
static int is_joined(const struct capture *c)
{
    int joined = 1;

    for (int i = 1; i < c->streams; i++)
        joined &= c->seats[0].seen[i] >= c->seats[i].seen[i];
    return joined;
}

/* The error with which it goes on, or why it ends. */
static CUresult verdict(struct capture *c, int seat, int *ends)
{
    *ends = 0;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (seat != 0) {
        c->is_void = 1;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    *ends = 1;
    return c->is_void      ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
           : !is_joined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                           : CUDA_SUCCESS;
}

static void forget(struct capture *c)
{
    struct capture **place = &captures;

    while (*place != c)
        place = &(*place)->next;
    *place = c->next;
    atomic_fetch_sub(&live, 1);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = fake_begin_stream(__func__, &stream);
    CUgraph captured = NULL;
    struct capture *c;
    int seat, ends = 0;

    *graph = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    c = capture_of(stream, &seat);
    result = c ? verdict(c, seat, &ends) : CUDA_ERROR_INVALID_VALUE;
    if (ends) {
        captured = c->graph;
        forget(c);
        free(c);
    }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS)
        *graph = captured;
    else if (captured)
        cuGraphDestroy(captured);
    return result;
}

static CUresult look(CUstream stream, CUstreamCaptureStatus *status, CUgraph *graph)
{
    const struct capture *c;
    CUresult result = CUDA_SUCCESS;
    int seat;

    pthread_mutex_lock(&lock);
    c = capture_of(stream, &seat);
    if (!c && is_implied(stream, 0))
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
              : c->is_void ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *graph = c && !c->is_void ? c->graph : NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    const CUresult result = fake_begin_stream(__func__, &stream);
    CUgraph graph;

    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return result == CUDA_SUCCESS ? look(stream, status, &graph) : result;
}

static CUresult get_info(const char *function, CUstream stream, CUstreamCaptureStatus *status,
                         CUgraph *graph, int more)
{
    const CUresult result = fake_begin_stream(function, &stream);
    CUgraph captured;

    if (result != CUDA_SUCCESS)
        return result;
    return more ? CUDA_ERROR_NOT_SUPPORTED : look(stream, status, graph ? graph : &captured);
}

/* Which nodes come before the next one nobody asks here. */
#if CUDA_VERSION >= 13000
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes,
                                const CUgraphEdgeData **edges, size_t *count)
{
    return get_info(__func__, stream, status, graph, id || nodes || edges || count);
}
#else
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                CUgraph *graph, const CUgraphNode **nodes, size_t *count)
{
    return get_info(__func__, stream, status, graph, id || nodes || count);
}
#endif

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *how)
{
    const CUresult result = fake_begin(__func__);
    const CUstreamCaptureMode before = mode;

    if (result != CUDA_SUCCESS)
        return result;
    if (*how > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    mode = *how;
    *how = before;
    return CUDA_SUCCESS;
}
