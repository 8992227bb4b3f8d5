/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - one collective on one rank.
 *
 * An entry (all_reduce.c) fills a request and hands it to call_run(), which checks it
 * (check_arguments.c), makes a call of it, picks the first algorithm that fits (choose_algorithm.c)
 * and numbers the call.  Then it runs the call here or, with a work, on the group's thread
 * (async_call.c).  For a few bytes all of this must take less time than a cache line takes from one
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

/* The buffer of one side as blocks, a single one or one per rank: contiguous, with counts and
 * displacements (the v forms), or an array of pointers (the list forms). */
struct blocks {
    void *base;
    void *const *list;    /* NULL: the blocks are in base */
    const size_t *counts; /* NULL: each block has `count` */
    const size_t *displs; /* NULL: the blocks are packed */
    size_t count;         /* elements of each block */
    int blocks;           /* how many; 0: this rank has no buffer on this side */
};

struct call;

/* The paths of a call on device memory (collectives/device), in the order in which a call tries
 * them. */
enum path_number { PATH_NONE, PATH_NCCL, PATH_FUSED, PATH_STAGED, PATH_COUNT };

struct algorithm {
    const char *name;    /* for CT_<OPERATION>=name and messages */
    const char *backend; /* the backend whose groups may use it; NULL: all */
    /* Says whether it can do the call, only from what all ranks agree on: signature and group.
     * NULL: always. */
    int (*fits)(const struct call *call);
    ct_status (*run)(struct call *call);
    size_t most; /* bytes per rank up to which it is best, without an override; 0: any */
    /* Gives the us that it takes by a model, from what all ranks agree on.  Among neighbouring rows
     * that have a model, the least is taken.  NULL: the row is taken if it is the first that suits.
     */
    double (*cost)(const struct call *call, int way);
    int way; /* the variant, if several rows share run() and cost() */
};

/* Carries out calls.  On host memory it runs the chosen algorithm; on device memory a path of
 * collectives/device.  call_make() picks an executor for each call. */
struct executor {
    /* Runs in the caller's thread, before the call has a number.  Marks the place in the group's
     * stream that comes first, and sets ->stream_waits and ->by_streams.  NULL: calls have no
     * stream. */
    ct_status (*prepare)(struct call *c, int has_work);
    ct_status (*run)(struct call *c);
    /* Says whether a stream may wait until the call is done.  0: the call may have to allocate, map
     * or pin memory, or load a library, and each of these may wait for that stream. */
    int (*may_hold_stream)(const struct call *c);
    /* Gives back the ->mark of prepare(), whether the call ran or not. */
    void (*forget)(struct call *c);
};

struct call {
    ct_group *group;
    const struct executor *executor;
    struct signature signature;
    const struct signature *whole; /* the whole call's; NULL: this is no piece */
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
    int elsewhere; /* other ranks have device memory; this rank has host memory or no buffer */
    int refused;   /* CT_ERR_INVALID on all ranks; the group can make further calls */

    /* Only on device memory: */
    void *mark;                /* the place in the group's stream that comes first; NULL: not set */
    enum path_number override; /* the path that the user wants to be tried first */
    enum capture capture;      /* of the group's stream: the call becomes part of its graph */
    int by_streams; /* streams hand the call over (stream_handover.c), so the host does not wait */
    int is_behind_streams; /* calls before it, which streams hand over, are in another stream */
    int stream_waits;   /* the group's stream waits for the call, which the group's thread runs */
    int is_in_stream;   /* a part of the call was enqueued in the stream */
    const void *scalar; /* premul_sum: the factor of the input; NULL: none */
};

/* Gives the call's algorithm memory until call_scratch_end().  NULL: no memory. */
static inline void *call_scratch(const struct call *c, size_t bytes)
{
    return scratch_take(&c->group->mesh->scratch, bytes);
}

static inline void call_scratch_end(const struct call *c, void *data)
{
    scratch_give(&c->group->mesh->scratch, data);
}

/* Gives the signature that the ranks compare.  A piece has the whole call's, since pieces of two
 * calls may be alike. */
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

/* Gives the bytes of one rank's block, if all ranks' blocks are alike. */
static inline size_t call_bytes(const struct call *c)
{
    return (size_t)c->signature.count * c->element;
}

