/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_event.c - the fake driver's events, and functions of the host in a stream. */
#include "tests/fake/libcuda.h"

#include <stdlib.h>

struct CUevent_st {
    struct point recorded; /* in no stream: never */
};

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    (void)flags;
    if (result != CUDA_SUCCESS)
        return result;
    *event = calloc(1, sizeof **event);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy(CUevent event)
{
    const CUresult result = fake_begin(__func__);

    if (result == CUDA_SUCCESS)
        free(event);
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    if (result == CUDA_SUCCESS)
        event->recorded = fake_enqueue(stream, op_create(NULL));
    return result;
}

CUresult cuEventQuery(CUevent event)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    return result == CUDA_SUCCESS && event->recorded.stream ? fake_query(&event->recorded) : result;
}

CUresult cuEventSynchronize(CUevent event)
{
    CUcontext context;
    const CUresult result = fake_begin_in(__func__, &context);

    if (result != CUDA_SUCCESS)
        return result;
    if (event->recorded.stream)
        fake_wait(&event->recorded);
    return (CUresult)atomic_load(&context->failed);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    const CUresult result = fake_begin_stream(__func__, &stream);
    struct op *op;

    (void)flags;
    if (result != CUDA_SUCCESS)
        return result;
    if (!event->recorded.stream)
        return CUDA_SUCCESS;
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
    const CUresult result = fake_begin_stream(__func__, &stream);
    struct op *op;

    if (result != CUDA_SUCCESS)
        return result;
    op = op_create(run_call);
    op->call = call;
    op->argument = argument;
    fake_enqueue(stream, op);
    return CUDA_SUCCESS;
}

/* There are no graphs here. */
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    const CUresult result = fake_begin_stream(__func__, &stream);

    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}
