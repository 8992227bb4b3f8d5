/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - one collective on one rank.
 *
 * An entry (all_reduce.c) fills a struct call and hands it to call_run(), which
 * checks it, numbers it, picks the first algorithm that fits, and runs it here
 * or, with a work, on the group's thread. */
#ifndef COLLECTIVES_CALL_H
#define COLLECTIVES_CALL_H

#include <limits.h>

#include "runtime/group.h"
#include "runtime/queue.h"

/* Consecutive bytes of somebody's. */
struct span {
    char *data;
    size_t bytes;
};

/* One side's buffer as blocks, one or one per rank: contiguous, with counts and
 * displacements (the v forms), or an array of pointers (the list forms). */
struct blocks {
    void *base;
    void *const *list;    /* NULL: base */
    const size_t *counts; /* NULL: count each */
    const size_t *displs; /* NULL: packed */
    size_t count;         /* elements of each block */
    int blocks;           /* how many; 0: this rank has no such buffer */
};

struct call;

struct algorithm {
    const char *name; /* for CT_<OPERATION>=name and messages */
    /* NULL: always.  Looks only at what all ranks agree on: signature and group. */
    int (*fits)(const struct call *call);
    ct_status (*run)(struct call *call);
};

struct call {
    struct task task; /* first: an asynchronous call is its task */
    ct_group *group;
    struct signature signature;
    size_t element; /* bytes of one */
    struct blocks send, recv;
    struct limit limit;
    int wait_all; /* monitored_barrier */
    int64_t deadline;
    const struct algorithm *algorithm;
    const void *caller; /* return address in the program */
    void *copied;       /* arrays and scaled input that live as long as the call */
};

/* rows of an operation's algorithms, best first, NULL at the end; operations.c */
const struct algorithm *const *operation_algorithms(int operation);

static inline ct_dtype call_dtype(const struct call *c)
{
    return (ct_dtype)c->signature.dtype;
}

static inline ct_op call_op(const struct call *c)
{
    return (ct_op)c->signature.op;
}

static inline int call_is_root(const struct call *c)
{
    return c->signature.root == c->group->rank;
}

/* Bytes of one rank's block where all are alike. */
static inline size_t call_bytes(const struct call *c)
{
    return (size_t)c->signature.count * c->element;
}

struct span block_at(const struct call *c, const struct blocks *blocks, int i);

#define NONE INT_MIN /* of op and root: -1 would be a caller's mistake */

/* What an entry gives; see call_run(). */
struct request_of_call {
    ct_group *group;
    int operation;
    ct_dtype dtype;
    ct_op op; /* NONE: the operation has none */
    int root; /* NONE likewise */
    size_t count;
    struct blocks send, recv;
    struct limit limit; /* ms 0: the group's */
    int wait_all;       /* monitored_barrier */
    int in_place;       /* which pair of blocks may be the same memory */
    const void *caller; /* __builtin_return_address(0) of the entry: where in the program it is */
};

enum in_place {
    IN_PLACE_NEVER,
    IN_PLACE_WHOLE,    /* send == recv, one block each, or block i with block i */
    IN_PLACE_OWN_RECV, /* send with the own block of recv */
    IN_PLACE_OWN_SEND  /* recv with the own block of send */
};

ct_status call_run(const struct request_of_call *request, ct_work **work);

/* recv = fold of sources[group rank], in the written order of the group. */
ct_status call_fold(const struct call *c, void *dst, const void *const *sources, size_t count);

#endif
