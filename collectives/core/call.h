/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - one collective on one rank.
 *
 * An entry (all_reduce.c) fills a request and hands it to call_run(), which checks it
 * (check_arguments.c), makes a call of it, picks the first algorithm that fits
 * (choose_algorithm.c), numbers it, and runs it here or, with a work, on the group's thread
 * (async_call.c). For a few bytes all of this must take less time than a cache line takes from one
 * processor to another. */
#ifndef COLLECTIVES_CORE_CALL_H
#define COLLECTIVES_CORE_CALL_H

#include <limits.h>

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group.h"

/* Consecutive bytes. */
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

/* The paths of a call on device memory (collectives/device), in the order in which they are tried.
 */
enum path_number { PATH_NONE, PATH_NCCL, PATH_FUSED, PATH_STAGED, PATH_COUNT };

struct algorithm {
    const char *name;    /* for CT_<OPERATION>=name and messages */
    const char *backend; /* for whose groups it is; NULL: of all */
    /* NULL: always.  Looks only at what all ranks agree on: signature and group. */
    int (*fits)(const struct call *call);
    ct_status (*run)(struct call *call);
    size_t most; /* bytes per rank that it is best for, without an override; 0: any */
    /* us that it takes by a model, from what all ranks agree on.  Of rows with one that follow each
     * other the least is taken.  NULL: the first that suits is. */
    double (*cost)(const struct call *call, int way);
    int way; /* of a row that shares run() and cost() with others: which it is */
};

/* Carries out calls: on host memory by the algorithm that was chosen, on device memory by a path of
 * collectives/device.  call_make() picks an executor for each call. */
struct executor {
    /* In the caller's thread, before the call has a number: notes that what is in the group's
     * stream now comes first, and sets ->stream_waits and ->by_streams.  NULL: there is no stream.
     */
    ct_status (*prepare)(struct call *c, int has_work);
    ct_status (*run)(struct call *c);
    /* May a stream wait until the call is done?  Not if the call may have to allocate, map or pin
     * memory, or load a library: each of these may wait for that stream. */
    int (*may_hold_stream)(const struct call *c);
    /* Gives back ->mark, which prepare() has made, whether the call ran or not. */
    void (*forget)(struct call *c);
};

struct call {
    ct_group *group;
    const struct executor *executor;
    struct signature signature;
    const struct signature *whole; /* of a piece: the call's; NULL: this is no piece */
    size_t element;                /* bytes of an element */
    struct blocks send, recv;
    struct limit limit;
    int wait_all; /* monitored_barrier */
    int64_t deadline;
    const struct algorithm *const *algorithms; /* the operation's, best first */
    const struct algorithm *algorithm;
    const void *caller; /* return address in the program */
    void *copied;       /* arrays and scaled input that live as long as the call */
    struct place place;
    int elsewhere; /* other ranks have device memory, this rank has host memory or none */
    int refused;   /* CT_ERR_INVALID on all ranks, and the group can make further calls */

    /* On device memory: */
    void *mark;                /* the place in the group's stream that comes first; NULL: none */
    enum path_number override; /* the path that the user wants to be tried first */
    enum capture capture;      /* of the group's stream: then the call becomes part of that graph */
    int by_streams;            /* streams hand the call over (stream_handover.c); no host waits */
    int stream_waits;          /* the group's stream waits for it: the group's thread runs it */
    int is_in_stream;          /* some of it was enqueued there */
    const void *scalar;        /* premul_sum: what multiplies the input; NULL: nothing */
};

/* Memory for its algorithm until call_scratch_end().  NULL: there is none. */
static inline void *call_scratch(const struct call *c, size_t bytes)
{
    return scratch_take(&c->group->mesh->scratch, bytes);
}

static inline void call_scratch_end(const struct call *c, void *data)
{
    scratch_give(&c->group->mesh->scratch, data);
}

