/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - NCCL as a library of collectives between devices (struct comm_library of
 * runtime/device/memory_kind.h).
 *
 *   join       creates a stream, and a communicator that never blocks
 *   start      calls NCCL once, or with a group of sends and receives; NCCL enqueues them later
 *   ask        checks first whether NCCL has enqueued the call, then whether the stream has run it
 *              (a call in a captured stream is done when it is enqueued)
 *   leave      calls ncclCommFinalize() and ncclCommDestroy(), unless the communicator failed
 *   give_up    calls ncclCommAbort() on another thread
 *
 * No function blocks, so that a caller that waits can check whether its peers are alive, and give
 * up.
 *
 * ncclCommAbort() ends kernels that wait for a peer.  It also frees memory, for which the driver
 * may wait for all running work, even for a stream at a gate that waits for the very call that
 * failed.  So give_up does not wait for the aborting thread.  It waits for a flag that the
 * communicator's stream writes after all work enqueued there.  After that, no kernel uses the
 * buffers any more.  The function `leave` waits for the aborting thread. */
#include "cuda/nccl/nccl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/device_internal.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"
#include "runtime/util/error.h"
#include "runtime/util/thread.h"

struct device_comm {
    const struct nccl *nccl;
    struct device *gpu;
    CUstream stream;      /* libct's own stream for this communicator */
    CUstream on;          /* the call's stream: `stream`, or a captured stream of the caller */
    ncclComm_t nccl_comm; /* NULL if destroyed or never created */
    int rank, size;
    int is_enqueued; /* 1 if NCCL has enqueued all calls */

    /* a word in pinned memory; if `tells` is 1, the stream writes 1 to it at its end; NULL if there
     * was no memory */
    _Atomic uint32_t *passed;
    int tells, is_given_up, has_thread;
    pthread_t aborting;
    _Atomic int is_aborted;
};

_Static_assert(sizeof(struct comm_id) == sizeof(ncclUniqueId), "an id travels as it is");

static ct_status nccl_read_version(int32_t *version)
{
    const struct nccl *nccl;
    const ct_status status = nccl_find(&nccl);

    if (status == CT_OK)
        *version = nccl->version;
    return status;
}

static ct_status make_id(struct comm_id *id)
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

/* ---- Leaving ------------------------------------------------------------------------- */

/* ENDS_MS is the longest time that libct waits for a communicator to end in good order, and also
 * the longest time that it waits for an abort.  Both take time only after a failure. */
enum { ENDS_MS = 2000, NAP_US = 100 };

static const struct timespec nap = { 0, NAP_US * 1000L };

/* Waits until NCCL has no operation in progress.  Returns 1 if that happened before the deadline
 * and without an error, else 0. */