/* Gives the start of block i, in elements of its base. */
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

/* Gives the bytes of all blocks together. */
static inline size_t blocks_bytes(const struct call *c, const struct blocks *b)
{
    size_t sum = b->counts ? 0 : (size_t)b->blocks * b->count;

    for (int i = 0; b->counts && i < b->blocks; i++)
        sum += b->counts[i];
    return sum * c->element;
}

#define NONE INT_MIN /* op and root are not given; -1 would be a caller's mistake */

/* What an entry passes to call_run(). */
struct request_of_call {
    ct_group *group;
    int operation;
    const struct algorithm *const *algorithms; /* best first, NULL at the end */
    ct_dtype dtype;
    ct_op op; /* NONE: the operation has no op */
    int root; /* NONE: the operation has no root */
    size_t count;
    struct blocks send, recv;
    struct limit limit; /* ms 0: the group's limit */
    int wait_all;       /* monitored_barrier */
    int in_place;       /* which pair of blocks may be the same memory */
    const void *caller; /* the call's place in the program */
};

enum in_place {
    IN_PLACE_NEVER,
    IN_PLACE_WHOLE,    /* send and recv have one block, or as many each; block i may be block i */
    IN_PLACE_OWN_RECV, /* send may be this rank's block of recv */
    IN_PLACE_OWN_SEND  /* recv may be this rank's block of send */
};

ct_status call_run(const struct request_of_call *request, ct_work **work);

/* ---- Parts of call_run() ------------------------------------------------------------ */

/* check_arguments.c: resolves request->group, and refuses what ct.h says is refused, with a
 * sentence and before it changes anything.  *place: where the buffers are. */
ct_status check_call(const struct request_of_call *request, ct_group **group, struct place *place);

/* call.c: makes a call of a checked request; gives it the group's next number. */
void call_make(struct call *c, const struct request_of_call *request, ct_group *group,
               struct place place);
void call_number(struct call *c);
void call_forget(struct call *c); /* frees what it owns, whether it ran or not */

ct_status call_choose(struct call *c); /* choose_algorithm.c */

/* async_call.c: copies to c->copied the arrays that must outlive the caller's, and op's scaled
 * input. Then makes the call a task of the group's thread, which takes over ->copied. */
ct_status call_copy_inputs(struct call *c, ct_op op, int asynchronous);
ct_status call_start(const struct call *c, ct_work **work);
/* Does the same without a work: work that comes later in the group's stream waits for the call.
 * CT_ERR_UNSUPPORTED: no stream can wait, and nothing was begun. */
ct_status call_enqueue(const struct call *c);
ct_status call_run_now(struct call *c); /* call.c: what the task does */
/* Waits until the group's stream has passed all calls that streams hand over; at most until the
 * call's deadline, or until the group has failed. */
ct_status call_await_streams(const struct call *c);

/* coalesce.c: replaces call_run() in a group that collects calls: checks the call and keeps it for
 * ct_coalesce_end().  coalesce_drop(): the group ends, and its collected calls are not made. */
ct_status coalesce_add(const struct request_of_call *request, ct_group *group, struct place place,
                       int has_work);
void coalesce_drop(ct_group *group);

/* ---- For algorithms ------------------------------------------------------------------- */

/* Says whether all ranks know the sizes of all blocks, which rounds over slots need. */
static inline int sizes_are_agreed(const struct call *c)
{
    return operation_sizes_are_agreed(c->signature.operation);
}

/* Is fits() of every algorithm over shared slots. */
static inline int fits_shm(const struct call *c)
{
    return c->group->shm && c->group->size <= SHM_GROUP_MOST && sizes_are_agreed(c);
}

/* Folds sources[group rank] into each of dst, in the written order of the group.  streaming: the
 * results are too large to be read from a cache afterwards. */
ct_status call_fold_to(const struct call *c, void *const *dst, int dsts, const void *const *sources,
                       size_t count, int streaming);

static inline ct_status call_fold(const struct call *c, void *dst, const void *const *sources,
                                  size_t count)
{
    return call_fold_to(c, &dst, 1, sources, count, 0);
}

#endif
