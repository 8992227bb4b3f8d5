/* SPDX-License-Identifier: Apache-2.0 */
/* ct.h - process groups, collectives and point-to-point for C programs.
 *
 * Start the program with ctrun (or torchrun, mpirun, srun, or alone), call
 * ct_init_process_group() once, then the same collectives in the same order on
 * every rank.  Names and meaning are those of torch.distributed; where it is
 * silent, those of the MPI standard.  A name in brackets at the end of a comment
 * is the call that this one is like.
 *
 * What holds for all calls:
 *  - Counts are elements, never bytes; 0 is allowed.  Durations are milliseconds.
 *  - `root`, `peer`, `src`, `dst` are ranks in the group of the call.
 *  - A NULL group (CT_WORLD) is the default group.
 *  - Buffers stay the caller's.  With work == NULL a call blocks, and the caller may use
 *    the buffers again when it returns.  Otherwise it returns at once: the library uses
 *    the buffers until the work is done, and the caller owes *work exactly one ct_wait().
 *  - All buffers of one call are in host memory, or all in that of one GPU, on all ranks
 *    (ct_cuda.h says what holds there).
 *  - A call is in place if send == recv where both have one size; otherwise if the smaller
 *    buffer is the rank's own block of the larger one (each function says which).  Any
 *    other overlap is CT_ERR_INVALID, also that of two blocks that are received.
 *  - Where only the root uses a buffer, the other ranks may pass NULL for it.
 *  - Rank-major: the block of rank 0 first, then that of rank 1, and so on.
 *  - Threads: different groups may be used in parallel, one group by one call at a time.
 *    The library does not notice two calls at once on one group: their results are wrong.
 *  - The library prints one line on stderr when ct_init_process_group() or
 *    ct_destroy_process_group() has waited for 5 s, and one when a program with exit code 0 has
 *    left calls or CT_WORLD unfinished.  CT_LOG=none switches both off; CT_LOG=warn prints more.
 *    The library never calls exit() or abort().
 *    It starts a thread only when it needs one: at init one that makes
 *    connections, if ranks meet over sockets, and one that serves the store, if this rank
 *    does; later one for asynchronous calls.  They block all signals.
 *
 * What a call may return besides CT_OK:
 *  - CT_ERR_INVALID, CT_ERR_NOT_MEMBER: the call was refused and changed nothing.
 *  - Any other failure of a collective breaks the group: each later call on it returns the
 *    same status, and its sentence says what broke it.
 *  - CT_ERR_TIMEOUT: the call's limit of time (ct_set_timeout()) passed.  CT_ERR_PEER: a
 *    member died, left, or failed first.  CT_ERR_MISMATCH: the ranks do not make the same
 *    call (operation, count, dtype, op or root differ).  CT_ERR_ABORTED: ct_abort().
 *    CT_ERR_NOMEM, CT_ERR_SYSTEM: this rank has no memory, or a system call failed.
 *
 * What holds when processes fork, end and die:
 *  - fork(): the child keeps no connection and no port of its parent open.  Every call there
 *    on a group, work or store that was made before the fork is CT_ERR_INVALID and changes
 *    nothing, also a ct_destroy_process_group() by the program's atexit().  ct_rank(),
 *    ct_size() and the like return what they return in the parent, and memory of
 *    ct_mem_alloc() can be read.  If the parent has a default group the child can't
 *    initialise; else both may.  Ranks of ct_spawn() may in any case.
 *  - A rank that ends without ct_destroy_process_group() counts as dead: each call of another
 *    rank that needs it is CT_ERR_PEER.  If it served the store, the store is gone.
 *  - When a rank dies in a collective, some of the others may have CT_OK and their result, and
 *    some CT_ERR_PEER.  Before they go on they must agree which step was the last, e.g. by an
 *    all_reduce with CT_MIN in the group that ct_shrink_group() made.
 *  - Under ctrun the survivors go on only with --on-failure=continue; else ctrun ends them.
 *  - A broken CT_WORLD stays broken after ct_shrink_group(): ct_rank() and ct_size() return the
 *    old numbers, calls fail, ct_new_group() too (use ct_new_group_with() and set
 *    options.parent to the survivors' group), and ct_should_stop() as well: call it on the
 *    survivors' group.  ct_destroy_process_group() is still owed.
 *  - After a restart by ctrun --max-restarts, ct_restart_count() says how many there were (0:
 *    none).  Starts in an elastic job after nodes came or went are not counted.  The program goes
 * on from its checkpoint: rank 0 reads the step and broadcasts it. */
#ifndef CT_H
#define CT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CT_API __attribute__((visibility("default")))
#else
#define CT_API
#endif

/* ---- Version ----------------------------------------------------------- */

#define CT_VERSION "0.2.0"
/* The version of the library, "major.minor.patch"; CT_VERSION is that of this header. */
CT_API const char *ct_version(void);

/* ---- Status ------------------------------------------------------------ */

