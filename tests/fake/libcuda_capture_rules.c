/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda_capture_rules.c - what the fake driver refuses while a stream is captured.
 *
 * A capture is void after what would be wrong or might be, by cuda.h's words about
 * cuThreadExchangeStreamCaptureMode(); what "might be unsafe" is read as widely as it can be. */
#include "tests/fake/libcuda_capture.h"

static _Thread_local CUstreamCaptureMode mode; /* of this thread; global at first */

/* ---- With the lock held ------------------------------------------------------- */

int capture_is_implied(CUstream stream, int void_them)
{
    const CUcontext context = fake_context_of(stream);
    int implied = 0;

    for (struct capture *c = captures.first; c && stream == context->legacy; c = c->next)
        for (int i = 0; i < c->streams; i++)
            if (fake_context_of(c->seats[i].stream) == context
                && fake_is_blocking(c->seats[i].stream)) {
                implied = 1;
                c->is_void |= void_them;
            }
    return implied;
}

CUresult capture_refuse(CUstream stream, CUresult error)
{
    int seat;
    struct capture *c = capture_of(stream, &seat);

    if (!c)
        return capture_is_implied(stream, 1) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
    if (c->is_void)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    c->is_void = error != CUDA_SUCCESS;
    return error;
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

    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe && atomic_load(&captures.live); i++)
        is_unsafe |= fake_is_named(function, unsafe[i]);
    if (!is_unsafe || mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&captures.lock);
    for (struct capture *c = captures.first; c; c = c->next)
        if (pthread_equal(c->thread, pthread_self())
                ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                      && mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
            c->is_void = 1;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

static CUresult refuse_if_captured(CUstream stream, CUresult error)
{
    CUresult result;

    if (!atomic_load(&captures.live))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&captures.lock);
    result = capture_refuse(stream, error);
    pthread_mutex_unlock(&captures.lock);
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

    pthread_mutex_lock(&captures.lock);
    for (struct capture *c = captures.first; c; c = c->next)
        for (int i = 0; i < c->streams; i++)
            if (fake_context_of(c->seats[i].stream) == context) {
                c->is_void = 1;
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
    pthread_mutex_unlock(&captures.lock);
    return result;
}

/* Also of a capture that has ended. */
CUresult capture_asks_event(const struct captured *event)
{
    struct capture *c;

    if (event->capture == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&captures.lock);
    c = capture_by_id(event->capture);
    if (c)
        c->is_void = 1;
    pthread_mutex_unlock(&captures.lock);
    return CUDA_ERROR_CAPTURED_EVENT;
}

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