static int comes_to_rest(const struct device_comm *comm, int64_t deadline)
{
    ncclResult_t state = ncclInProgress;

    while (comm->nccl->ncclCommGetAsyncError(comm->nccl_comm, &state) == ncclSuccess
           && state == ncclInProgress && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    return state == ncclSuccess;
}

static void end_in_good_order(struct device_comm *comm)
{
    const struct nccl *nccl = comm->nccl;
    const int64_t deadline = deadline_after(ENDS_MS);
    const ncclResult_t result = nccl->ncclCommFinalize(comm->nccl_comm);

    if ((result == ncclSuccess || result == ncclInProgress) && comes_to_rest(comm, deadline)) {
        nccl->ncclCommDestroy(comm->nccl_comm);
        comm->nccl_comm = NULL;
    }
}

/* Makes the capture of the caller's stream invalid by querying that stream, since a graph must not
 * have half a call. */
static void spoil_capture(struct device_comm *comm)
{
    if (comm->on != comm->stream)
        comm->gpu->driver->cuStreamQuery(comm->on);
}

/* Enqueues a write of 1 to `passed` at the end of the stream.  Must be called before the abort,
 * since driver calls may block once the abort has begun. */
static void let_stream_tell(struct device_comm *comm)
{
    const struct flag_op write = { comm->passed, 1, 0 };

    comm->tells = comm->passed && comm->is_enqueued
                  && cuda_flag_ops(comm->gpu, comm->stream, &write, 1) == CT_OK;
}

static void *abort_it(void *arg)
{
    struct device_comm *comm = arg;
    void *before;

    if (cuda_enter(&before) == CT_OK) {
        if (cuda_gpu_use(comm->gpu) == CT_OK)
            comm->nccl->ncclCommAbort(comm->nccl_comm);
        cuda_leave(before);
    }
    atomic_store(&comm->is_aborted, 1);
    return NULL;
}

/* Waits for the stream.  Returns 1 if the stream ended before the deadline, else 0. */
static int stream_ends(const struct device_comm *comm, int64_t deadline)
{
    const struct driver *driver = comm->gpu->driver;
    CUresult state;

    while ((state = driver->cuStreamQuery(comm->stream)) == CUDA_ERROR_NOT_READY
           && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    return state != CUDA_ERROR_NOT_READY;
}

/* Waits until no kernel uses the buffers any more, for ENDS_MS at most. */
static void wait_for_abort(struct device_comm *comm)
{
    const int64_t deadline = deadline_after(ENDS_MS);

    while (!atomic_load(&comm->is_aborted) && !(comm->tells && atomic_load(comm->passed))
           && clock_ms() < deadline)
        nanosleep(&nap, NULL);
    if (atomic_load(&comm->is_aborted))
        stream_ends(comm, deadline);
}

/* Aborts the communicator on another thread.  If that thread can't be started, nothing is aborted,
 * since an abort by this thread might wait for ever. */
static void nccl_give_up(struct device_comm *comm)
{
    void *before;

    if (comm->is_given_up || cuda_enter(&before) != CT_OK)
        return;
    comm->is_given_up = 1;
    if (cuda_gpu_use(comm->gpu) == CT_OK) {
        spoil_capture(comm);
        if (comm->nccl_comm) {
            let_stream_tell(comm);
            comm->has_thread = thread_start(&comm->aborting, abort_it, comm) == 0;
        }
        if (comm->has_thread)
            wait_for_abort(comm);
    }
    cuda_leave(before);
}

/* Destroys the stream.  Before that, waits for the stream, since its work reads and writes the
 * caller's buffers. */
static void nccl_release(struct device_comm *comm)
{
    const struct driver *driver = comm->gpu->driver;
    int ended = 1;

    if (comm->stream) {
        ended = stream_ends(comm, deadline_after(ENDS_MS));
        driver->cuStreamDestroy(comm->stream);
    }
    if (comm->passed && ended)
        driver->cuMemFreeHost(comm->passed);
}

static void nccl_leave(struct device_comm *comm, int sound)
{
    void *before;
    const int entered = cuda_enter(&before) == CT_OK;

    if (entered && comm->nccl_comm && sound && !comm->is_given_up
        && cuda_gpu_use(comm->gpu) == CT_OK)
        end_in_good_order(comm);
    if (entered && comm->nccl_comm)
        nccl_give_up(comm);
    if (comm->has_thread)
        pthread_join(comm->aborting, NULL);
    if (entered && cuda_gpu_use(comm->gpu) == CT_OK)
        nccl_release(comm);
    if (entered)
        cuda_leave(before);
    free(comm);
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

/* Returns CT_ERR_UNSUPPORTED if the memory belongs to another context than the GPU's primary
 * context, which NCCL uses. */
static ct_status refuse_other_contexts(const struct device *gpu)
{
    CUcontext primary;
    const ct_status status = gpu_primary_context(gpu->driver, gpu->device, &primary);

    if (status != CT_OK || primary == gpu->context)
        return status;
    return ct_fail(CT_ERR_UNSUPPORTED, "the memory is not of its GPU's primary context, the only "
                                       "one that NCCL works in");
}

static ct_status nccl_begin(struct device_comm *comm, const struct comm_id *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    ct_status status = cuda_gpu_use(comm->gpu);

    if (status == CT_OK)
        status = refuse_other_contexts(comm->gpu);
    if (status == CT_OK)
        status = driver_says(comm->gpu->driver, make_stream(comm->gpu, &comm->stream),
                             "making a stream for NCCL");
    if (status != CT_OK)
        return status;
    comm->on = comm->stream;
    if (comm->gpu->driver->cuMemAllocHost((void **)&comm->passed, sizeof *comm->passed)
        == CUDA_SUCCESS)
        atomic_init(comm->passed, 0);
    memcpy(&unique, id, sizeof unique);
    config.blocking = 0;
    return nccl_says(comm->nccl, NULL,
                     comm->nccl->ncclCommInitRankConfig(&comm->nccl_comm, comm->size, unique,
                                                        comm->rank, &config),
                     "joining %d ranks as rank %d", comm->size, comm->rank);
}

static ct_status nccl_join(struct device *gpu, const struct comm_id *id, int rank, int size,
                           struct device_comm **joined)
{
    struct device_comm *comm = calloc(1, sizeof *comm);
    ct_status status;

    if (!comm)
        return ct_fail(CT_ERR_NOMEM, "no memory to use NCCL");
    comm->gpu = gpu;
    comm->rank = rank;
    comm->size = size;
    status = nccl_find(&comm->nccl);
    if (status == CT_OK)
        status = nccl_begin(comm, id);
    if (status != CT_OK) {
        nccl_leave(comm, 0);
        return status;
    }
    *joined = comm;
    return CT_OK;
}

static void *handle(const struct device_comm *comm)
{
    return comm->nccl_comm;
}

/* ---- Calls --------------------------------------------------------------------------- */

/* NCCL reduces an element of a dtype as `parts` numbers of this type.  `parts` is 0 if NCCL can't
 * reduce the dtype. */
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

static ncclRedOp_t nccl_op_of(int op)
{
    return op == CT_SUM       ? ncclSum
           : op == CT_PRODUCT ? ncclProd
           : op == CT_MIN     ? ncclMin
           : op == CT_MAX     ? ncclMax
                              : ncclAvg;
}

/* The buffers of a call that only moves data, which is sent as bytes.  `each` is the number of
 * bytes of one rank. */
struct bytes_of_call {
    const char *send;
    char *recv;
    size_t each;
    int root;
};

typedef ncclResult_t moves_fn(struct device_comm *comm, const struct bytes_of_call *b);

static ncclResult_t one_goes(struct device_comm *t, const char *from, size_t bytes, int peer)
{
    return t->nccl->ncclSend(from, bytes, ncclUint8, peer, t->nccl_comm, (cudaStream_t)t->on);
}

static ncclResult_t one_comes(struct device_comm *t, char *to, size_t bytes, int peer)
{
    return t->nccl->ncclRecv(to, bytes, ncclUint8, peer, t->nccl_comm, (cudaStream_t)t->on);
}

/* Copies this rank's own part from its send buffer to its receive buffer. */
static ncclResult_t keep_own(struct device_comm *t, const char *from, char *to, size_t bytes)
{
    const CUresult result =
        from == to ? CUDA_SUCCESS
                   : t->gpu->driver->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to,
                                                       (CUdeviceptr)(uintptr_t)from, bytes, t->on);

    return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t nccl_gather_by_messages(struct device_comm *t, const struct bytes_of_call *b)
{
    ncclResult_t result = ncclSuccess;

    if (t->rank != b->root)
        return one_goes(t, b->send, b->each, b->root);
    for (int i = 0; i < t->size && result == ncclSuccess; i++)
        result = i == t->rank ? keep_own(t, b->send, b->recv + (size_t)i * b->each, b->each)
                              : one_comes(t, b->recv + (size_t)i * b->each, b->each, i);
    return result;
}

static ncclResult_t scatter_by_messages(struct device_comm *t, const struct bytes_of_call *b)
{
    ncclResult_t result = ncclSuccess;

    if (t->rank != b->root)
        return one_comes(t, b->recv, b->each, b->root);
    for (int i = 0; i < t->size && result == ncclSuccess; i++)
        result = i == t->rank ? keep_own(t, b->send + (size_t)i * b->each, b->recv, b->each)
                              : one_goes(t, b->send + (size_t)i * b->each, b->each, i);
    return result;
}

static ncclResult_t all_to_all_by_messages(struct device_comm *t, const struct bytes_of_call *b)
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

/* Starts the sends and receives in an NCCL group.  Without a group the first of them would wait for
 * its peer before the next one starts. */
static ncclResult_t by_messages(struct device_comm *t, const struct bytes_of_call *b,
                                moves_fn *moves)
{
    ncclResult_t result = t->nccl->ncclGroupStart(), ended;

    if (result != ncclSuccess)
        return result;
    result = moves(t, b);
    ended = t->nccl->ncclGroupEnd();
    return result == ncclSuccess || result == ncclInProgress ? ended : result;
}

/* The three functions below use sends and receives if libct was built with an NCCL before 2.28, or
 * if the loaded library lacks the function. */

static ncclResult_t nccl_gather(struct device_comm *t, const struct bytes_of_call *b)
{
#if NCCL_HAS_GATHER
    if (t->nccl->ncclGather)
        return t->nccl->ncclGather(b->send, b->recv, b->each, ncclUint8, b->root, t->nccl_comm,
                                   (cudaStream_t)t->on);
#endif
    return by_messages(t, b, nccl_gather_by_messages);
}

static ncclResult_t scatter(struct device_comm *t, const struct bytes_of_call *b)
{
#if NCCL_HAS_GATHER
    if (t->nccl->ncclScatter)
        return t->nccl->ncclScatter(b->send, b->recv, b->each, ncclUint8, b->root, t->nccl_comm,
                                    (cudaStream_t)t->on);
#endif
    return by_messages(t, b, scatter_by_messages);
}

static ncclResult_t all_to_all(struct device_comm *t, const struct bytes_of_call *b)
{
#if NCCL_HAS_GATHER
    if (t->nccl->ncclAlltoAll)
        return t->nccl->ncclAlltoAll(b->send, b->recv, b->each, ncclUint8, t->nccl_comm,
                                     (cudaStream_t)t->on);
#endif
    return by_messages(t, b, all_to_all_by_messages);
}

/* Starts one call on t->on, without blocking. */
static ncclResult_t enqueue_call(struct device_comm *t, const struct signature *what,
                                 const void *send, void *recv)
{
    const struct bytes_of_call bytes = { send, recv,
                                         (size_t)what->count * ct_dtype_size((ct_dtype)what->dtype),
                                         what->root };
    const struct bytes_of_call *const b = &bytes;
    const struct nccl *nccl = t->nccl;
    const cudaStream_t stream = (cudaStream_t)t->on;
    const struct numbers n = numbers_of(what->dtype);
    const size_t count = (size_t)what->count * (size_t)n.parts;

    switch (what->operation) {
    case OPERATION_REDUCE:
        return nccl->ncclReduce(b->send, b->recv, count, n.type, nccl_op_of(what->op), what->root,
                                t->nccl_comm, stream);
    case OPERATION_ALL_REDUCE:
        return nccl->ncclAllReduce(b->send, b->recv, count, n.type, nccl_op_of(what->op),
                                   t->nccl_comm, stream);
    case OPERATION_REDUCE_SCATTER:
        return nccl->ncclReduceScatter(b->send, b->recv, count, n.type, nccl_op_of(what->op),
                                       t->nccl_comm, stream);
    case OPERATION_BROADCAST: /* a broadcast has one buffer */
        return nccl->ncclBroadcast(b->recv, b->recv, b->each, ncclUint8, what->root, t->nccl_comm,
                                   stream);
    case OPERATION_ALL_GATHER:
        return nccl->ncclAllGather(b->send, b->recv, b->each, ncclUint8, t->nccl_comm, stream);
    case OPERATION_GATHER:
        return nccl_gather(t, b);
    case OPERATION_SCATTER:
        return scatter(t, b);
    default:
        return all_to_all(t, b);
    }
}

static ct_status nccl_start(struct device_comm *comm, const struct signature *what,
                            const void *send, void *recv, void *captured)
{
    const ct_status status = cuda_gpu_use(comm->gpu);

    if (status != CT_OK)
        return status;
    comm->on = captured ? captured : comm->stream;
    comm->is_enqueued = 0;
    return nccl_says(comm->nccl, comm->nccl_comm, enqueue_call(comm, what, send, recv), "%s",
                     operation_name(what->operation));
}

/* Sets *done to 1 if the call is done, else to 0.  Only this function notices errors of the
 * communicator, including errors of a peer.  Until NCCL has enqueued the call, the stream may be
 * empty although the call is not done. */
static ct_status nccl_ask(struct device_comm *comm, int *done)
{
    ncclResult_t state = ncclSuccess, result;
    CUresult query;
    ct_status status = cuda_gpu_use(comm->gpu);

    *done = 0;
    if (status != CT_OK)
        return status;
    result = comm->nccl->ncclCommGetAsyncError(comm->nccl_comm, &state);
    if (result == ncclSuccess)
        result = state;
    status = nccl_says(comm->nccl, comm->nccl_comm, result, "at work");
    if (status != CT_OK || result == ncclInProgress)
        return status;
    comm->is_enqueued = 1;
    if (comm->on != comm->stream) {
        comm->on = comm->stream;
        *done = 1;
        return CT_OK;
    }
    query = comm->gpu->driver->cuStreamQuery(comm->stream);
    *done = query == CUDA_SUCCESS;
    return query == CUDA_ERROR_NOT_READY
               ? CT_OK
               : driver_says(comm->gpu->driver, query, "waiting for NCCL");
}

const struct comm_library comm_library_nccl = { .name = "nccl",
                                                .find = nccl_read_version,
                                                .make_id = make_id,
                                                .join = nccl_join,
                                                .start = nccl_start,
                                                .ask = nccl_ask,
                                                .handle = handle,
                                                .give_up = nccl_give_up,
                                                .leave = nccl_leave };