/* The one list of results: enum, name and ct_strerror() come from it. */
#define CT_STATUS_MAP(X)                                            \
    X(OK, 0, "success")                                             \
    X(ERR_INVALID, -1, "invalid argument")                          \
    X(ERR_NOMEM, -2, "out of memory")                               \
    X(ERR_SYSTEM, -3, "system call failed")                         \
    X(ERR_TIMEOUT, -4, "the deadline passed")                       \
    X(ERR_PEER, -5, "a peer is gone")                               \
    X(ERR_ABORTED, -6, "the group was aborted")                     \
    X(ERR_MISMATCH, -7, "the ranks do not make the same call")      \
    X(ERR_NOT_MEMBER, -8, "this rank is not a member of the group") \
    X(ERR_UNSUPPORTED, -9, "not supported here")                    \
    X(ERR_CUDA, -10, "a CUDA call failed")                          \
    X(ERR_NCCL, -11, "an NCCL call failed")

typedef enum ct_status {
#define CT_STATUS_ENUM(name, value, text) CT_##name = value,
    CT_STATUS_MAP(CT_STATUS_ENUM)
#undef CT_STATUS_ENUM
} ct_status;

/* A status in a few words, a constant string.  ct_last_error() has the whole sentence. */
CT_API const char *ct_strerror(ct_status status);

/* The last failure of this thread as one sentence: the operation, its number, the group, which
 * rank, how long, what to do.  It names other ranks by their rank in the world, the peer of a
 * message also by that in the group.  "" before the first failure.  The string is the library's
 * and valid until the next call of this thread that fails. */
CT_API const char *ct_last_error(void);

/* ---- Types ------------------------------------------------------------- */

typedef struct ct_group ct_group; /* ranks that make calls together */
typedef struct ct_work ct_work;   /* one asynchronous call, until its ct_wait() */
typedef struct ct_store ct_store; /* keys and values by which ranks find each other */

#ifdef __cplusplus
#define CT_WORLD (static_cast<ct_group *>(nullptr))
#else
#define CT_WORLD ((ct_group *)0)
#endif
#define CT_ANY_SOURCE (-1)
#define CT_ANY_TAG (-1)

typedef enum ct_dtype {
    CT_I8,
    CT_U8,
    CT_I16,
    CT_U16,
    CT_I32,
    CT_U32,
    CT_I64,
    CT_U64,
    CT_F16,  /* IEEE binary16 */
    CT_BF16, /* upper half of an f32 */
    CT_F32,
    CT_F64,
    CT_BOOL,   /* one byte; any non-zero counts as true, results are 0 or 1 */
    CT_C64,    /* two f32: real, imaginary */
    CT_C128,   /* two f64 */
    CT_F8E4M3, /* as torch.float8_e4m3fn: no infinity, overflow becomes NaN */
    CT_F8E5M2  /* as torch.float8_e5m2 */
} ct_dtype;

/* How a reduction combines elements.  Integers wrap.  f16, bf16 and both f8 are
 * accumulated in f32 and rounded once.  AVG is the sum divided by the group's
 * size (integers: towards zero).  If one input of MIN or MAX is NaN, so is the
 * result.  bool: SUM, MAX and BOR are "or"; PRODUCT, MIN and BAND are "and".
 * These have no meaning and are CT_ERR_INVALID: MIN and MAX of complex, AVG of
 * bool, BAND, BOR and BXOR of anything but integers and bool.
 * The order in which ranks are folded is fixed (CT_ORDER; docs/algorithms.md). */
typedef int ct_op;
enum {
    CT_SUM,
    CT_AVG,
    CT_PRODUCT,
    CT_MIN,
    CT_MAX,
    CT_BAND,
    CT_BOR,
    CT_BXOR
    /* values from 256 up are made by ct_op_premul() */
};

/* Bytes of one element; 0 if the value is no dtype. */
CT_API size_t ct_dtype_size(ct_dtype dtype);

/* to[i] = from[i] as another dtype: CT_F32 to CT_F16, CT_BF16, CT_F8E4M3 or CT_F8E5M2, rounded to
 * the nearest (ties to even; what is too large becomes infinity, in CT_F8E4M3 NaN), or back, which
 * is exact.  Both are arrays of count elements in host memory that do not overlap.  CT_ERR_INVALID:
 * other dtypes, or an array is NULL and count > 0.  [torch.Tensor.to] */
CT_API ct_status ct_convert(const void *from, ct_dtype from_dtype, void *to, ct_dtype to_dtype,
                            size_t count);

/* Makes an op that multiplies this rank's input by *scalar, then sums.  scalar is one
 * element of dtype in host memory and is copied.  Ranks may use different scalars.
 * Each rank rounds its product to dtype before it sends it; the sum of the products is rounded
 * once.  The op is valid for this dtype, in this process, until ct_op_free(); calls that have begun
 * keep it.  CT_ERR_INVALID: dtype is neither floating nor complex.  CT_ERR_NOMEM: 256 such ops are
 * in use.  [ncclRedOpCreatePreMulSum] */
CT_API ct_status ct_op_premul(const void *scalar, ct_dtype dtype, ct_op *op);
CT_API ct_status ct_op_free(ct_op op);

/* ---- Start and end ----------------------------------------------------- */

