/* SPDX-License-Identifier: Apache-2.0 */
/* call_signature.h - one call in 32 bytes: the part that all ranks must agree on.
 *
 * It is sent with the first bytes of a call on every path, so that a mismatch is found before data
 * is overwritten.  A rank that had finished its part of an earlier call when other ranks differed
 * in it learns that from the next call. */
#ifndef RUNTIME_TYPES_CALL_SIGNATURE_H
#define RUNTIME_TYPES_CALL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* name: torch.distributed's name, and the middle of CT_<NAME>=algorithm.  Messages come first, then
 * collectives, then from new_group on the internal collectives by which ranks agree
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
    X(NCCL_COMM, "nccl_comm")

enum operation {
#define OPERATION_ENUM(name, text) OPERATION_##name,
    OPERATIONS(OPERATION_ENUM)
#undef OPERATION_ENUM
        OPERATION_COUNT
};

struct signature {
    uint64_t seq;   /* number of the call in its group, from 1 */
    uint64_t count; /* elements, per rank where the operation has blocks */
    uint8_t operation;
    uint8_t dtype;
    int16_t op;         /* -1: none */
    int32_t root;       /* -1: none */
    uint32_t algorithm; /* the row of the algorithm, so that a mismatch is found; and the number of
                           calls */
    uint32_t history;   /* a hash of the calls before, and of the per-rank counts of this one */
};

#define OP_OF_PROBE (-2) /* a receive that only looks: ct_probe() */
#define SIGNATURE_ROW_BITS 8
#define SIGNATURE_DEVICE (1u << 31)   /* bit of ->algorithm: the buffers are device memory */
#define SIGNATURE_CAPTURED (1u << 30) /* and the call is captured into a graph */
#define SIGNATURE_WAY(way) ((uint32_t)(way) << 28) /* and the first path, of four */

static inline uint32_t signature_row(const struct signature *s)
{
    return s->algorithm & ((1u << SIGNATURE_ROW_BITS) - 1);
}

/* The number of coalesced calls, between ct_coalesce_begin() and end; 0: a single call. */
static inline uint32_t signature_calls(const struct signature *s)
{
    return (s->algorithm & (SIGNATURE_WAY(1) - 1)) >> SIGNATURE_ROW_BITS;
}

/* The history of the next call. */
static inline uint32_t signature_history(const struct signature *s)
{
    uint64_t words[sizeof *s / 8], hash = 0;

    memcpy(words, s, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
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

/* A send or receive. */
static inline int operation_is_message(int operation)
{
    return operation == OPERATION_SEND || operation == OPERATION_RECV;
}

/* No data: neither count nor dtype. */
static inline int operation_is_barrier(int operation)
{
    return operation == OPERATION_BARRIER || operation == OPERATION_MONITORED_BARRIER;
}

/* An internal collective. */
static inline int operation_is_agreement(int operation)
{
    return operation >= OPERATION_NEW_GROUP;
}

/* A collective of ct.h. */
static inline int operation_is_collective(int operation)
{
    return !operation_is_message(operation) && !operation_is_agreement(operation);
}

/* All ranks know the sizes of all blocks; else each rank gives those of its own blocks. */
static inline int operation_sizes_are_agreed(int operation)
{
    return operation != OPERATION_GATHER_V && operation != OPERATION_SCATTER_V
           && operation != OPERATION_ALL_TO_ALL_V;
}

/* All ranks give the counts of all blocks, which must be equal. */
static inline int operation_has_counts(int operation)
{
    return operation == OPERATION_ALL_GATHER_V || operation == OPERATION_REDUCE_SCATTER_V;
}

const char *operation_name(int operation);
int collective_named(const char *name); /* -1: there is none */

/* "all_reduce #12 (4 f32, sum)" */
void signature_describe(const struct signature *signature, char *text, size_t size);

/* "rank 2 makes another call: all_gather #12 (4 f32) there, all_reduce #12 (4 f32, sum) here", of
 * two different signatures. */
void signature_differ(const struct signature *here, const struct signature *there, int rank,
                      char *text, size_t size);

#endif
