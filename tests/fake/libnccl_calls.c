/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_calls.c - the fake NCCL's collectives, sends and receives: each is put together as a job
 * (libnccl_job.c) of messages between the ranks, of a rank to itself too. */
#include "tests/fake/libnccl_job.h"

static _Thread_local int depth;         /* of ncclGroupStart() */
static _Thread_local struct job *group; /* its sends and receives */

/* ---- Collectives ------------------------------------------------------------------------------
 */

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
    job->to = job_piece(job, OUT, c->recv, n);
    job->type = c->type;
    job->op = c->op;
    job->count = c->count;
    for (int i = 0; i < c->comm->size; i++) {
        job->from[i] = job_piece(job, HERE, NULL, n);
        job_message(job, 0, i, job->from[i], n, kind);
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
    unsigned char *out = sends ? job_piece(job, IN, c->send, for_each ? p * n : n) : NULL, *in;

    for (size_t i = 0; i < p && sends; i++)
        if (!to_root || (int)i == c->root)
            job_message(job, 1, (int)i, out + (for_each ? i * n : 0), n, kind);
    if (!receives)
        return;
    if (c->kind == REDUCE || c->kind == ALL_REDUCE || c->kind == REDUCE_SCATTER) {
        all_come_and_are_folded(job, c, n, kind);
        return;
    }
    in = job_piece(job, OUT, c->recv, from_root ? n : p * n);
    for (size_t i = 0; i < p; i++)
        if (!from_root || (int)i == c->root)
            job_message(job, 0, (int)i, in + (from_root ? 0 : i * n), n, kind);
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
    return job_hold(job, c->function);
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
    return job_hold(job, "ncclGroupEnd");
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
    job_message(group, is_send, peer, job_piece(group, is_send ? IN : OUT, device, n), n, SINGLE);
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
