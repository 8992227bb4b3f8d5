/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - saves and restores the current CUDA context of a thread, and waits for the work in
 * streams. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/device_internal.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"

/* Each poll of a wait holds a lock of the driver that other threads need to launch kernels.  So
 * before the next poll the wait pauses for 1 / POLL_SHARE of the time waited so far, and it ends
 * 2 % late at most.  After BUSY_US of waiting the thread sleeps in its pauses, for LONGEST_NAP_US
 * at most, which frees the processor. */
enum { POLL_SHARE = 50, BUSY_US = 5000, LONGEST_NAP_US = 500 };

/* The state of this thread.  `depth` is the number of calls of cuda_enter() that have had no
 * cuda_leave() yet.  `mode` is the thread's capture mode before the first of these calls; only the
 * last cuda_leave() restores it. */
static _Thread_local struct {
    int depth;
    CUstreamCaptureMode mode;
} inside;

/* Sets the thread's capture mode to relaxed.  In the default mode, queries and allocations
 * invalidate every capture that any thread of the program has begun. */
static CUresult relax(const struct driver *driver)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result;

    if (inside.depth++ > 0)
        return CUDA_SUCCESS;
    result = driver->cuThreadExchangeStreamCaptureMode(&mode);
    inside.mode = mode;
    inside.depth = result == CUDA_SUCCESS;
    return result;
}

static void restore_mode(const struct driver *driver)
{
    if (--inside.depth == 0)
        driver->cuThreadExchangeStreamCaptureMode(&inside.mode);
}

ct_status cuda_enter(void **before)
{
    const struct driver *driver;
    CUcontext current = NULL;
    ct_status status = driver_find(&driver);

    if (status == CT_OK)
        status = driver_says(driver, driver->cuCtxGetCurrent(&current),
                             "asking for the current context");
    if (status == CT_OK)
        status = driver_says(driver, relax(driver), "changing the thread's capture mode");
    *before = current;
    return status;
}

void cuda_leave(void *before)
{
    const struct driver *driver;

    if (driver_find(&driver) != CT_OK)
        return;
    driver->cuCtxSetCurrent(before);
    restore_mode(driver);
}

ct_status cuda_gpu_use(struct device *gpu)
{
    return driver_says(gpu->driver, gpu->driver->cuCtxSetCurrent(gpu->context),
                       "making a GPU's context current");
}

/* ---- Waiting --------------------------------------------------------------- */

/* The end that a wait waits for.  If `event` is not NULL, the wait ends when the event is reached.
 * If `event` is NULL, the wait ends when all work in `stream` is done. */
struct stream_end {
    CUevent event;
    CUstream stream;
};

static CUresult context_ask(const struct driver *driver, const struct stream_end *end)
{
    return end->event ? driver->cuEventQuery(end->event) : driver->cuStreamQuery(end->stream);
}

static void pause_after(int64_t waited_us)
{
    const int64_t pause_us = waited_us / POLL_SHARE;
    const int64_t nap_us = pause_us < LONGEST_NAP_US ? pause_us : LONGEST_NAP_US;
    const struct timespec nap = { 0, nap_us * 1000L };
    const int64_t until = clock_us() + pause_us;

    if (waited_us >= BUSY_US) {
        nanosleep(&nap, NULL);
        return;
    }
    do
        sched_yield();
    while (clock_us() < until);
}

static ct_status context_wait_for(struct device *gpu, const struct stream_end *end,
                                  struct patience wait)
{
    const int64_t begun = wait.since_us ? wait.since_us : clock_us();
    CUresult result;

    while ((result = context_ask(gpu->driver, end)) == CUDA_ERROR_NOT_READY) {
        if (wait.given_up && atomic_load(wait.given_up))
            return ct_fail(CT_ERR_ABORTED, "aborted while the GPU was working");
        if (clock_ms() >= wait.deadline)
            return ct_fail(CT_ERR_TIMEOUT,
                           "the GPU has not done what was enqueued in the stream in time");
        pause_after(clock_us() - begun);
    }
    return driver_says(gpu->driver, result, "waiting for the GPU");
}