/* What the ranks compare: for a piece the whole call's, since pieces of two calls may be alike. */
static inline const struct signature *call_compared(const struct call *c)
{
    return c->whole ? c->whole : &c->signature;
}

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

/* Where block i starts, in elements of its base. */
static inline size_t block_start(const struct blocks *b, int i)
{
    size_t start = 0;

    if (b->displs)
        return b->displs[i];
    if (!b->counts)
        return (size_t)i * b->count;
    for (int j = 0; j < i; j++)
        start += b->counts[j];
    return start;
}

static inline struct span block_of(const struct blocks *b, size_t element, int i)
{
    const size_t bytes = (b->counts ? b->counts[i] : b->count) * element;

    if (b->list)
        return (struct span){ b->list[i], bytes };
    return (struct span){ b->base ? (char *)b->base + block_start(b, i) * element : NULL, bytes };
}

static inline struct span block_at(const struct call *c, const struct blocks *b, int i)
{
    return block_of(b, c->element, i);
}

/* Of all blocks together. */
static inline size_t blocks_bytes(const struct call *c, const struct blocks *b)
{
    size_t sum = b->counts ? 0 : (size_t)b->blocks * b->count;

    for (int i = 0; b->counts && i < b->blocks; i++)
        sum += b->counts[i];
    return sum * c->element;
}

#define NONE INT_MIN /* of op and root: -1 would be a caller's mistake */

/* What an entry gives; see call_run(). */
struct request_of_call {
    ct_group *group;
    int operation;
    const struct algorithm *const *algorithms; /* best first, NULL at the end */
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

/* ---- Parts of call_run() ------------------------------------------------------------ */

/* check_arguments.c: resolves request->group, and refuses what ct.h says is refused, with a
 * sentence; nothing was changed then.  *place: where the buffers are. */
ct_status check_call(const struct request_of_call *request, ct_group **group, struct place *place);

/* call.c: a call of a checked request; the next of its group's numbers. */
void call_make(struct call *c, const struct request_of_call *request, ct_group *group,
               struct place place);
void call_number(struct call *c);
void call_forget(struct call *c); /* frees what belongs to it, whether it ran or not */

ct_status call_choose(struct call *c); /* choose_algorithm.c */

/* async_call.c: copies what must outlive the caller's arrays to c->copied, with op's scaled input;
 * then makes the call a task of the group's thread, which takes over ->copied. */
ct_status call_copy_inputs(struct call *c, ct_op op, int asynchronous);
ct_status call_start(const struct call *c, ct_work **work);
/* The same without a work: what comes later in the group's stream waits for it.
 * CT_ERR_UNSUPPORTED: no stream can, and nothing was begun. */
ct_status call_enqueue(const struct call *c);
ct_status call_run_now(struct call *c); /* what the task does; call.c */

/* coalesce.c: call_run() in a group that collects calls: checks the call and keeps it for
 * ct_coalesce_end(); the group ends, and calls that were collected are not made. */
ct_status coalesce_add(const struct request_of_call *request, ct_group *group, struct place place,
                       int has_work);
void coalesce_drop(ct_group *group);

/* ---- For algorithms ------------------------------------------------------------------- */

/* Do all ranks know the sizes of all blocks?  Rounds over slots need it. */
static inline int sizes_are_agreed(const struct call *c)
{
    return operation_sizes_are_agreed(c->signature.operation);
}

/* fits() of every algorithm over shared slots. */
static inline int fits_shm(const struct call *c)
{
    return c->group->shm && c->group->size <= SHM_GROUP_MOST && sizes_are_agreed(c);
}

/* Each of dst = fold of sources[group rank], in the written order of the group.  streaming: the
 * results are too large to be read from a cache afterwards. */
ct_status call_fold_to(const struct call *c, void *const *dst, int dsts, const void *const *sources,
                       size_t count, int streaming);

static inline ct_status call_fold(const struct call *c, void *dst, const void *const *sources,
                                  size_t count)
{
    return call_fold_to(c, &dst, 1, sources, count, 0);
}

#endif