/* Start from CT_INIT_OPTIONS_INIT.  Strings are read during the call only. */
typedef struct ct_init_options {
    size_t size;             /* sizeof(ct_init_options), set by the INIT macro */
    const char *init_method; /* "env://" (NULL), "tcp://host:port", "file:///path" */
    int rank;                /* -1: from the environment */
    int world_size;          /* -1: from the environment */
    const char *backend; /* "cpu" or "gloo", which is the same; "mpi": collectives go over the MPI
                            that started the program (docs/mpi.md); NULL: CT_BACKEND or "cpu" */
    int timeout_ms;      /* of init and of the group's calls; -1: CT_TIMEOUT_MS or 30 min */
    ct_store *store;     /* meet here instead of init_method; stays the caller's */
} ct_init_options;
#define CT_INIT_OPTIONS_INIT                                  \
    {                                                         \
        sizeof(ct_init_options), NULL, -1, -1, NULL, -1, NULL \
    }

/* Joins the default group and returns when every rank has.  options NULL: everything
 * comes from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; else what mpirun,
 * mpiexec or srun set; else this process is alone, a world of one.
 * CT_ERR_INVALID names the variable or option at fault, or says that there is a default
 * group already.  CT_ERR_TIMEOUT names the missing ranks.  CT_ERR_PEER: the store is gone,
 * or a rank died.  CT_ERR_MISMATCH: ranks have different world sizes, or two
 * processes have the same rank.  After a failure there is no default group.
 * [torch.distributed.init_process_group] */
CT_API ct_status ct_init_process_group(const ct_init_options *options);

/* Leaves a group and frees its handle.  Asynchronous collectives are completed first;
 * messages of ct_isend() and ct_irecv() without a ct_wait() are given up.  It frees
 * works that ct_wait() has not freed; they must not be used any more.
 * With CT_WORLD all groups that were made from the default one end too: their handles are
 * freed and must not be used or destroyed.  A rank that serves the store goes on serving
 * until all ranks have said goodbye or the group's timeout has passed.
 * Safe on a broken group and on a non-member's handle.
 * A program that ends with exit code 0 and has not destroyed CT_WORLD, or has not waited for a
 * work, gets a line on stderr (CT_LOG=none, waits or error: no line).
 * CT_ERR_MISMATCH: the ranks made different calls, but this rank had finished its part, so no call
 * has returned the error.  For example, each rank took itself for the root of the last broadcast.
 * The group is destroyed in this case too.
 * [torch.distributed.destroy_process_group] */
CT_API ct_status ct_destroy_process_group(ct_group *group);

CT_API int ct_is_initialized(void);                   /* 1: there is a default group */
CT_API int ct_rank(const ct_group *group);            /* -1: not a member, or no default group */
CT_API int ct_size(const ct_group *group);            /* -1: no default group */
CT_API int ct_local_rank(void);                       /* LOCAL_RANK or its like; 0 when alone */
CT_API int ct_restart_count(void);                    /* restarts after a failure; 0: none */
CT_API const char *ct_backend(const ct_group *group); /* "cpu" or "mpi"; "" without a group */

/* How long each later call on the group may take, or only the next one.  timeout_ms > 0, else
 * CT_ERR_INVALID.  An asynchronous collective keeps the limit that it was made with; the time of an
 * isend or irecv runs while ct_wait() waits for it.  The sentence of a CT_ERR_TIMEOUT names the
 * call, how long it waited, the limit, what set the limit, and where the missing ranks are, if that
 * can be seen. */
CT_API ct_status ct_set_timeout(ct_group *group, int timeout_ms);
CT_API ct_status ct_set_next_timeout(ct_group *group, int timeout_ms);

/* ---- Groups ------------------------------------------------------------ */

/* Start from CT_GROUP_OPTIONS_INIT.  Strings are read during the call only. */
typedef struct ct_group_options {
    size_t size;         /* sizeof(ct_group_options), set by the INIT macro */
    const char *name;    /* for messages; NULL: made up */
    const char *backend; /* the parent's, or NULL for it; another is CT_ERR_UNSUPPORTED */
    int timeout_ms;      /* of each call; -1: the parent's */
    ct_group *parent;    /* NULL: the default group; ranks are ranks in it */
    int local_sync;      /* non-zero: only the members make the call */
    /* Which algorithms its calls take: "all_reduce=shm_one_shot:32K,shm_two_shot; broadcast=shm".
     * A size is the largest number of bytes per rank that the algorithm is for.  All members give
     * the same text.  NULL: as the environment says (CT_ALL_REDUCE and the like, CT_TUNING), else
     * the best known (docs/algorithms.md). */
    const char *algorithms;
} ct_group_options;
#define CT_GROUP_OPTIONS_INIT                                   \
    {                                                           \
        sizeof(ct_group_options), NULL, NULL, -1, NULL, 0, NULL \
    }

/* Makes a group of `count` ranks of the world (with options.parent: of that group).  The
 * position in the list is the rank in the new group.  Every rank of the world calls it, in the same
 * order, with the same list; with local_sync only the ranks of the list do.  CT_ERR_MISMATCH: the
 * ranks gave different lists.  CT_ERR_INVALID: a rank is listed twice or outside of the world.
 * A rank that is not on the list gets a handle too: its ct_rank() is -1, and every operation on it
 * is CT_ERR_NOT_MEMBER at once.  Each handle is owed a ct_destroy_process_group().
 * Where each rank is in one of several groups, as with rows and columns, ct_split_group() takes one
 * call.  [torch.distributed.new_group] */
