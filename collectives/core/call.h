/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - one collective on one rank.
 *
 * The public function (all_reduce.c, for example) fills a request and passes it to call_run().
 * call_run() checks the request (check_arguments.c), makes a struct call, chooses the first
 * algorithm that fits (choose_algorithm.c) and numbers the call.  Then it runs the call in the
 * caller's thread or, for a call with a work, on the group's thread (async_call.c).  For a few
 * bytes all of this must take less time than the transfer of a cache line from one processor to
 * another. */
#ifndef COLLECTIVES_CORE_CALL_H
#define COLLECTIVES_CORE_CALL_H

#include <limits.h>

#include "runtime/device/memory_kind.h"
#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group.h"

struct span {
    char *data;
    size_t bytes;
};

/* The blocks that a rank sends or receives in a call: a single block, or one block per rank.  The
 * blocks are contiguous, have counts and displacements (the v forms), or are an array of pointers
 * (the list forms). */
struct blocks {
    void *base;
    void *const *list;    /* pointers to the blocks; NULL if the blocks are in base */
    const size_t *counts; /* elements of each block; NULL if each block has `count` */
    const size_t *displs; /* starts of the blocks, in elements of base; NULL if packed */
    size_t count;         /* elements of each block, if counts is NULL */
    int blocks;           /* number of blocks; 0 if this rank has no buffer on this side */
};

struct call;
struct network_model; /* network_model.h */

/* The paths of a call on device memory (collectives/device), in the order in which a call tries
 * them. */
enum path_number { PATH_NONE, PATH_NCCL, PATH_FUSED, PATH_STAGED, PATH_COUNT };

struct algorithm {
    const char *name;    /* as in CT_<OPERATION>=name and in messages */
    const char *backend; /* the backend whose groups may use the algorithm; NULL for all */
    /* Returns 1 if the algorithm can do the call, from facts that all ranks agree on: signature and
     * group.  NULL if the algorithm can do every call. */
    int (*fits)(const struct call *call);
    ct_status (*run)(struct call *call);
    size_t most; /* largest bytes per rank for use without an override; 0 for any */
    /* Returns the expected time in us by a model, from facts that all ranks agree on.  Among
     * consecutive rows of a table that have a model, the row with the least time is chosen.  NULL
     * if the algorithm has no model: then the row is chosen if it is the first that suits. */
    double (*cost)(const struct call *call, int way);
    int way; /* selects the variant if several rows share run() and cost() */
};

/* Runs calls.  On host memory an executor runs the chosen algorithm; on device memory it runs a
 * path of collectives/device. call_make() chooses an executor for each call. */
struct executor {
    /* Runs in the caller's thread, before the call has a number.  Marks the point of the group's
     * stream that the call must wait for, and sets ->stream_waits and ->by_streams.  NULL if the
     * executor's calls use no stream. */
    ct_status (*prepare)(struct call *c, int has_work);
    ct_status (*run)(struct call *c);
    /* Returns 1 if a stream may wait until the call is done.  Returns 0 if the call may have to
     * allocate, map or pin memory, or load a library, since each of these may wait for that stream.
     */
    int (*may_hold_stream)(const struct call *c);
    /* Frees the ->mark that prepare() made, whether the call ran or not. */
    void (*forget)(struct call *c);
};

struct call {
    ct_group *group;
    const struct executor *executor;
    struct signature signature;
    const struct signature *whole; /* the whole call's signature if this is a piece; else NULL */
    size_t element;                /* bytes of an element */
    struct blocks send, recv;
    struct limit limit;
    int wait_all; /* 1 if monitored_barrier waits for all ranks before it fails */
    int64_t deadline;
    const struct algorithm *const *algorithms; /* all algorithms of the operation, best first */
    const struct algorithm *algorithm;
    int by_override;                     /* 1 if an override of the user chose the algorithm */
    const struct network_model *network; /* the network for ->cost() of the algorithms */
    const void *caller;                  /* the address in the program to which the call returns */
    void *copied; /* copies of arrays, and scaled input; freed with the call */
    struct place place;
    /* 1 if other ranks use device memory, and this rank uses host memory or no buffer */
    int elsewhere;
    /* 1 if the call returns CT_ERR_INVALID on all ranks; the group can make further calls */
    int refused;

    /* Only calls on device memory use the fields below. */
    void *mark; /* a mark in the group's stream, for which the call waits; NULL if not set */
    enum path_number override; /* the path that the user chose to be tried first */
    enum capture capture;      /* if the stream is captured, the call becomes part of its graph */
    /* 1 if streams hand the call over (stream_handover.c), so the host does not wait */
    int by_streams;
    /* 1 if the call must first wait for earlier calls, which streams hand over in another stream */
    int is_behind_streams;
    int stream_waits;   /* 1 if the stream waits for this call, which the group's thread runs */
    int is_in_stream;   /* 1 if a part of the call was enqueued in the stream */
    const void *scalar; /* the factor of the input for premul_sum; else NULL */
};

/* Returns 1 if any thread may run the call when its turn comes.  A call that may use the device
 * runs on the group's thread, since a thread of the program must not wait in the driver for a
 * stream.  So does a call of backend "mpi": without MPI_THREAD_MULTIPLE each such call fails, and
 * not only those that the group's thread begins first. */
static inline int call_suits_any_thread(const struct call *c)
{
    return !c->executor->prepare && !c->group->mpi;
}

