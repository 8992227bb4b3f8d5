/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_abort.c - how a talk by NCCL ends.
 *
 *   in good order: ncclCommFinalize(), ncclCommDestroy()
 *   given up: ncclCommAbort() on a thread of its own
 *   -> it ends what is under way there, but it also frees memory, for which the driver may wait for
 * all that runs: for a stream, too, that stands still for the very call which failed
 *   -> so that call does not wait for it, but for a word that the talk's stream writes behind all
 * that was enqueued there; then nothing is at the buffers, and its stream goes on
 *   -> leaving waits for the thread */
#include "cuda/nccl/nccl_internal.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/util/clock.h"

/* How long what should end may take; after that it is aborted, or is not waited for.  Waiting
 * happens only where something went wrong. */
enum { ENDS_MS = 2000, NAP_US = 100 };

static const struct timespec nap = { 0, NAP_US * 1000L };

/* ---- In good order ------------------------------------------------------------------- */

/* 1: it did, in time. */
static int comes_to_rest(const struct talk *talk, int64_t deadline)
{
    ncclResult_t state = ncclInProgress;

    while (talk->nccl->ncclCommGetAsyncError(talk->comm, &state) == ncclSuccess
           && state == ncclInProgress && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    return state == ncclSuccess;
}

static void end_in_good_order(struct talk *talk)
{
    const struct nccl *nccl = talk->nccl;
    const int64_t deadline = deadline_after(ENDS_MS);
    const ncclResult_t result = nccl->ncclCommFinalize(talk->comm);

    if ((result == ncclSuccess || result == ncclInProgress) && comes_to_rest(talk, deadline)) {
        nccl->ncclCommDestroy(talk->comm);
        talk->comm = NULL;
    }
}

/* ---- Given up ------------------------------------------------------------------------ */

/* A call that was not finished is in no graph: to ask a stream makes its capture void. */
static void spoil_capture(struct talk *talk)
{
    if (talk->on != talk->stream)
        talk->gpu->driver->cuStreamQuery(talk->on);
}

/* Now, for once the abort has begun the driver may answer nobody. */
static void let_stream_tell(struct talk *talk)
{
    const struct word_op write = { talk->passed, 1, 0 };

    talk->tells = talk->passed && talk->is_enqueued
                  && cuda_words(talk->gpu, talk->stream, &write, 1) == CT_OK;
}

static void *abort_it(void *arg)
{
    struct talk *talk = arg;
    void *before;

    if (cuda_enter(&before) == CT_OK) {
        if (cuda_gpu_use(talk->gpu) == CT_OK)
            talk->nccl->ncclCommAbort(talk->comm);
        cuda_leave(before);
    }
    atomic_store(&talk->is_aborted, 1);
    return NULL;
}

static int begin_abort(struct talk *talk)
{
    sigset_t all, old;
    int error;

    sigfillset(&all); /* signals are the program's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&talk->aborting, NULL, abort_it, talk);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return !error;
}

/* 1: it has. */
static int stream_ends(const struct talk *talk, int64_t deadline)
{
    const struct driver *driver = talk->gpu->driver;
    CUresult state;

    while ((state = driver->cuStreamQuery(talk->stream)) == CUDA_ERROR_NOT_READY
           && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    return state != CUDA_ERROR_NOT_READY;
}

/* Until nothing is at the buffers any more. */
static void wait_for_abort(struct talk *talk)
{
    const int64_t deadline = deadline_after(ENDS_MS);

    while (!atomic_load(&talk->is_aborted) && !(talk->tells && atomic_load(talk->passed))
           && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    if (atomic_load(&talk->is_aborted))
        stream_ends(talk, deadline);
}

/* Without a thread for it nothing is aborted: better than that a stream waits for ever. */
void nccl_give_up(struct talk *talk)
{
    void *before;

    if (talk->is_given_up || cuda_enter(&before) != CT_OK)
        return;
    talk->is_given_up = 1;
    if (cuda_gpu_use(talk->gpu) == CT_OK) {
        spoil_capture(talk);
        if (talk->comm) {
            let_stream_tell(talk);
            talk->has_thread = begin_abort(talk);
        }
        if (talk->has_thread)
            wait_for_abort(talk);
    }
    cuda_leave(before);
}

/* ---- Leaving ------------------------------------------------------------------------- */

/* What was in the stream reads and writes the caller's buffers. */
static void release(struct talk *talk)
{
    const struct driver *driver = talk->gpu->driver;
    int ended = 1;

    if (talk->stream) {
        ended = stream_ends(talk, deadline_after(ENDS_MS));
        driver->cuStreamDestroy(talk->stream);
    }
    if (talk->passed && ended)
        driver->cuMemFreeHost(talk->passed);
}

void nccl_leave(struct talk *talk, int sound)
{
    void *before;
    const int entered = cuda_enter(&before) == CT_OK;

    if (entered && talk->comm && sound && !talk->is_given_up && cuda_gpu_use(talk->gpu) == CT_OK)
        end_in_good_order(talk);
    if (entered && talk->comm)
        nccl_give_up(talk);
    if (talk->has_thread)
        pthread_join(talk->aborting, NULL);
    if (entered && cuda_gpu_use(talk->gpu) == CT_OK)
        release(talk);
    if (entered)
        cuda_leave(before);
    free(talk);
}