CT_API ct_status ct_new_group(const int *ranks, int count, ct_group **group);
CT_API ct_status ct_new_group_with(const int *ranks, int count, const ct_group_options *options,
                                   ct_group **group);

/* Ranks of `parent` that give the same color form a group, ordered by key, then by
 * their rank in parent.  A collective of parent.  color < 0: this rank is in no group and
 * gets a non-member's handle.  [MPI_Comm_split] */
CT_API ct_status ct_split_group(ct_group *parent, int color, int key, ct_group **group);

/* Cuts the world into groups of `size` consecutive ranks; each rank gets the group that
 * it is in.  CT_ERR_INVALID: the world's size is no multiple of size.
 * [torch.distributed.new_subgroups] */
CT_API ct_status ct_new_subgroups(int size, ct_group **group);

/* Makes a group that is not part of the world, with or without a default group: `size`
 * callers (processes, or threads of one process) meet at `store`, each with another rank
 * from 0 to size - 1.  The store stays the caller's.  If the caller closes it first, the
 * group keeps it open until its own end, since survivors would meet there.  Each group
 * needs keys of its own: give it a ct_store_prefix(). */
CT_API ct_status ct_create_group(ct_store *store, int rank, int size,
                                 const ct_group_options *options, ct_group **group);

/* `global` is a rank in the group's root: in the world, or in the group of ct_create_group().
 * ct_group_ranks() has ct_size() of them; the array is the group's. */
CT_API int ct_group_rank(const ct_group *group, int global); /* -1: not in the group */
CT_API int ct_global_rank(const ct_group *group, int rank);  /* -1: no such rank */
CT_API const int *ct_group_ranks(const ct_group *group);

/* Breaks the group: each call of this rank that waits in it, and each later one, returns
 * CT_ERR_ABORTED; those of the other members return CT_ERR_PEER.  May be called from any
 * thread.  ct_destroy_process_group() is still owed.  [ncclCommAbort] */
CT_API ct_status ct_abort(ct_group *group);

/* After a member died (CT_ERR_PEER) the others go on without it.  Each survivor makes this
 * call; they agree which of them are left, keep their order, and get a group of their own
 * (as of ct_create_group()) that shares no message with the old one.  The old group is
 * broken on all of them from then on and must still be destroyed.
 * A member that is not known to be dead and does not come within timeout_ms (< 0: the
 * group's timeout) is left out and gets CT_ERR_TIMEOUT.  A member that dies while they
 * agree is left out too: all get the same group, or none does.  Making it takes at most as
 * long again (or 10 s, if that is more).
 * The survivors meet at the store that the group was made at.  CT_ERR_PEER: it is gone, as
 * where rank 0 served it and died; ctrun's store outlives all ranks.
 * [MPI's ULFM: revoke, agree, shrink] */
CT_API ct_status ct_shrink_group(ct_group *group, int timeout_ms, ct_group **survivors);

/* Called once per step by a program that can stop early.  Returns 1 on all ranks at the
 * same step when the job shall stop, 0 before that, and 1 from then on; or a negative
 * ct_status.
 *
 * The job shall stop after SIGTERM to ctrun or to any rank, at ctrun --deadline, or shortly
 * before Slurm ends it.  Without ctrun the deadline is $CT_DEADLINE (seconds since
 * the epoch), or 60 s before $SLURM_JOB_END_TIME.  If less than 120 s are left at the first call,
 * it is half of that time before the end.
 *
 * It is a collective of the group: all ranks call it, equally often.  After the death of a
 * member it is CT_ERR_PEER; then call it on the survivors' group.
 *
 * Only the first call and then every k-th make an all-reduce, of 4 bytes; the calls between
 * look for failures and return at once.  The ranks choose k anew each time, so that the
 * all-reduces take less than 1 % of the program's time.  k is 1 where a step takes 200
 * times as long as an all-reduce.  It is at most 100 (where a step is shorter than one
 * all-reduce they take more than 1 %), at most twice the k before, and never so large
 * that k steps like the last ones take more than a second.  A program whose steps suddenly
 * become longer may stop up to 100 of them later.  A call without an all-reduce takes no
 * number: the numbers of collectives in messages, in traces and in CT_FAULT's seq differ
 * from run to run.
 *
 * The first call replaces the default action of SIGTERM by a handler that only
 * notes it.  A handler of the program's own stays: then SIGTERM to ctrun and its
 * deadline stop the job, but SIGTERM to one rank does not. */
CT_API int ct_should_stop(ct_group *group);

/* ---- Collectives ------------------------------------------------------- */

/* All ranks of the group make the same calls in the same order.  count is what one rank gives or
 * gets as one block, and is the same on all ranks.  work NULL: the call blocks. */

/* buf, count elements on each rank: that of root is copied to all others.  [MPI_Bcast] */
CT_API ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                              ct_work **work);