static CUresult take_event(struct device *gpu, CUevent *event)
{
    *event = NULL;
    pthread_mutex_lock(&gpu->lock);
    if (gpu->events_idle > 0)
        *event = gpu->events[--gpu->events_idle];
    pthread_mutex_unlock(&gpu->lock);
    return *event ? CUDA_SUCCESS : gpu->driver->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

/* Makes room for one more idle event.  Without memory, leaves the array as it is.  The caller holds
 * gpu->lock. */
static void make_room_for_event(struct device *gpu)
{
    const int room = 2 * gpu->events_room + 8;
    CUevent *events;

    if (gpu->events_idle < gpu->events_room)
        return;
    events = realloc(gpu->events, (size_t)room * sizeof *events);
    if (!events)
        return;
    gpu->events = events;
    gpu->events_room = room;
}

/* Adds the event to the idle events.  The event may still be pending, since its next user records
 * it again.  The event is destroyed only if there is no memory for it in the array, because
 * cuEventDestroy() may block in the driver while gates are closed. */
static void give_event(struct device *gpu, CUevent event)
{
    pthread_mutex_lock(&gpu->lock);
    make_room_for_event(gpu);
    if (gpu->events_idle < gpu->events_room) {
        gpu->events[gpu->events_idle++] = event;
        event = NULL;
    }
    pthread_mutex_unlock(&gpu->lock);
    if (event)
        gpu->driver->cuEventDestroy(event);
}

/* The legacy default stream can't be captured, and can't be used while a blocking stream is being
 * captured.  The driver then returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT. */
ct_status cuda_capture_of(struct device *gpu, void *stream, enum capture *capture)
{
    const ct_status status = cuda_gpu_use(gpu);
    CUstreamCaptureStatus is = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result;

    *capture = NOT_CAPTURED;
    if (status != CT_OK)
        return status;
    result = gpu->driver->cuStreamIsCapturing(stream, &is);
    *capture = result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? CAPTURE_IS_VOID
               : is == CU_STREAM_CAPTURE_STATUS_ACTIVE      ? CAPTURED
               : is == CU_STREAM_CAPTURE_STATUS_INVALIDATED ? CAPTURE_IS_VOID
                                                            : NOT_CAPTURED;
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
               ? CT_OK
               : driver_says(gpu->driver, result, "asking whether a stream is being captured");
}

/* Captured work does not run now.  An event recorded in the stream would never be reached, and
 * waiting for it would make the capture invalid. */
ct_status gpu_refuse_capture(struct device *gpu, CUstream stream)
{
    enum capture capture;
    const ct_status status = cuda_capture_of(gpu, stream, &capture);

    if (status != CT_OK || capture == NOT_CAPTURED)
        return status;
    return ct_fail(CT_ERR_INVALID,
                   "the stream is being captured into a CUDA graph, and this can't be part of one "
                   "(a collective without a work can): make it outside of the capture");
}

ct_status gpu_record(struct device *gpu, CUstream stream, void **mark)
{
    CUevent event;
    CUresult result = take_event(gpu, &event);

    *mark = NULL;
    if (result != CUDA_SUCCESS)
        return driver_says(gpu->driver, result, "making an event");
    result = gpu->driver->cuEventRecord(event, stream);
    if (result == CUDA_SUCCESS)
        *mark = event;
    else
        give_event(gpu, event);
    return driver_says(gpu->driver, result, "noting what a stream has to do");
}

/* Returns 1 if the stream is non-blocking and idle, else 0.  A query can't tell whether another
 * stream is idle: the default stream and the blocking streams wait for each other, which the query
 * does not see. */
static int context_is_idle(const struct device *gpu, CUstream stream)
{
    unsigned flags = 0;

    return stream && gpu->driver->cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS
           && (flags & CU_STREAM_NON_BLOCKING)
           && gpu->driver->cuStreamQuery(stream) == CUDA_SUCCESS;
}

/* Records no event if the stream is idle.  An event is work for the GPU, and if several ranks share
 * the GPU, an event must wait for the turn of this rank's context. */
ct_status cuda_mark(struct device *gpu, void *stream, void **mark)
{
    /* If `stream` is NULL, it is the current context's default stream. */
    ct_status status = cuda_gpu_use(gpu);

    *mark = NULL;
    if (status == CT_OK)
        status = gpu_refuse_capture(gpu, stream);
    return status == CT_OK && !context_is_idle(gpu, stream) ? gpu_record(gpu, stream, mark)
                                                            : status;
}

ct_status cuda_wait_for(struct device *gpu, void *mark, struct patience wait)
{
    const struct stream_end end = { mark, NULL };
    const ct_status status = cuda_gpu_use(gpu);

    return status == CT_OK ? context_wait_for(gpu, &end, wait) : status;
}

void cuda_forget(struct device *gpu, void *mark)
{
    give_event(gpu, mark);
}

ct_status cuda_finish(struct device *gpu, struct patience wait)
{
    const struct stream_end all = { NULL, gpu->stream };
    const ct_status status = cuda_gpu_use(gpu);

    return status == CT_OK ? context_wait_for(gpu, &all, wait) : status;
}
