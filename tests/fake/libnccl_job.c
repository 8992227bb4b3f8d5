/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_job.c - a call of the fake NCCL's: what it needs is copied to the host, talked over and
 * folded there, and copied back, all in the caller's stream.
 *
 * Calls only put jobs together; ncclCommGetAsyncError() enqueues them later.  A job in a stream
 * that is captured runs at each launch, and ends with the graph. */
#include "tests/fake/libnccl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between the device and the host's copy of it. */
struct piece {
    struct piece *next;
    CUdeviceptr device;
    size_t bytes;
    enum way { IN, OUT, HERE } way;
    _Alignas(16) unsigned char host[];
};

struct job {
    struct job *next;
    ncclComm_t comm;
    CUstream stream;
    struct piece *pieces;
    struct message *messages, **last_message;
    /* from[size - 1 .. 0] are folded to `to`; NULL: nothing is. */
    unsigned char *to, *from[NCCL_RANKS];
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t count;
};

static _Thread_local int depth;         /* of ncclGroupStart() */
static _Thread_local struct job *group; /* its sends and receives */

static void *memory(size_t bytes)
{
    void *got = calloc(1, bytes);

    if (!got)
        fake_nccl_dies("no memory");
    return got;
}

static struct job *job_create(ncclComm_t comm, cudaStream_t stream)
{
    struct job *job = memory(sizeof *job);

    job->comm = comm;
    job->stream = (CUstream)stream;
    job->last_message = &job->messages;
    return job;
}

static void job_free(struct job *job)
{
    while (job->pieces) {
        struct piece *next = job->pieces->next;

        free(job->pieces);
        job->pieces = next;
    }
    while (job->messages) {
        struct message *next = job->messages->next;

        free(job->messages);
        job->messages = next;
    }
    free(job);
}

/* The host's bytes: of the device before the job runs, for it afterwards, or the job's own. */
static unsigned char *piece(struct job *job, enum way way, const void *device, size_t bytes)
{
    struct piece *p = memory(sizeof *p + bytes);

    p->device = (CUdeviceptr)(uintptr_t)device;
    p->bytes = bytes;
    p->way = way;
    p->next = job->pieces;
    job->pieces = p;
    memset(p->host, 0xEE, bytes);
    return p->host;
}

static void message(struct job *job, int is_send, int peer, unsigned char *data, size_t bytes,
                    uint64_t kind)
{
    struct message *m = memory(sizeof *m);

    m->is_send = is_send;
    m->peer = peer;
    m->data = data;
    m->bytes = bytes;
    m->kind = kind;
    *job->last_message = m;
    job->last_message = &m->next;
}

/* ---- Running ------------------------------------------------------------------------------ */

static void be_late(ncclComm_t comm)
{
    const struct timespec nap = { 0, 1000000 };

    for (int left = fake_late_ms(comm->rank); left > 0 && !atomic_load(&comm->aborted); left--)
        nanosleep(&nap, NULL);
}

static void CUDA_CB run(void *arg)
{
    struct job *job = arg;
    const int last = job->comm->size - 1;

    be_late(job->comm);
    for (struct message *m = job->messages; m; m = m->next) {
        m->at = 0;
        m->head_at = 0;
    }
    if (!messages_move(job->comm, job->messages) || !job->to)
        return;
    for (int i = last; i >= 0; i--) {
        fake_prepare(job->type, job->op, job->from[i], job->count, job->comm->size);
        if (i == last)
            memcpy(job->to, job->from[i], job->count * fake_size_of(job->type));
        else
            fake_fold(job->type, job->op, job->to, job->from[i], job->count);
    }
}

static void CUDA_CB end(void *arg)
{
    struct job *job = arg;
    ncclComm_t comm = job->comm;

    job_free(job);
    comm_unuse(comm);
}