/* At root, recv[i] = op over every rank's send[i]; both are count elements.  recv of the
 * other ranks is not touched.  [MPI_Reduce] */
CT_API ct_status ct_reduce(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, ct_op op, int root, ct_work **work);

/* recv[i] = op over every rank's send[i], with the same bits on all ranks; both are count elements.
 * [MPI_Allreduce] */
CT_API ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_op op, ct_work **work);

/* send is ct_size() * recv_count elements, rank-major.  Rank r gets block r reduced over all
 * ranks: recv is recv_count elements.  In place: recv is block `rank` of send.
 * [MPI_Reduce_scatter_block] */
CT_API ct_status ct_reduce_scatter(ct_group *group, const void *send, void *recv, size_t recv_count,
                                   ct_dtype dtype, ct_op op, ct_work **work);

/* send is count elements of each rank; recv, at root or on all ranks, is ct_size() * count
 * elements, rank-major.  In place: send is block `rank` of recv (ct_gather: at root).
 * [MPI_Gather, MPI_Allgather] */
CT_API ct_status ct_gather(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, int root, ct_work **work);
CT_API ct_status ct_all_gather(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);

/* send at root is ct_size() * count elements, rank-major; recv of rank r is block r, count
 * elements.  In place at root: recv is block `root` of send.  [MPI_Scatter] */
CT_API ct_status ct_scatter(ct_group *group, const void *send, void *recv, size_t count,
                            ct_dtype dtype, int root, ct_work **work);

/* Both buffers are ct_size() * count elements, rank-major: block j of rank i's send becomes block i
 * of rank j's recv.  [MPI_Alltoall] */
CT_API ct_status ct_all_to_all(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);

/* No rank returns before all ranks have made the call.  [MPI_Barrier] */
CT_API ct_status ct_barrier(ct_group *group, ct_work **work);

/* A barrier that names the ranks that do not come.  After timeout_ms (negative: the group's; 0 is
 * CT_ERR_INVALID) rank 0 returns CT_ERR_TIMEOUT and names the first missing rank, with wait_all all
 * of them.  The other ranks return CT_ERR_PEER with rank 0's sentence, or, at most a second later,
 * CT_ERR_TIMEOUT if rank 0 itself is missing.  The group is broken then.  All messages go through
 * rank 0: it is for debugging, not for every step.  [torch.distributed.monitored_barrier] */
CT_API ct_status ct_monitored_barrier(ct_group *group, int timeout_ms, int wait_all);

/* The v forms: a count and a displacement for each rank, both in elements.  The arrays have
 * ct_size() values and are copied during the call.  They matter only where their buffer does (at
 * root, or on all ranks).  displs NULL: the blocks lie one behind the other.  Sender and receiver
 * must give the same count for a block, else CT_ERR_MISMATCH.  If the two counts that a rank gives
 * for its own block differ, its call returns CT_ERR_INVALID and does nothing; the group is not
 * broken, and the other ranks wait until this rank makes the call correctly.
 * [MPI_Gatherv, MPI_Allgatherv, MPI_Scatterv, MPI_Alltoallv] */
CT_API ct_status ct_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                             const size_t *recv_counts, const size_t *recv_displs, ct_dtype dtype,
                             int root, ct_work **work);
CT_API ct_status ct_all_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                                 const size_t *recv_counts, const size_t *recv_displs,
                                 ct_dtype dtype, ct_work **work);
CT_API ct_status ct_scatter_v(ct_group *group, const void *send, const size_t *send_counts,
                              const size_t *send_displs, void *recv, size_t recv_count,
                              ct_dtype dtype, int root, ct_work **work);
CT_API ct_status ct_all_to_all_v(ct_group *group, const void *send, const size_t *send_counts,
                                 const size_t *send_displs, void *recv, const size_t *recv_counts,
                                 const size_t *recv_displs, ct_dtype dtype, ct_work **work);
/* send has the sum of all recv_counts, block after block; rank r gets block r reduced, which is
 * recv_counts[r] elements.  All ranks give the same recv_counts.  [MPI_Reduce_scatter] */
CT_API ct_status ct_reduce_scatter_v(ct_group *group, const void *send, void *recv,
                                     const size_t *recv_counts, ct_dtype dtype, ct_op op,
                                     ct_work **work);

/* The list forms: an array of ct_size() pointers, one to each block of count elements, instead of
 * one large buffer.  The array is copied during the call.  [torch's lists of tensors] */
CT_API ct_status ct_gather_list(ct_group *group, const void *send, void *const *recv, size_t count,
                                ct_dtype dtype, int root, ct_work **work);
CT_API ct_status ct_all_gather_list(ct_group *group, const void *send, void *const *recv,
                                    size_t count, ct_dtype dtype, ct_work **work);
CT_API ct_status ct_scatter_list(ct_group *group, const void *const *send, void *recv, size_t count,
                                 ct_dtype dtype, int root, ct_work **work);
CT_API ct_status ct_all_to_all_list(ct_group *group, const void *const *send, void *const *recv,
                                    size_t count, ct_dtype dtype, ct_work **work);
