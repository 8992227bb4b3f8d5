/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_calls.c - a collective as one call of NCCL's, or as a group of its sends and receives. */
#include "cuda/nccl/nccl_internal.h"

#include "runtime/types/call_signature.h"

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

ncclResult_t nccl_enqueue(struct talk *t, const struct signature *what, const void *send,
                          void *recv)
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
