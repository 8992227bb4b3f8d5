/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_event.c - the fake driver's events, and functions of the host in a stream. */
#include "tests/fake/libcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fake/counts.h"

struct CUevent_st {
    struct point recorded;    /* in no stream: never */
    struct captured captured; /* or so */
    int timed;
    _Atomic int64_t ns; /* when its turn came last */
    CUevent next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those with a time, which may be destroyed before their turn in a stream comes: never freed. */
static CUevent timed;

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result != CUDA_SUCCESS)
        return result;
    *event = calloc(1, sizeof **event);
    if (!*event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*event)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    if ((*event)->timed) {
        pthread_mutex_lock(&lock);
        (*event)->next = timed;
        timed = *event;
        pthread_mutex_unlock(&lock);
    }
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS && !event->timed)
        free(event);
    return result;
}

static void run_stamp(struct op *op)
{
    CUevent event = op->argument;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&event->ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    const CUresult result = fake_begin_enqueue(__func__, &stream);
    struct op *op;

    if (result != CUDA_SUCCESS || capture_records(stream, &event->captured))
        return result;
    atomic_fetch_add(&fake_counts[FAKE_EVENTS], 1);
    op = op_create(event->timed ? run_stamp : NULL);
    op->argument = event;
    event->captured.capture = 0;
    event->recorded = fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

static CUresult begin_to_ask(const char *function, CUevent event)
{
    CUcontext context;
    const CUresult result = fake_begin_in(function, &context);

    return result == CUDA_SUCCESS ? capture_asks_event(&event->captured) : result;
}

CUresult cuEventQuery(CUevent event)
{
    CUresult result = begin_to_ask(__func__, event);

    if (result != CUDA_SUCCESS || !event->recorded.stream)
        return result;
    result = fake_query(&event->recorded);
    return result == CUDA_SUCCESS && fake_draw(4) == 1 ? CUDA_ERROR_NOT_READY : result;
}

CUresult cuEventSynchronize(CUevent event)
{
    const CUresult result = begin_to_ask(__func__, event);

    if (result != CUDA_SUCCESS || !event->recorded.stream)
        return result;
    fake_wait(&event->recorded);
    return fake_query(&event->recorded);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    CUresult result = fake_begin_enqueue(__func__, &stream);
    struct op *op;
    int taken = 0;

    (void)flags;
    if (result == CUDA_SUCCESS)
        result = capture_waits(stream, &event->captured, &taken);
    if (result != CUDA_SUCCESS || taken || !event->recorded.stream)
        return result;
    op = op_create(NULL);
    op_waits_for(op, &event->recorded);
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

static void run_call(struct op *op)
{
    op->call(op->argument);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *argument)
{
    const CUresult result = fake_begin_enqueue(__func__, &stream);
    struct op *op;

    if (result != CUDA_SUCCESS)
        return result;
    op = op_create(run_call);
    op->call = call;
    op->argument = argument;
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

/* Of two events of one device; drivers before CUDA 12.8 know it by its old name alone. */
static CUresult elapsed(const char *function, float *ms, CUevent from, CUevent to)
{
    CUresult result = begin_to_ask(function, from);

    if (result == CUDA_SUCCESS)
        result = begin_to_ask(function, to);
    if (result != CUDA_SUCCESS)
        return result;
    if (!from->timed || !to->timed || !from->recorded.stream || !to->recorded.stream
        || !fake_same_context(&from->recorded, &to->recorded))
        return CUDA_ERROR_INVALID_HANDLE;
    result = fake_query(&from->recorded);
    if (result == CUDA_SUCCESS)
        result = fake_query(&to->recorded);
    if (result == CUDA_SUCCESS)
        *ms = (float)((double)(atomic_load(&to->ns) - atomic_load(&from->ns)) / 1e6);
    return result;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    return elapsed(__func__, ms, from, to);
}

#ifdef cuEventElapsedTime /* a newer one, which is above */
#undef cuEventElapsedTime
#pragma GCC visibility push(default)
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent from, CUevent to);
#pragma GCC visibility pop

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    return elapsed(__func__, ms, from, to);
}
#endif