CT_API ct_status ct_reduce_scatter_list(ct_group *group, const void *const *send, void *recv,
                                        size_t count, ct_dtype dtype, ct_op op, ct_work **work);

/* Makes many small collectives as few calls.  Between begin and end the collectives of this group
 * (work == NULL) are only checked and collected, and return at once; the library uses their buffers
 * until the end is done.  The end makes them as if one after the other: same results, same bits
 * (with CT_ORDER=fast those of the size that travels).  Neighbours of one kind (all-reduces of one
 * dtype and op; broadcasts of one dtype and root; all-gathers; reduce-scatters) of up to 8 KiB each
 * travel as one call.  Of these none may write what another one reads or writes (CT_ERR_INVALID at
 * the end, and none is made).
 * ct_coalesce_end() with work == NULL blocks until all are done; else the caller owes *work one
 * ct_wait() (*work is NULL if there was nothing to do).  The first failure ends the list.
 *
 * All ranks collect the same calls.  CT_ERR_INVALID: begin twice, end without begin, a call with a
 * work, or a call whose result is needed at once (ct_new_group() and its like, ct_mem_alloc(),
 * ct_should_stop()).  A call that is refused is not in the list; the others still are.
 * Messages (ct_send() and its like) are not collected.  If the group is destroyed before the end,
 * none is made.  [torch's _coalescing_manager; ncclGroupStart() ... ncclGroupEnd()] */
CT_API ct_status ct_coalesce_begin(ct_group *group);
CT_API ct_status ct_coalesce_end(ct_group *group, ct_work **work);

/* ---- Point-to-point ---------------------------------------------------- */

/* A message is matched by (peer, tag): messages of one sender and tag are received in the order in
 * which they were sent.  tag >= 0.  The receiver must give the count and dtype that were sent, else
 * CT_ERR_MISMATCH: at the receiver, and at the sender unless its message was small enough to leave
 * at once.  ct_send() may block until the message is received: a large one does, and a small one
 * while the receiver keeps some 4 MiB of this rank that no receive has taken yet.  A send to this
 * rank itself needs a receive that was posted before by ct_irecv().
 *
 * A timeout breaks no group, and the call can be made again.  A send that timed out is withdrawn:
 * no later receive gets it, unless all of its bytes had arrived before.  A receive that timed out
 * leaves its message to the next receive of that peer and tag, even if a part of it had come.
 * CT_OK of a send says that the receiver has the message, or keeps it.  [MPI_Send, MPI_Recv] */
CT_API ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                         int tag);
/* src may be CT_ANY_SOURCE; *from (may be NULL) is the rank of the sender. */
CT_API ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                         int *from);
/* Both return without waiting for the other side; the caller owes *work one ct_wait().
 * CT_ERR_INVALID: work is NULL. */
CT_API ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                          int tag, ct_work **work);
CT_API ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src,
                          int tag, ct_work **work);

/* What a message is that no receive has taken yet. */
typedef struct ct_message {
    int from; /* rank of the sender in the group */
    int tag;
    size_t count; /* elements */
    ct_dtype dtype;
} ct_message;

/* Waits until a message from src (may be CT_ANY_SOURCE) with this tag (may be CT_ANY_TAG) is there
 * that no receive was posted for, and describes the first such one in *message (may be NULL).  The
 * message stays where it is.  A ct_recv() of *message's from, tag, count and dtype gets it, unless
 * its sender's ct_send() timed out meanwhile, which withdraws it.  Fails as a receive does, and a
 * timeout breaks no group.
 *
 * A receive itself takes no CT_ANY_TAG, since it has no place to say which tag it got.
 * [MPI_Probe] */
CT_API ct_status ct_probe(ct_group *group, int src, int tag, ct_message *message);
/* The same without waiting: *found = 1 if there is one, else 0 and *message stays as it is.
 * [MPI_Iprobe] */
CT_API ct_status ct_iprobe(ct_group *group, int src, int tag, int *found, ct_message *message);

/* One send or receive of many. */
typedef enum ct_p2p_kind { CT_P2P_SEND = 1, CT_P2P_RECV } ct_p2p_kind;
typedef struct ct_p2p {
    ct_p2p_kind kind;
    void *buf; /* a send only reads it */
    size_t count;
    ct_dtype dtype;
    int peer; /* a receive may have CT_ANY_SOURCE */
    int tag;
} ct_p2p;

/* Begins `count` sends and receives together, in any order: none waits for another, so an exchange
 * in which each rank lists its sends first can't block for ever.  Small messages to one peer leave
 * in one write.  They match as if each were made alone, in the order of the list; the other side
 * need not use a list.  The array is copied during the call.  All are checked first: if one is
 * refused, none is begun.
 *
 * works: an array of `count`; each entry is owed one ct_wait() (or ct_wait_from()), in any order.
 * All are NULL if nothing was begun.  works == NULL: the call returns when all are done, with one
 * limit of time for them together.  It waits for all, then returns the failure of the first in the
 * list that failed.  In that case each send to this rank itself needs its receive in the list, or
 * one that was posted before.
 * [torch.distributed.batch_isend_irecv; ncclGroupStart() ... ncclGroupEnd()] */