static void copy_pieces(const struct job *job, enum way way)
{
    const struct fake_driver *cuda = fake_driver();

    for (struct piece *p = job->pieces; p; p = p->next) {
        CUresult result = CUDA_SUCCESS;

        if (p->way != way || p->bytes == 0)
            continue;
        result = way == OUT ? cuda->cuMemcpyHtoDAsync(p->device, p->host, p->bytes, job->stream)
                            : cuda->cuMemcpyDtoHAsync(p->host, p->device, p->bytes, job->stream);
        if (result != CUDA_SUCCESS)
            comm_fails(job->comm, ncclUnhandledCudaError, "a copy");
    }
}

/* NULL: the stream is not captured. */
static CUgraph graph_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    const CUresult result =
#if CUDA_VERSION >= 13000
        fake_driver()->cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL, NULL);
#else
        fake_driver()->cuStreamGetCaptureInfo(stream, &status, NULL, &graph, NULL, NULL);
#endif

    return result == CUDA_SUCCESS ? graph : NULL;
}

static CUresult end_later(struct job *job)
{
    const struct fake_driver *cuda = fake_driver();
    const CUgraph graph = graph_of(job->stream);
    CUuserObject object;
    CUresult result;

    if (!graph)
        return cuda->cuLaunchHostFunc(job->stream, end, job);
    result = cuda->cuUserObjectCreate(&object, job, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    return result == CUDA_SUCCESS
               ? cuda->cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)
               : result;
}

/* Into a capture that is void nothing goes. */
static void enqueue(struct job *job)
{
    const struct fake_driver *cuda = fake_driver();

    comm_use(job->comm);
    copy_pieces(job, IN);
    if (cuda->cuLaunchHostFunc(job->stream, run, job) != CUDA_SUCCESS)
        comm_fails(job->comm, ncclUnhandledCudaError, "a launch");
    copy_pieces(job, OUT);
    if (end_later(job) == CUDA_SUCCESS)
        return;
    comm_fails(job->comm, ncclUnhandledCudaError, "a launch"); /* it may run still, so it stays */
}

void jobs_enqueue(ncclComm_t comm)
{
    CUcontext before = NULL;

    if (!comm->held)
        return;
    fake_driver()->cuCtxGetCurrent(&before);
    fake_driver()->cuCtxSetCurrent(comm->context);
    while (comm->held) {
        struct job *job = comm->held;

        comm->held = job->next;
        enqueue(job);
    }
    fake_driver()->cuCtxSetCurrent(before);
}

void jobs_drop(ncclComm_t comm)
{
    while (comm->held) {
        struct job *job = comm->held;

        comm->held = job->next;
        job_free(job);
    }
}

static ncclResult_t hold(struct job *job, const char *function)
{
    ncclComm_t comm = job->comm;
    struct job **last = &comm->held;

    if (fake_fails(function, comm->rank)) {
        job_free(job);
        comm_fails(comm, ncclSystemError, "it fails, as it was told to");
        return comm_end(comm);
    }
    while (*last)
        last = &(*last)->next;
    *last = job;
    return comm_end(comm);
}

/* ---- Collectives ------------------------------------------------------------------------------
 *
 * Each is messages between the ranks, of a rank to itself too. */

enum kind {
    SINGLE,
    REDUCE,
    ALL_REDUCE,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_GATHER,
    GATHER,
    SCATTER,
    ALL_TO_ALL
};

/* What all ranks must agree on, beside how many bytes there are. */
struct call {
    const char *function;
    enum kind kind;
    ncclComm_t comm;
    cudaStream_t stream;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* -1: none */
};

static void all_come_and_are_folded(struct job *job, const struct call *c, size_t n, uint64_t kind)
{
    job->to = piece(job, OUT, c->recv, n);
    job->type = c->type;
    job->op = c->op;
    job->count = c->count;
    for (int i = 0; i < c->comm->size; i++) {
        job->from[i] = piece(job, HERE, NULL, n);
        message(job, 0, i, job->from[i], n, kind);
    }
}