/* Returns memory for the call's algorithm, until call_scratch_end().  NULL if memory ran out.
 */
static inline void *call_scratch(const struct call *c, size_t bytes)
{
    return scratch_take(&c->group->mesh->scratch, bytes);
}

static inline void call_scratch_end(const struct call *c, void *data)
{
    scratch_give(&c->group->mesh->scratch, data);
}

/* Returns the signature that the ranks compare.  For a piece of a call this is the signature of the
 * whole call, since pieces of two different calls may look the same. */
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

/* Returns the bytes of one rank's block, if all ranks' blocks have the same size. */
static inline size_t call_bytes(const struct call *c)
{
    return (size_t)c->signature.count * c->element;
}

/* Returns the start of block i, in elements from b->base. */
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

/* Returns the sum of the bytes of all blocks. */
static inline size_t blocks_bytes(const struct call *c, const struct blocks *b)
{
    size_t sum = b->counts ? 0 : (size_t)b->blocks * b->count;

    for (int i = 0; b->counts && i < b->blocks; i++)
        sum += b->counts[i];
    return sum * c->element;
}

#define NONE INT_MIN /* op or root is not given (-1 would be a caller's mistake) */

/* The arguments of call_run().  The public function of the operation fills this struct. */
struct request_of_call {
    ct_group *group;
    int operation;
    /* the operation's algorithms, best first; NULL at the end */
    const struct algorithm *const *algorithms;
    ct_dtype dtype;
    ct_op op; /* NONE if the operation has no op */
    int root; /* NONE if the operation has no root */
    size_t count;
    struct blocks send, recv;
    struct limit limit; /* the group's limit is used if ms is 0 */
    int wait_all;       /* 1 if monitored_barrier waits for all ranks before it fails */
    int in_place;       /* the enum in_place that tells which blocks may be the same memory */
    const void *caller; /* the address in the program to which the call returns */
};

enum in_place {
    IN_PLACE_NEVER,
    IN_PLACE_WHOLE,    /* block i of send may be block i of recv; both have as many blocks */
    IN_PLACE_OWN_RECV, /* send may be this rank's block of recv */
    IN_PLACE_OWN_SEND  /* recv may be this rank's block of send */
};

ct_status call_run(const struct request_of_call *request, ct_work **work);

/* ---- Parts of call_run() ------------------------------------------------------------ */

/* check_arguments.c: Checks the arguments before anything is changed, and fails with an error
 * message as ct.h describes.  Resolves request->group to *group.  Sets *place to where the buffers
 * are. */
ct_status check_call(const struct request_of_call *request, ct_group **group, struct place *place);

/* call.c: call_make() fills in *c from a checked request. call_number() assigns the group's next
 * number to the call. */
void call_make(struct call *c, const struct request_of_call *request, ct_group *group,
               struct place place);
void call_number(struct call *c);
void call_forget(struct call *c); /* frees the memory of c, whether c ran or not */

/* choose_algorithm.c: call_choose() chooses an algorithm when the program makes the call.  If no
 * override chose, call_choose_fastest() chooses by the model when the call runs.  On each rank all
 * earlier calls of the group have run then, so all ranks have the same model. */
ct_status call_choose(struct call *c);
void call_choose_fastest(struct call *c);

/* async_call.c: call_copy_inputs() copies to c->copied the arrays that must outlive the caller's
 * frame, and the input that premul_sum scales. call_start() makes the call a task of the group's
 * thread, which then owns ->copied. */
ct_status call_copy_inputs(struct call *c, ct_op op, int asynchronous);
ct_status call_start(const struct call *c, ct_work **work);
/* Makes the call a task without a work: later work in the group's stream waits for the call.
 * Returns CT_ERR_UNSUPPORTED if no stream can wait; then nothing was started. */
ct_status call_enqueue(const struct call *c);
ct_status call_run_now(struct call *c); /* call.c: runs the call in this thread */
/* Waits until the group's stream has passed all calls that streams hand over.  Gives up at the
 * call's deadline, or when the group has failed. */
ct_status call_await_streams(const struct call *c);

/* coalesce.c: replaces call_run() in a group that collects calls. coalesce_add() checks the call
 * and stores it for ct_coalesce_end(). coalesce_drop() frees a group's collected calls, which then
 * never run, when the group is destroyed. */
ct_status coalesce_add(const struct request_of_call *request, ct_group *group, struct place place,
                       int has_work);
void coalesce_drop(ct_group *group);

/* ---- For algorithms ------------------------------------------------------------------- */

/* Returns 1 if all ranks know the sizes of all blocks.  Rounds over shared-memory slots need this.
 */
static inline int sizes_are_agreed(const struct call *c)
{
    return operation_sizes_are_agreed(c->signature.operation);
}

/* The fits() of every algorithm over shared-memory slots. */
static inline int fits_shm(const struct call *c)
{
    return c->group->shm && c->group->size <= SHM_GROUP_MOST && sizes_are_agreed(c);
}

/* Reduces sources[group rank] into each of dst, in the group's order of ranks. streaming is 1 if
 * the results are too large to be read from a cache afterwards. */
ct_status call_fold_to(const struct call *c, void *const *dst, int dsts, const void *const *sources,
                       size_t count, int streaming);

static inline ct_status call_fold(const struct call *c, void *dst, const void *const *sources,
                                  size_t count)
{
    return call_fold_to(c, &dst, 1, sources, count, 0);
}

#endif