CT_API ct_status ct_batch_isend_irecv(ct_group *group, const ct_p2p *ops, int count,
                                      ct_work **works);

/* ---- Work -------------------------------------------------------------- */

/* Waits until the call is done, frees work and returns the status of the call.  NULL is
 * CT_OK.  Must come before the group of the work is destroyed. */
CT_API ct_status ct_wait(ct_work *work);
/* As ct_wait(); *from (may be NULL) is the rank whose message a receive got. */
CT_API ct_status ct_wait_from(ct_work *work, int *from);
/* As ct_wait(), but CT_ERR_TIMEOUT after timeout_ms; then work still is owed a ct_wait(). */
CT_API ct_status ct_wait_for(ct_work *work, int timeout_ms);
/* *done = 1 if ct_wait() would return at once, else 0.  Frees nothing. */
CT_API ct_status ct_test(ct_work *work, int *done);

/* ---- Store: torch.distributed.Store ------------------------------------ */

/* Each function that makes a store gives *store to the caller, who owes it a ct_store_close(). */

/* A client of the store at host:port, in PyTorch's TCPStore protocol.  With is_master this process
 * also serves the store there.  Connecting is tried again until timeout_ms, which is then the
 * timeout of the store's calls.  A server admits programs of its own user on its host.  Others need
 * the secret of CT_STORE_SECRET or CT_STORE_SECRET_FILE, if it has one (docs/protocol.md). */
CT_API ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms,
                              ct_store **store);
/* Counts this client as a worker.  In the process that serves the store it then waits until
 * world_size workers have been counted; the others return at once.  A master in PyTorch waits for
 * its C clients in this way.  CT_ERR_TIMEOUT says how many came; CT_ERR_UNSUPPORTED: a file or hash
 * store.  [torch.distributed.TCPStore(..., world_size, wait_for_workers=True)] */
CT_API ct_status ct_store_wait_workers(ct_store *store, int world_size);
/* The processes of one host share a file, in PyTorch's FileStore format. */
CT_API ct_status ct_store_file(const char *path, int timeout_ms, ct_store **store);
/* A store in the memory of this process; its threads share the handle. */
CT_API ct_status ct_store_hash(ct_store **store);
/* The store `base` with "prefix/" in front of every key.  Either may be closed first. */
CT_API ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store);
/* A store of the caller's, whose operations are these functions: another program's key-value
 * server, say, or a store object of Python.  Several threads may call them at once.  Keys are
 * strings; arg is what ct_store_wrap() was given; a value or an answer is never NULL.  They mean
 * what the calls ct_store_... of the same names below mean, with these differences: timeout_ms -1
 * waits for ever, and a value that get or compare_set returns is malloc()ed with a 0 behind it, and
 * the library frees it. delete_key, append and close may be NULL. */
typedef struct ct_store_ops {
    size_t size; /* sizeof(ct_store_ops) */
    ct_status (*set)(void *arg, const char *key, const void *value, size_t bytes);
    ct_status (*get)(void *arg, const char *key, int timeout_ms, void **value, size_t *bytes);
    ct_status (*add)(void *arg, const char *key, int64_t delta, int64_t *result);
    ct_status (*wait)(void *arg, const char *const *keys, int count, int timeout_ms);
    ct_status (*check)(void *arg, const char *const *keys, int count, int *present);
    ct_status (*compare_set)(void *arg, const char *key, const void *expected,
                             size_t expected_bytes, const void *desired, size_t desired_bytes,
                             void **value, size_t *bytes);
    ct_status (*delete_key)(void *arg, const char *key, int *deleted);
    ct_status (*append)(void *arg, const char *key, const void *value, size_t bytes);
    void (*close)(void *arg); /* when the last holder has closed the store */
} ct_store_ops;
/* *ops is copied.  timeout_ms: of the store's calls, -1: for ever.  Queues, ct_store_num_keys() and
 * ct_store_list_keys() are CT_ERR_UNSUPPORTED.  [torch.distributed.Store as a base class] */
CT_API ct_status ct_store_wrap(const ct_store_ops *ops, void *arg, int timeout_ms,
                               ct_store **store);
/* The store at which the default group met.  It is the library's: do not close it.  NULL before
 * init.  Under its keys lies a prefix, ct/GENERATION/N/, that is new for each start of the workers
 * and each init, so keys of an earlier start are not seen; nor are they by a program that looks for
 * them in the same store without the prefix.  For keys that others see: ct_store_tcp() with
 * MASTER_ADDR and MASTER_PORT. */
CT_API ct_store *ct_store_default(void);
CT_API ct_status ct_store_close(ct_store *store);

/* Keys are strings, values any bytes.  A value that a call returns is malloc'ed, with a
 * 0 byte behind it that *bytes does not count; the caller free()s it.
 * timeout_ms: how long to wait for a key; -1 is the store's own timeout.  That also
 * bounds each answer of a server: one that is silent for so long counts as gone
 * (CT_ERR_TIMEOUT, and CT_ERR_PEER from then on).  Where nothing else is said an answer's
 * place may be NULL.  [torch.distributed.Store] */
