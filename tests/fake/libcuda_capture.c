/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_capture.c - the fake driver's streams that are captured into graphs.
 *
 *   cuStreamBeginCapture()   what is enqueued in the stream goes to a graph, in order
 *   -> a stream that waits for an event of the capture is captured too
 *   -> cuStreamEndCapture()  all such streams were waited for again; the graph is the caller's
 *
 * What would be wrong meanwhile makes it void (libcuda_capture_rules.c).
 *
 * Each stream of a capture counts its steps, and how many of the others' come before its next one.
 * The first stream must have seen all of them in the end. */
#include "tests/fake/libcuda_capture.h"

#include <stdlib.h>

struct captures captures = { .lock = PTHREAD_MUTEX_INITIALIZER };
static unsigned long long last_id; /* with the lock held */

/* ---- With the lock held ------------------------------------------------------- */

struct capture *capture_of(CUstream stream, int *seat)
{
    for (struct capture *c = captures.first; c; c = c->next)
        for (*seat = 0; *seat < c->streams; ++*seat)
            if (c->seats[*seat].stream == stream)
                return c;
    return NULL;
}

struct capture *capture_by_id(unsigned long long id)
{
    struct capture *c = captures.first;

    while (c && c->id != id)
        c = c->next;
    return c;
}

static void step(struct capture *c, int seat)
{
    c->seats[seat].seen[seat]++;
}

static void see(struct seat *seat, const uint64_t *seen)
{
    for (int i = 0; i < CAPTURED_STREAMS; i++)
        if (seat->seen[i] < seen[i])
            seat->seen[i] = seen[i];
}

int capture_has(CUstream stream)
{
    int seat, has;

    pthread_mutex_lock(&captures.lock);
    has = capture_of(stream, &seat) != NULL;
    pthread_mutex_unlock(&captures.lock);
    return has;
}

/* ---- What is captured ------------------------------------------------------------ */

int capture_takes(CUstream stream, struct op *op)
{
    struct capture *c = NULL;
    int seat;

    if (!atomic_load(&captures.live))
        return 0;
    pthread_mutex_lock(&captures.lock);
    c = capture_of(stream, &seat);
    if (c) {
        step(c, seat);
        op_keep(op);
        graph_add(c->graph, op);
    }
    pthread_mutex_unlock(&captures.lock);
    return c != NULL;
}

int capture_records(CUstream stream, struct captured *event)
{
    const struct capture *c = NULL;
    int seat;

    if (!atomic_load(&captures.live))
        return 0;
    pthread_mutex_lock(&captures.lock);
    c = capture_of(stream, &seat);
    if (c) {
        event->capture = c->id;
        for (int i = 0; i < CAPTURED_STREAMS; i++)
            event->seen[i] = c->seats[seat].seen[i];
    }
    pthread_mutex_unlock(&captures.lock);
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

    pthread_mutex_lock(&captures.lock);
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
    pthread_mutex_unlock(&captures.lock);
    return result;
}

/* ---- The driver's functions -------------------------------------------------------- */

static struct capture *begin(CUstream stream, CUstreamCaptureMode how)
{
    struct capture *c = calloc(1, sizeof *c);

    if (!c)
        fake_dies("no memory");
    *c = (struct capture){ .next = captures.first,
                           .graph = graph_create(),
                           .mode = how,
                           .thread = pthread_self(),
                           .id = ++last_id,
                           .streams = 1,
                           .seats = { { .stream = stream } } };
    atomic_fetch_add(&captures.live, 1);
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
    pthread_mutex_lock(&captures.lock);
    if (capture_of(stream, &seat))
        result = capture_refuse(stream, CUDA_ERROR_INVALID_VALUE);
    else
        captures.first = begin(stream, how);
    pthread_mutex_unlock(&captures.lock);
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
    struct capture **place = &captures.first;

    while (*place != c)
        place = &(*place)->next;
    *place = c->next;
    atomic_fetch_sub(&captures.live, 1);
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
    pthread_mutex_lock(&captures.lock);
    c = capture_of(stream, &seat);
    result = c ? verdict(c, seat, &ends) : CUDA_ERROR_INVALID_VALUE;
    if (ends) {
        captured = c->graph;
        forget(c);
        free(c);
    }
    pthread_mutex_unlock(&captures.lock);
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

    pthread_mutex_lock(&captures.lock);
    c = capture_of(stream, &seat);
    if (!c && capture_is_implied(stream, 0))
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !c           ? CU_STREAM_CAPTURE_STATUS_NONE
              : c->is_void ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *graph = c && !c->is_void ? c->graph : NULL;
    pthread_mutex_unlock(&captures.lock);
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

/* The order of the nodes is not recorded. */
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
