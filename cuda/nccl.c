/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - NCCL's row in the table of what ranks can talk by (runtime/space.h).
 *
 *   join   a stream of the talk's own, and a communicator that never blocks
 *   -> start   one call of NCCL's, or a group of sends and receives; enqueued by and by
 *   -> ask     first whether NCCL has enqueued it, then whether the stream has done it; in a
 *              stream that is captured it is in the graph then
 *   -> leave   in good order, or by ncclCommAbort(), which also ends kernels that wait for a peer
 *
 * Never blocking, so that whoever waits can look whether the others live, and can give up. */
#include "cuda/nccl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/gpu_parts.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/signature.h"

/* How long a talk that is left may take to end; after that it is aborted.  Waiting happens only
 * where something went wrong. */
enum { ENDS_MS = 2000, NAP_US = 100 };

struct talk {
    const struct nccl *nccl;
    struct device *gpu;
    CUstream stream; /* its own */
    CUstream on;     /* that of the call: its own, or one of the caller's that is captured */
    ncclComm_t comm; /* NULL: aborted, or never made */
    int rank, size;
};

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

/* ---- Joining and leaving ----------------------------------------------------------- */

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
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    return nccl_says(
        talk->nccl, NULL,
        talk->nccl->ncclCommInitRankConfig(&talk->comm, talk->size, unique, talk->rank, &config),
        "joining %d ranks as rank %d", talk->size, talk->rank);
}