CT_API ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits until the key is there; CT_ERR_TIMEOUT names it.  value must not be NULL. */
CT_API ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                              size_t *bytes);
/* Adds delta to the decimal number that the value is (a missing key: 0); *result is the sum. */
CT_API ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result);
/* Waits until all keys are there. */
CT_API ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms);
/* *present = 1 if all keys are there now, else 0. */
CT_API ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present);
/* Sets the value to `desired` if it equals `expected`, or if the key is missing and expected is
 * empty.  *value is the value that the key has afterwards; if the key is missing and expected is
 * not empty, it is `expected`. */
CT_API ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                                      size_t expected_bytes, const void *desired,
                                      size_t desired_bytes, void **value, size_t *bytes);
/* *deleted = 1 if the key was there, else 0. */
CT_API ct_status ct_store_delete(ct_store *store, const char *key, int *deleted);
/* All keys of the store, whatever the prefix. */
CT_API ct_status ct_store_num_keys(ct_store *store, int64_t *count);
/* Adds bytes to the end of the value; a missing key is set. */
CT_API ct_status ct_store_append(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits until all keys are there.  values and bytes are arrays of `count`; the caller frees each
 * value. */
CT_API ct_status ct_store_multi_get(ct_store *store, const char *const *keys, int count,
                                    int timeout_ms, void **values, size_t *bytes);
/* Sets `count` keys; values and bytes are arrays of `count`. */
CT_API ct_status ct_store_multi_set(ct_store *store, const char *const *keys, int count,
                                    const void *const *values, const size_t *bytes);
/* Adds a value to the queue of that name. */
CT_API ct_status ct_store_queue_push(ct_store *store, const char *key, const void *value,
                                     size_t bytes);
/* Takes the oldest value; waits for one.  timeout_ms 0: CT_ERR_TIMEOUT if the queue is empty. */
CT_API ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                                    size_t *bytes);
/* *length: how many values the queue has. */
CT_API ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length);
/* The keys under the store's prefix, without it: *count strings in one malloc'ed block; free(*keys)
 * frees them all. */
CT_API ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count);

/* ---- Algorithms ----------------------------------------------------------- */

/* The name of the i-th algorithm of an operation ("all_reduce"), best first, as CT_ALL_REDUCE and
 * ct_group_options.algorithms take it.  NULL: there are no more, or there is no such operation. */
CT_API const char *ct_algorithm(const char *operation, int i);
/* The algorithm, or on GPU memory the path, of this rank's last collective on the group.  NULL:
 * there was none. */
CT_API const char *ct_last_algorithm(const ct_group *group);

/* Says where in the program the call was made that is under way on the group: "train.py:88 (step)",
 * at most 95 bytes.  ctctl and ctrun show it with that call; without it, they show the C function
 * that made the call.  For bindings of languages whose stack is not that of C: a thread of theirs
 * notes the place of a call that lasts.  One thread at a time may make it, while others are in
 * calls of the group.  CT_ERR_INVALID: place is NULL, or there is no default group. */
CT_API ct_status ct_note_place(ct_group *group, const char *place);

/* ---- Memory that peers reach -------------------------------------------- */

/* Gives memory that the other ranks of this host read and write where it lies: collectives whose
 * buffers all are such memory copy nothing in between.  A collective; `bytes` is the same on all
 * ranks (CT_ERR_MISMATCH otherwise, and the group stays sound), and either all ranks get memory or
 * none does (CT_ERR_NOMEM).  It is filled with zeros, its pages are taken now, and it begins at a
 * page.  It is the caller's until ct_mem_free().  It ends at the latest with the root group that
 * `group` was made from (ct_destroy_process_group(CT_WORLD)).  Groups made from `group` use it in
 * the same way; to other groups it is ordinary memory.  If calls of several groups at one time have
 * buffers in the same page, one uses it directly and the others copy; so do all later calls, if a
 * call failed while another rank was at its buffers.  Core dumps do not contain it.
 * [ncclMemAlloc; MPI_Win_allocate_shared] */
CT_API ct_status ct_mem_alloc(ct_group *group, size_t bytes, void **ptr);
/* A collective.  ptr is what ct_mem_alloc(group, ...) gave; NULL is allowed, on all ranks.  In a
 * broken group the memory is freed too, and the status says what broke it.  CT_ERR_INVALID: ptr is
 * no such memory of this group, or the group collects calls (ct_coalesce_begin()); nothing was
 * freed. */
CT_API ct_status ct_mem_free(ct_group *group, void *ptr);

/* ---- Spawn: torch.multiprocessing.spawn --------------------------------- */

/* Forks nprocs children with RANK, WORLD_SIZE and the like set; each runs fn(rank, nprocs, arg) and
 * exits with its value.  Waits for all; the first that fails stops the others (SIGTERM, 5 s later
 * SIGKILL).  Returns 0, the exit code of the first that failed (128 + signal), or a negative
 * ct_status; ct_last_error() says which rank failed.  Call it before this process's first CUDA call
 * and, better, before its first thread.  [torch.multiprocessing.spawn] */
CT_API int ct_spawn(int nprocs, int (*fn)(int rank, int size, void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