/* What leaves is one block for all, or one for each; or for the root alone. */
static void put_together(struct job *job, const struct call *c)
{
    const size_t n = c->count * fake_size_of(c->type), p = (size_t)c->comm->size;
    const uint64_t kind = (uint64_t)c->kind << 48 | (uint64_t)c->type << 32
                          | (uint64_t)(c->op + 1) << 16 | (uint64_t)(c->root + 1);
    const int for_each = c->kind == REDUCE_SCATTER || c->kind == SCATTER || c->kind == ALL_TO_ALL;
    const int is_root = c->root < 0 || c->root == c->comm->rank;
    const int sends = is_root || (c->kind != BROADCAST && c->kind != SCATTER);
    const int receives = is_root || (c->kind != REDUCE && c->kind != GATHER);
    const int from_root = c->kind == BROADCAST || c->kind == SCATTER;
    const int to_root = c->kind == REDUCE || c->kind == GATHER;
    unsigned char *out = sends ? piece(job, IN, c->send, for_each ? p * n : n) : NULL, *in;

    for (size_t i = 0; i < p && sends; i++)
        if (!to_root || (int)i == c->root)
            message(job, 1, (int)i, out + (for_each ? i * n : 0), n, kind);
    if (!receives)
        return;
    if (c->kind == REDUCE || c->kind == ALL_REDUCE || c->kind == REDUCE_SCATTER) {
        all_come_and_are_folded(job, c, n, kind);
        return;
    }
    in = piece(job, OUT, c->recv, from_root ? n : p * n);
    for (size_t i = 0; i < p; i++)
        if (!from_root || (int)i == c->root)
            message(job, 0, (int)i, in + (from_root ? 0 : i * n), n, kind);
}

static ncclResult_t make(const struct call *c)
{
    struct job *job;
    ncclResult_t result;

    if (depth > 0)
        fake_nccl_dies("%s within a group", c->function);
    if (!fake_can_fold(c->type, c->op) || c->count == 0)
        return ncclInvalidArgument;
    result = comm_begin(c->comm);
    if (result != ncclSuccess)
        return result;
    job = job_create(c->comm, c->stream);
    put_together(job, c);
    return hold(job, c->function);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, REDUCE, comm, stream, send, recv, count, type, op, root });
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, ALL_REDUCE, comm, stream, send, recv, count, type, op, -1 });
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, REDUCE_SCATTER, comm, stream, send, recv, count, type, op, -1 });
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, BROADCAST, comm, stream, send, recv, count, type, 0, root });
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, ALL_GATHER, comm, stream, send, recv, count, type, 0, -1 });
}

#ifndef FAKE_NCCL_OLD /* as before 2.28 */
ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return make(&(struct call){ __func__, GATHER, comm, stream, send, recv, count, type, 0, root });
}

ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return make(
        &(struct call){ __func__, SCATTER, comm, stream, send, recv, count, type, 0, root });
}

ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    if (send == recv)
        fake_nccl_dies("ncclAlltoAll in place");
    return make(
        &(struct call){ __func__, ALL_TO_ALL, comm, stream, send, recv, count, type, 0, -1 });
}
#endif

/* ---- Sends and receives ------------------------------------------------------------------------
 */

ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

/* All of a group go at the same time. */
ncclResult_t ncclGroupEnd(void)
{
    struct job *job = group;

    if (depth == 0)
        fake_nccl_dies("ncclGroupEnd() without a group");
    if (--depth > 0 || !job)
        return ncclSuccess;
    group = NULL;
    return hold(job, "ncclGroupEnd");
}

static ncclResult_t single(const char *function, int is_send, const void *device, size_t count,
                           ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    const size_t n = count * fake_size_of(type);
    ncclResult_t result;

    if (n == 0 || peer < 0 || peer >= comm->size)
        return ncclInvalidArgument;
    if (!group) {
        result = comm_begin(comm);
        if (result != ncclSuccess)
            return result;
        group = job_create(comm, stream);
    } else if (group->comm != comm || group->stream != (CUstream)stream) {
        fake_nccl_dies("a group over several communicators or streams");
    }
    message(group, is_send, peer, piece(group, is_send ? IN : OUT, device, n), n, SINGLE);
    if (fake_fails(function, comm->rank))
        comm_fails(comm, ncclSystemError, "it fails, as it was told to");
    if (depth > 0)
        return ncclSuccess;
    depth = 1;
    return ncclGroupEnd();
}

ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return single(__func__, 1, send, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return single(__func__, 0, recv, count, type, peer, comm, stream);
}