/* 1: it did, in time. */
static int comes_to_rest(const struct talk *talk, int64_t deadline)
{
    const struct timespec nap = { 0, NAP_US * 1000L };
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

/* What was in it reads and writes the caller's buffers. */
static void end_stream(struct talk *talk)
{
    const struct driver *driver = talk->gpu->driver;
    const struct timespec nap = { 0, NAP_US * 1000L };
    const int64_t deadline = deadline_after(ENDS_MS);

    while (driver->cuStreamQuery(talk->stream) == CUDA_ERROR_NOT_READY && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    driver->cuStreamDestroy(talk->stream);
}

/* A call that was not finished is in no graph: to ask a stream makes its capture void. */
static void spoil_capture(struct talk *talk)
{
    if (talk->on != talk->stream)
        talk->gpu->driver->cuStreamQuery(talk->on);
}

static void leave(struct talk *talk, int sound)
{
    void *before;

    if (cuda_enter(&before) != CT_OK) {
        free(talk);
        return;
    }
    if (cuda_gpu_use(talk->gpu) == CT_OK) {
        spoil_capture(talk);
        if (talk->comm && sound)
            end_in_good_order(talk);
        if (talk->comm)
            talk->nccl->ncclCommAbort(talk->comm);
        if (talk->stream)
            end_stream(talk);
    }
    cuda_leave(before);
    free(talk);
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
        leave(talk, 0);
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

/* How a dtype is folded: as `parts` elements of this type. */
struct numbers {
    ncclDataType_t type;
    int parts;
};

static struct numbers numbers_of(int dtype)
{
    static const struct numbers types[] = {
        [CT_I8] = { ncclInt8, 1 },     [CT_U8] = { ncclUint8, 1 },
        [CT_I32] = { ncclInt32, 1 },   [CT_U32] = { ncclUint32, 1 },
        [CT_I64] = { ncclInt64, 1 },   [CT_U64] = { ncclUint64, 1 },
        [CT_F16] = { ncclFloat16, 1 }, [CT_BF16] = { ncclBfloat16, 1 },
        [CT_F32] = { ncclFloat32, 1 }, [CT_F64] = { ncclFloat64, 1 },
        [CT_C64] = { ncclFloat32, 2 }, [CT_C128] = { ncclFloat64, 2 },
    };

    return dtype >= 0 && dtype < (int)(sizeof types / sizeof *types) ? types[dtype]
                                                                     : (struct numbers){ 0, 0 };
}

static ncclRedOp_t op_of(int op)
{
    return op == CT_SUM       ? ncclSum
           : op == CT_PRODUCT ? ncclProd
           : op == CT_MIN     ? ncclMin
           : op == CT_MAX     ? ncclMax
                              : ncclAvg;
}

/* What is only moved goes as bytes. */
struct bytes_of_call {
    const char *send;
    char *recv;
    size_t each;
    int root;
};

typedef ncclResult_t moves_fn(struct talk *talk, const struct bytes_of_call *b);

static ncclResult_t one_goes(struct talk *t, const char *from, size_t bytes, int peer)
{
    return t->nccl->ncclSend(from, bytes, ncclUint8, peer, t->comm, (cudaStream_t)t->on);
}

static ncclResult_t one_comes(struct talk *t, char *to, size_t bytes, int peer)
{
    return t->nccl->ncclRecv(to, bytes, ncclUint8, peer, t->comm, (cudaStream_t)t->on);
}

/* What a rank gives itself is no message. */
static ncclResult_t keep_own(struct talk *t, const char *from, char *to, size_t bytes)
{
    const CUresult result =
        from == to ? CUDA_SUCCESS
                   : t->gpu->driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to,
                                                       (CUdeviceptr)(uintptr_t)from, bytes, t->on);

    return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t gather_by_messages(struct talk *t, const struct bytes_of_call *b)
{
    ncclResult_t result = ncclSuccess;

    if (t->rank != b->root)
        return one_goes(t, b->send, b->each, b->root);
    for (int i = 0; i < t->size && result == ncclSuccess; i++)
        result = i == t->rank ? keep_own(t, b->send, b->recv + (size_t)i * b->each, b->each)
                              : one_comes(t, b->recv + (size_t)i * b->each, b->each, i);
    return result;
}

static ncclResult_t scatter_by_messages(struct talk *t, const struct bytes_of_call *b)
{
    ncclResult_t result = ncclSuccess;

    if (t->rank != b->root)
        return one_comes(t, b->recv, b->each, b->root);
    for (int i = 0; i < t->size && result == ncclSuccess; i++)
        result = i == t->rank ? keep_own(t, b->send + (size_t)i * b->each, b->recv, b->each)
                              : one_goes(t, b->send + (size_t)i * b->each, b->each, i);
    return result;
}

static ncclResult_t all_to_all_by_messages(struct talk *t, const struct bytes_of_call *b)
{
    const size_t own = (size_t)t->rank * b->each;
    ncclResult_t result = keep_own(t, b->send + own, b->recv + own, b->each);

    for (int i = 0; i < t->size && result == ncclSuccess; i++) {
        if (i == t->rank)
            continue;
        result = one_goes(t, b->send + (size_t)i * b->each, b->each, i);
        if (result == ncclSuccess)
            result = one_comes(t, b->recv + (size_t)i * b->each, b->each, i);
    }
    return result;
}

/* Without the group the first of them would wait for its peer before the next is begun. */
static ncclResult_t by_messages(struct talk *t, const struct bytes_of_call *b, moves_fn *moves)
{
    ncclResult_t result = t->nccl->ncclGroupStart(), ended;

    if (result != ncclSuccess)
        return result;
    result = moves(t, b);
    ended = t->nccl->ncclGroupEnd();
    return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static ncclResult_t gather(struct talk *t, const struct bytes_of_call *b)
{
    return t->nccl->ncclGather ? t->nccl->ncclGather(b->send, b->recv, b->each, ncclUint8, b->root,
                                                     t->comm, (cudaStream_t)t->on)
                               : by_messages(t, b, gather_by_messages);
}

static ncclResult_t scatter(struct talk *t, const struct bytes_of_call *b)
{
    return t->nccl->ncclScatter ? t->nccl->ncclScatter(b->send, b->recv, b->each, ncclUint8,
                                                       b->root, t->comm, (cudaStream_t)t->on)
                                : by_messages(t, b, scatter_by_messages);
}

static ncclResult_t all_to_all(struct talk *t, const struct bytes_of_call *b)
{
    return t->nccl->ncclAlltoAll ? t->nccl->ncclAlltoAll(b->send, b->recv, b->each, ncclUint8,
                                                         t->comm, (cudaStream_t)t->on)
                                 : by_messages(t, b, all_to_all_by_messages);
}
#else
static ncclResult_t gather(struct talk *t, const struct bytes_of_call *b)
{
    return by_messages(t, b, gather_by_messages);
}

static ncclResult_t scatter(struct talk *t, const struct bytes_of_call *b)
{
    return by_messages(t, b, scatter_by_messages);
}

static ncclResult_t all_to_all(struct talk *t, const struct bytes_of_call *b)
{
    return by_messages(t, b, all_to_all_by_messages);
}
#endif

static ncclResult_t enqueue(struct talk *t, const struct signature *what,
                            const struct bytes_of_call *b)
{
    const struct nccl *nccl = t->nccl;
    const cudaStream_t stream = (cudaStream_t)t->on;
    const struct numbers n = numbers_of(what->dtype);
    const size_t count = (size_t)what->count * (size_t)n.parts;

    switch (what->operation) {
    case OPERATION_REDUCE:
        return nccl->ncclReduce(b->send, b->recv, count, n.type, op_of(what->op), what->root,
                                t->comm, stream);
    case OPERATION_ALL_REDUCE:
        return nccl->ncclAllReduce(b->send, b->recv, count, n.type, op_of(what->op), t->comm,
                                   stream);
    case OPERATION_REDUCE_SCATTER:
        return nccl->ncclReduceScatter(b->send, b->recv, count, n.type, op_of(what->op), t->comm,
                                       stream);
    case OPERATION_BROADCAST: /* one buffer */
        return nccl->ncclBroadcast(b->recv, b->recv, b->each, ncclUint8, what->root, t->comm,
                                   stream);
    case OPERATION_ALL_GATHER:
        return nccl->ncclAllGather(b->send, b->recv, b->each, ncclUint8, t->comm, stream);
    case OPERATION_GATHER:
        return gather(t, b);
    case OPERATION_SCATTER:
        return scatter(t, b);
    default:
        return all_to_all(t, b);
    }
}

static ct_status start(struct talk *talk, const struct signature *what, const void *send,
                       void *recv, void *captured)
{
    const struct bytes_of_call bytes = { send, recv,
                                         (size_t)what->count * ct_dtype_size((ct_dtype)what->dtype),
                                         what->root };
    const ct_status status = cuda_gpu_use(talk->gpu);

    if (status != CT_OK)
        return status;
    talk->on = captured ? captured : talk->stream;
    return nccl_says(talk->nccl, talk->comm, enqueue(talk, what, &bytes), "%s",
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
                                  .leave = leave };
