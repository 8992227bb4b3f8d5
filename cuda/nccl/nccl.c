/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - NCCL's row in the table of what ranks can talk by (runtime/device/memory_kind.h); its
 * calls are in nccl_calls.c, and how it ends in nccl_abort.c.
 *
 *   join   a stream of the talk's own, and a communicator that never blocks
 *   -> start   one call of NCCL's, or a group of sends and receives; enqueued by and by
 *   -> ask     first whether NCCL has enqueued it, then whether the stream has done it; in a
 *              stream that is captured it is in the graph then
 *   -> give_up, leave   by ncclCommAbort(), which also ends kernels that wait for a peer, or in
 *              good order
 *
 * Never blocking, so that whoever waits can look whether the others live, and can give up. */
#include "cuda/nccl/nccl_internal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/error.h"

_Static_assert(sizeof(struct talk_id) == sizeof(ncclUniqueId), "an id travels as it is");

static ct_status find(int32_t *version)
{
    const struct nccl *nccl;
    const ct_status status = nccl_find(&nccl);

    if (status == CT_OK)
        *version = nccl->version;
    return status;
}

static ct_status make_id(struct talk_id *id)
{
    const struct nccl *nccl;
    ncclUniqueId made;
    ct_status status = nccl_find(&nccl);

    if (status == CT_OK)
        status = nccl_says(nccl, NULL, nccl->ncclGetUniqueId(&made), "making an id");
    if (status == CT_OK)
        memcpy(id, &made, sizeof made);
    return status;
}

/* ---- Joining ------------------------------------------------------------------------- */

static CUresult make_stream(struct device *gpu, CUstream *stream)
{
    const struct driver *driver = gpu->driver;
    int least = 0, greatest = 0;
    const CUresult result = driver->cuCtxGetStreamPriorityRange(&least, &greatest);

    return result == CUDA_SUCCESS
               ? driver->cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, greatest)
               : result;
}

/* NCCL goes by the number of the device, so by its primary context. */
static ct_status refuse_other_contexts(const struct device *gpu)
{
    CUcontext primary;
    const ct_status status = gpu_primary_context(gpu->driver, gpu->device, &primary);

    if (status != CT_OK || primary == gpu->context)
        return status;
    return ct_fail(CT_ERR_UNSUPPORTED, "the memory is not of its GPU's primary context, the only "
                                       "one that NCCL works in");
}

static ct_status begin(struct talk *talk, const struct talk_id *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    ct_status status = cuda_gpu_use(talk->gpu);

    if (status == CT_OK)
        status = refuse_other_contexts(talk->gpu);
    if (status == CT_OK)
        status = driver_says(talk->gpu->driver, make_stream(talk->gpu, &talk->stream),
                             "making a stream for NCCL");
    if (status != CT_OK)
        return status;
    talk->on = talk->stream;
    if (talk->gpu->driver->cuMemAllocHost((void **)&talk->passed, sizeof *talk->passed)
        == CUDA_SUCCESS)
        atomic_init(talk->passed, 0);
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    return nccl_says(
        talk->nccl, NULL,
        talk->nccl->ncclCommInitRankConfig(&talk->comm, talk->size, unique, talk->rank, &config),
        "joining %d ranks as rank %d", talk->size, talk->rank);
}

static ct_status join(struct device *gpu, const struct talk_id *id, int rank, int size,
                      struct talk **joined)
{
    struct talk *talk = calloc(1, sizeof *talk);
    ct_status status;

    if (!talk)
        return ct_fail(CT_ERR_NOMEM, "no memory to use NCCL");
    talk->gpu = gpu;
    talk->rank = rank;
    talk->size = size;
    status = nccl_find(&talk->nccl);
    if (status == CT_OK)
        status = begin(talk, id);
    if (status != CT_OK) {
        nccl_leave(talk, 0);
        return status;
    }
    *joined = talk;
    return CT_OK;
}

static void *handle(const struct talk *talk)
{
    return talk->comm;
}

/* ---- Calls --------------------------------------------------------------------------- */

static ct_status start(struct talk *talk, const struct signature *what, const void *send,
                       void *recv, void *captured)
{
    const ct_status status = cuda_gpu_use(talk->gpu);

    if (status != CT_OK)
        return status;
    talk->on = captured ? captured : talk->stream;
    talk->is_enqueued = 0;
    return nccl_says(talk->nccl, talk->comm, nccl_enqueue(talk, what, send, recv), "%s",
                     operation_name(what->operation));
}

/* An error of a communicator, a peer's that it heard of too, shows here and nowhere else.  Until
 * NCCL has enqueued the call the stream may be empty and yet nothing is done. */
static ct_status ask(struct talk *talk, int *done)
{
    ncclResult_t state = ncclSuccess, result;
    CUresult query;
    ct_status status = cuda_gpu_use(talk->gpu);

    *done = 0;
    if (status != CT_OK)
        return status;
    result = talk->nccl->ncclCommGetAsyncError(talk->comm, &state);
    if (result == ncclSuccess)
        result = state;
    status = nccl_says(talk->nccl, talk->comm, result, "at work");
    if (status != CT_OK || result == ncclInProgress)
        return status;
    talk->is_enqueued = 1;
    if (talk->on != talk->stream) {
        talk->on = talk->stream;
        *done = 1;
        return CT_OK;
    }
    query = talk->gpu->driver->cuStreamQuery(talk->stream);
    *done = query == CUDA_SUCCESS;
    return query == CUDA_ERROR_NOT_READY
               ? CT_OK
               : driver_says(talk->gpu->driver, query, "waiting for NCCL");
}

const struct talks talks_nccl = { .name = "nccl",
                                  .find = find,
                                  .make_id = make_id,
                                  .join = join,
                                  .start = start,
                                  .ask = ask,
                                  .handle = handle,
                                  .give_up = nccl_give_up,
                                  .leave = nccl_leave };
