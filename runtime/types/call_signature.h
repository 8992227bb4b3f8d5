/* SPDX-License-Identifier: Apache-2.0 */
/* call_signature.h - the signature of a call, 32 bytes that must be equal on all ranks.
 *
 * Every path sends the signature with the first bytes of a call, so that ranks find a mismatch
 * before data is overwritten.  A rank may have finished its part of a call before other ranks found
 * a mismatch in that call.  The signatures of the next call then differ in `history`, from which
 * this rank learns of the mismatch. */
#ifndef RUNTIME_TYPES_CALL_SIGNATURE_H
#define RUNTIME_TYPES_CALL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each row is an enumerator and a name.  The name is torch.distributed's and, in capitals, the
 * middle of CT_<NAME>=algorithm.  Messages come first, then the collectives of ct.h.  From
 * NEW_GROUP on, the rows are the internal collectives by which ranks agree
 * (internal_collectives.h). */
#define OPERATIONS(X)                         \
    X(SEND, "send")                           \
    X(RECV, "recv")                           \
    X(BROADCAST, "broadcast")                 \
    X(REDUCE, "reduce")                       \
    X(ALL_REDUCE, "all_reduce")               \
    X(REDUCE_SCATTER, "reduce_scatter")       \
    X(REDUCE_SCATTER_V, "reduce_scatter_v")   \
    X(GATHER, "gather")                       \
    X(GATHER_V, "gather_v")                   \
    X(ALL_GATHER, "all_gather")               \
    X(ALL_GATHER_V, "all_gather_v")           \
    X(SCATTER, "scatter")                     \
    X(SCATTER_V, "scatter_v")                 \
    X(ALL_TO_ALL, "all_to_all")               \
    X(ALL_TO_ALL_V, "all_to_all_v")           \
    X(BARRIER, "barrier")                     \
    X(MONITORED_BARRIER, "monitored_barrier") \
    X(NEW_GROUP, "new_group")                 \
    X(SPLIT_GROUP, "split_group")             \
    X(SHOULD_STOP, "should_stop")             \
    X(MEM_ALLOC, "mem_alloc")                 \
    X(MEM_FREE, "mem_free")                   \
    X(NCCL_COMM, "nccl_comm")                 \
    X(OTHER, "call") /* a call of another library that has no row here */

enum operation {
#define OPERATION_ENUM(name, text) OPERATION_##name,
    OPERATIONS(OPERATION_ENUM)
#undef OPERATION_ENUM
        OPERATION_COUNT
};

struct signature {
    uint64_t seq;   /* number of the call in its group, from 1 */
    uint64_t count; /* elements; those of one rank if the operation has a block for each rank */
    uint8_t operation;
    uint8_t dtype;
    int16_t op;   /* a ct_op, OP_OF_PROBE, or -1 if the operation does not reduce */
    int32_t root; /* -1 if the operation has no root */
    /* The algorithm's row, the number of coalesced calls and the flags below.  Ranks find a
     * mismatch if their values differ. */
    uint32_t algorithm;
    uint32_t history; /* hash of the calls before and of this call's counts for each rank */
};

#define DTYPE_NOT_KNOWN 255 /* the dtype of a call whose elements are not known */
#define OP_OF_PROBE (-2)    /* the op of ct_probe(), a receive that takes no message */
#define SIGNATURE_ROW_BITS 8
#define SIGNATURE_ROW_MASK ((1u << SIGNATURE_ROW_BITS) - 1)
#define SIGNATURE_DEVICE (1u << 31)   /* bit of ->algorithm: the buffers are device memory */
#define SIGNATURE_CAPTURED (1u << 30) /* bit of ->algorithm: a CUDA graph captures the call */
/* Bits of ->algorithm: the first path, from 0 to 3. */
#define SIGNATURE_WAY(way) ((uint32_t)(way) << 28)

static inline uint32_t signature_row(const struct signature *s)
{
    return s->algorithm & SIGNATURE_ROW_MASK;
}

/* Returns the number of calls between ct_coalesce_begin() and ct_coalesce_end() that go as this
 * one, or 0 for a single call. */
static inline uint32_t signature_calls(const struct signature *s)
{
    return (s->algorithm & (SIGNATURE_WAY(1) - 1)) >> SIGNATURE_ROW_BITS;
}

/* Returns the hash of this call and the calls before, which becomes the history of the next call.
 * Each field is read as it was just written: a wider load would wait until the stores have left the
 * processor's store buffer. */
static inline uint32_t signature_history(const struct signature *s)
{
    const uint64_t sum = s->seq * 0x9e3779b97f4a7c15u + s->count * 0xbf58476d1ce4e5b9u
                         + s->operation * 0x94d049bb133111ebu + s->dtype * 0xd6e8feb86659fd93u
                         + (uint64_t)s->op * 0xa0761d6478bd642fu
                         + (uint64_t)s->root * 0xe7037ed1a0b428dbu
                         + s->algorithm * 0x8ebc6af09c88c6e3u + s->history * 0x589965cc75374cc3u;

    return (uint32_t)((sum ^ sum >> 32) * 0x9e3779b97f4a7c15u >> 32);
}

static inline int signature_equal(const struct signature *a, const struct signature *b)
{
#ifdef CT_NO_RECORD
    (void)a, (void)b;
    return 1;
#else
    return memcmp(a, b, sizeof *a) == 0;
#endif
}

/* True for a send or receive. */
static inline int operation_is_message(int operation)
{
    return operation == OPERATION_SEND || operation == OPERATION_RECV;
}

/* True for an operation without data, which has neither count nor dtype. */
static inline int operation_is_barrier(int operation)
{
    return operation == OPERATION_BARRIER || operation == OPERATION_MONITORED_BARRIER;
}

/* True for an internal collective, by which ranks agree. */
static inline int operation_is_agreement(int operation)
{
    return operation >= OPERATION_NEW_GROUP;
}

/* True for a collective of ct.h. */
static inline int operation_is_collective(int operation)
{
    return !operation_is_message(operation) && !operation_is_agreement(operation);
}

/* True if all ranks know the sizes of all blocks.  Otherwise each rank passes the sizes of its own
 * blocks only. */
static inline int operation_sizes_are_agreed(int operation)
{
    return operation != OPERATION_GATHER_V && operation != OPERATION_SCATTER_V
           && operation != OPERATION_ALL_TO_ALL_V;
}

/* True if each rank passes the counts of all blocks, which must be equal on all ranks. */
static inline int operation_has_counts(int operation)
{
    return operation == OPERATION_ALL_GATHER_V || operation == OPERATION_REDUCE_SCATTER_V;
}

const char *operation_name(int operation);
int collective_named(const char *name); /* -1 if no collective has this name */

/* Writes a call as text, such as "all_reduce #12 (4 f32, sum)". */
void signature_describe(const struct signature *signature, char *text, size_t size);

/* Writes how the calls of two ranks differ, such as "the ranks disagree: rank 1 calls all_reduce
 * #12 (4 f32, sum), rank 2 calls all_gather #12 (4 f32)".  `mine` is the call of `rank`, `theirs`
 * that of `peer`.  Both ranks write the same text. */
void signature_differ(const struct signature *mine, int rank, const struct signature *theirs,
                      int peer, char *text, size_t size);

#endif
