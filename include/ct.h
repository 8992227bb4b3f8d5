/* SPDX-License-Identifier: Apache-2.0 */
/* ct.h - process groups, collectives and point-to-point for C programs.
 *
 * Start the program with ctrun (or torchrun, mpirun, srun, or alone), call
 * ct_init_process_group() once, then the same collectives in the same order on
 * every rank.  Names and meaning are those of torch.distributed; where it is
 * silent, those of the MPI standard.
 *
 * What holds everywhere:
 *  - Counts are elements, never bytes; 0 is fine.  Durations are milliseconds.
 *  - `root`, `peer`, `src`, `dst` are ranks in the group.
 *  - A NULL group (CT_WORLD) is the default group.
 *  - Buffers stay the caller's.  With work == NULL a call blocks and the
 *    buffers are free again when it returns; else it returns at once, the
 *    buffers stay busy, and *work is owed exactly one ct_wait().
 *  - Buffers are host memory, or all of a call in that of one GPU, on all
 *    ranks (ct_cuda.h says what holds there).
 *  - In place is send == recv where both have one size; otherwise the rank's
 *    own block of the larger buffer (each function says which).  Any other
 *    overlap is CT_ERR_INVALID, also of two blocks that are received.
 *  - Where only the root uses a buffer, the others may pass NULL for it.
 *  - A call refused with CT_ERR_INVALID or CT_ERR_NOT_MEMBER changed nothing.
 *    After any other failure of a collective the group is broken: each later
 *    call on it returns the same status and says what broke it.
 *  - Threads: different groups in parallel; one call at a time per group.  Two at once on one
 *    group are not noticed: their results are wrong.
 *  - The library prints nothing (CT_LOG=warn makes it talk on stderr), never
 *    calls exit() or abort(), and starts no thread before one is needed: from init on one that
 *    makes connections if ranks meet over sockets, with all signals blocked.
 *
 * What holds when processes fork, end and die:
 *  - fork(): the child keeps no connection and no port of its parent's open.  Every call there on a
 *    group, work or store made before the fork is CT_ERR_INVALID and changes nothing, also a
 *    ct_destroy_process_group() by the program's atexit(); ct_rank(), ct_size() and the like say
 *    what they say in the parent, and memory of ct_mem_alloc() can be read.  A child of a process
 *    that has a default group can't initialise; of one that has none both may.  ct_spawn()ed ranks
 *    may in any case.
 *  - A rank that ends without ct_destroy_process_group() is a death to the others: CT_ERR_PEER for
 *    each call that needs it, and the store is gone if the rank hosted it.
 *  - When a rank dies in a collective, some of the others may have got CT_OK and their result, and
 *    some CT_ERR_PEER.  Before they go on they have to agree which step was the last, e.g. by an
 *    all_reduce with CT_MIN in the group that ct_shrink_group() made.
 *  - Under ctrun survivors go on only with --on-failure=continue; else ctrun ends them.
 *  - A broken CT_WORLD stays broken after ct_shrink_group(): ct_rank() and ct_size() say the old
 *    numbers, calls fail, ct_new_group() too (ct_new_group_with() needs options.parent, the
 *    survivors' group), and ct_should_stop() as well: from then on call it on the survivors'
 *    group.  It is still owed its ct_destroy_process_group().
 *  - Started again by ctrun --max-restarts, a program finds in TORCHELASTIC_RESTART_COUNT how often
 *    (0: the first start).  It goes on from its checkpoint: rank 0 reads the step and broadcasts
 *    it. */
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

#define CT_VERSION "0.1.0"
CT_API const char *ct_version(void); /* of the library, "major.minor.patch" */

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

/* A few words for a status; for the whole story ask ct_last_error(). */
CT_API const char *ct_strerror(ct_status status);

/* This thread's last failure as one sentence: the operation, its number, the group, who, how long,
 * what to do.  Other ranks are told by their rank in the world, the peer of a message by that in
 * the group too.  "" before the first.  Valid until this thread's next failing call. */
CT_API const char *ct_last_error(void);

/* ---- Types ------------------------------------------------------------- */

typedef struct ct_group ct_group; /* ranks that talk together */
typedef struct ct_work ct_work;   /* one operation in flight */
typedef struct ct_store ct_store; /* keys and values that ranks meet at */

#ifdef __cplusplus
#define CT_WORLD (static_cast<ct_group *>(nullptr))
#else
#define CT_WORLD ((ct_group *)0)
#endif
#define CT_ANY_SOURCE (-1)

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

/* Integers wrap.  f16, bf16 and both f8 are accumulated in f32 and rounded
 * once.  AVG is the sum divided by the group's size (integers: towards zero).
 * NaN wins MIN and MAX.  bool: SUM, MAX and BOR are "or"; PRODUCT, MIN and
 * BAND are "and".  Without meaning, and refused with CT_ERR_INVALID: MIN and
 * MAX of complex, AVG of bool, BAND, BOR and BXOR of anything but integers
 * and bool. */
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

/* Bytes of one element; 0 for a value that is no dtype. */
CT_API size_t ct_dtype_size(ct_dtype dtype);

/* An op that multiplies this rank's input by *scalar (one element of dtype,
 * floating or complex), then sums: NCCL's premul_sum.  Ranks may use
 * different scalars.  The op is valid for this dtype, in this process, until
 * ct_op_free(). */
CT_API ct_status ct_op_premul(const void *scalar, ct_dtype dtype, ct_op *op);
CT_API ct_status ct_op_free(ct_op op);

/* ---- Start and end ----------------------------------------------------- */

typedef struct ct_init_options {
    size_t size;             /* sizeof(ct_init_options), set by the INIT macro */
    const char *init_method; /* "env://" (NULL), "tcp://host:port", "file:///path" */
    int rank;                /* -1: from the environment */
    int world_size;          /* -1: from the environment */
    const char *backend;     /* NULL, "cpu" or "gloo" */
    int timeout_ms;          /* for init and as the group's default; -1: CT_TIMEOUT_MS or 30 min */
    ct_store *store;         /* meet here instead of init_method; stays the caller's */
} ct_init_options;
#define CT_INIT_OPTIONS_INIT                                  \
    {                                                         \
        sizeof(ct_init_options), NULL, -1, -1, NULL, -1, NULL \
    }

/* Join the default group.  NULL: everything from the environment (RANK,
 * WORLD_SIZE, MASTER_ADDR, MASTER_PORT; else what mpirun, mpiexec or srun set;
 * else alone, a world of one).  Returns when every rank is here.
 * CT_ERR_INVALID names the variable at fault; CT_ERR_TIMEOUT the missing
 * ranks.  torch.distributed.init_process_group. */
CT_API ct_status ct_init_process_group(const ct_init_options *options);

/* Leave a group and free its handle, its pending calls first completed, and messages
 * that nobody has waited for given up (their works are lost).
 * CT_WORLD: every group made from the default one (their handles are freed, and may
 * not be used or destroyed any more), then itself; a rank that
 * hosts the store serves on until all said goodbye or the timeout passed.
 * Safe on a broken group and on a non-member's handle. */
CT_API ct_status ct_destroy_process_group(ct_group *group);

CT_API int ct_is_initialized(void);
CT_API int ct_rank(const ct_group *group);            /* -1: not a member, or no default group */
CT_API int ct_size(const ct_group *group);            /* -1: no default group */
CT_API int ct_local_rank(void);                       /* LOCAL_RANK or its like; 0 when alone */
CT_API const char *ct_backend(const ct_group *group); /* "cpu"; "" without a group */
/* How long each later call may take, and how long the next one alone (an asynchronous one takes
 * its limit along; that of an isend or irecv runs while it is waited for).  A CT_ERR_TIMEOUT says
 * which call, how long it waited, the limit and who set it, and where the ranks are that did not
 * come, if that can be seen. */
CT_API ct_status ct_set_timeout(ct_group *group, int timeout_ms);
CT_API ct_status ct_set_next_timeout(ct_group *group, int timeout_ms);

/* ---- Groups ------------------------------------------------------------ */

typedef struct ct_group_options {
    size_t size;         /* sizeof(ct_group_options), set by the INIT macro */
    const char *name;    /* for messages; NULL: made up */
    const char *backend; /* NULL: the parent's */
    int timeout_ms;      /* of each call; -1: the parent's */
    ct_group *parent;    /* NULL: the default group; ranks are ranks in it */
    int local_sync;      /* non-zero: only the members call */
    /* Which algorithms carry out its calls: "all_reduce=shm_one_shot:32K,shm_two_shot;
     * broadcast=shm", each for calls of up to so many bytes per rank; equal on all members.  NULL:
     * as the environment says (CT_ALL_REDUCE and the like, CT_TUNING), or the best known. */
    const char *algorithms;
} ct_group_options;
#define CT_GROUP_OPTIONS_INIT                                   \
    {                                                           \
        sizeof(ct_group_options), NULL, NULL, -1, NULL, 0, NULL \
    }

/* A group of `count` ranks of the world, in the order of the list: position is
 * the rank in the new group.  Every rank of the world calls it with the same
 * list (other lists: CT_ERR_MISMATCH; a rank twice or outside: CT_ERR_INVALID).
 * A rank not on the list gets a handle whose ct_rank() is -1, on which every
 * operation returns CT_ERR_NOT_MEMBER at once; it is owed a destroy, too.  Where each rank is in
 * one group of several, as of rows and columns, ct_split_group() gives it that alone.
 * torch.distributed.new_group. */
CT_API ct_status ct_new_group(const int *ranks, int count, ct_group **group);
CT_API ct_status ct_new_group_with(const int *ranks, int count, const ct_group_options *options,
                                   ct_group **group);

/* Ranks of `parent` with the same color form a group, ordered by key, then by
 * rank in parent.  color < 0: the non-member handle.  MPI_Comm_split. */
CT_API ct_status ct_split_group(ct_group *parent, int color, int key, ct_group **group);

/* Consecutive groups of `size` ranks of the world; each rank gets its own.
 * The world's size must be a multiple.  torch.distributed.new_subgroups. */
CT_API ct_status ct_new_subgroups(int size, ct_group **group);

/* A group of its own, beside or without the default one: `size` callers that
 * share `store` (processes, or threads of one process) meet there.  The store
 * stays the caller's; closed earlier it lives as long as the group, whose
 * survivors would meet there.  Give each group its own ct_store_prefix(). */
CT_API ct_status ct_create_group(ct_store *store, int rank, int size,
                                 const ct_group_options *options, ct_group **group);

/* Ranks in the group's root: the world, or the group of ct_create_group(). */
CT_API int ct_group_rank(const ct_group *group, int global); /* -1: not in it */
CT_API int ct_global_rank(const ct_group *group, int rank);  /* -1: no such rank */
CT_API const int *ct_group_ranks(const ct_group *group);     /* ct_size() ints, the group's */

/* Break the group on this rank: whatever waits in it, and every later call,
 * returns CT_ERR_ABORTED.  From any thread.  ct_destroy_process_group() is
 * still owed. */
CT_API ct_status ct_abort(ct_group *group);

/* After a member died (CT_ERR_PEER): the others go on without it.  Each survivor
 * calls; they agree on who is left, in the old order with new ranks, and get a
 * group of its own (as of ct_create_group) whose messages can't be mistaken for
 * the old one's.  The old group is broken on all of them then, and stays to be
 * destroyed.  A member that is neither known to be dead nor comes within
 * timeout_ms (< 0: the group's) is left out: it gets CT_ERR_TIMEOUT.  Who dies
 * while they agree is left out too: all get the same group, or none.  To make it
 * they take as long again at the most (or 10 s, if that is more).
 * They meet at the store the group was made at: CT_ERR_PEER if that is gone, as
 * where rank 0 served it and died; ctrun's store outlives all ranks.
 * As MPI's ULFM: revoke, agree, shrink. */
CT_API ct_status ct_shrink_group(ct_group *group, int timeout_ms, ct_group **survivors);

/* Once per step of a program that can stop early: 1 on all ranks at the same step
 * when the job shall stop, 0 until then, 1 from then on; a negative ct_status says
 * what went wrong.
 *
 * It shall stop after SIGTERM to ctrun or to any rank, at ctrun --deadline, before
 * Slurm ends the job.  Without ctrun the deadline is $CT_DEADLINE (seconds since
 * the epoch), or $SLURM_JOB_END_TIME less 60 s.
 *
 * A collective of the group as any other: all ranks call it, equally often.  A
 * member that died makes it CT_ERR_PEER; then call it on the survivors' group.
 *
 * The first call and then every k-th make an all-reduce of 4 bytes; the calls
 * between return at once.  The ranks choose k anew each time, so that the
 * all-reduces take less than 1 % of the program's time.  k is 1 where a step is 200
 * times as long as an all-reduce.  It is at most 100 (steps shorter than two
 * all-reduces pay more than 1 %), at most twice the k before, and never so large
 * that k steps like the last ones take more than a second.  A program whose steps
 * suddenly become longer stops up to 100 of them later.
 *
 * The first call replaces the default action of SIGTERM by a handler that only
 * notes it.  A handler of the program's own stays: then SIGTERM to ctrun and its
 * deadline stop the job, SIGTERM to one rank does not. */
CT_API int ct_should_stop(ct_group *group);

/* ---- Collectives ------------------------------------------------------- */

/* buf (count elements) of root goes to all. */
CT_API ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                              ct_work **work);

/* At root, recv[i] = op over every rank's send[i], count elements.  The memory
 * of the other ranks is unchanged. */
CT_API ct_status ct_reduce(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, ct_op op, int root, ct_work **work);

/* On every rank, the same bits: recv[i] = op over every rank's send[i]. */
CT_API ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_op op, ct_work **work);

/* send is size * recv_count elements, rank-major; rank r gets block r reduced,
 * recv_count elements.  In place: recv == send + rank * recv_count. */
CT_API ct_status ct_reduce_scatter(ct_group *group, const void *send, void *recv, size_t recv_count,
                                   ct_dtype dtype, ct_op op, ct_work **work);

/* count elements from each rank; recv is size * count, rank-major.
 * In place: send == recv + rank * count (gather: at root). */
CT_API ct_status ct_gather(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, int root, ct_work **work);
CT_API ct_status ct_all_gather(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);

/* send at root is size * count, rank-major; each gets its block of count.
 * In place at root: recv == send + rank * count. */
CT_API ct_status ct_scatter(ct_group *group, const void *send, void *recv, size_t count,
                            ct_dtype dtype, int root, ct_work **work);

/* Block j of rank i goes to block i of rank j; both buffers size * count. */
CT_API ct_status ct_all_to_all(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);

/* Nobody leaves before everybody came. */
CT_API ct_status ct_barrier(ct_group *group, ct_work **work);

/* A barrier that finds out who does not come: after timeout_ms (negative: the group's) rank 0
 * returns CT_ERR_TIMEOUT naming the first of the missing, with wait_all all of them; the other
 * ranks return CT_ERR_PEER with rank 0's words, or CT_ERR_TIMEOUT, within a second more, if
 * rank 0 is itself the one that does not come.  The group is broken then.  All goes through
 * rank 0: for looking into a program, not for every step. */
CT_API ct_status ct_monitored_barrier(ct_group *group, int timeout_ms, int wait_all);

/* The same with a count and a displacement (elements) per rank, MPI's v forms.
 * Arrays hold ct_size() values, are copied at the call, and matter only where
 * the buffer does (at root, or everywhere); NULL displacements: packed.
 * A count must be the same on both sides, else CT_ERR_MISMATCH. */
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
/* send is the sum of recv_counts; block r, of recv_counts[r], goes to rank r.
 * All ranks give the same recv_counts. */
CT_API ct_status ct_reduce_scatter_v(ct_group *group, const void *send, void *recv,
                                     const size_t *recv_counts, ct_dtype dtype, ct_op op,
                                     ct_work **work);

/* The same with an array of ct_size() pointers instead of one large buffer,
 * torch's list forms; the array is copied at the call. */
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

/* Many small collectives for the price of few.  Between begin and end the collectives of this group
 * (work == NULL) are only checked and collected, and return at once; their buffers are busy until
 * the end is done.  Then they are made, as if one after the other: same results, same bits (with
 * CT_ORDER=fast those of the size that travels).  But
 * neighbours of one kind (all-reduces of one dtype and op; broadcasts of one dtype and root;
 * all-gathers; reduce-scatters) of a few KiB each travel as one call, and of those none may
 * write what another reads or writes (CT_ERR_INVALID at the end, and none is made).
 * The end with work == NULL blocks until all are done, else *work is owed one ct_wait() (and is
 * NULL if there was nothing to do).  The first failure ends it.
 *
 * All ranks make the same calls in between.  CT_ERR_INVALID: begin twice, end without begin, a call
 * with a work, or one whose result can't wait (ct_new_group() and its like, ct_mem_alloc(),
 * ct_should_stop()); a call that is refused is not in the list, and the others still are.
 * Messages (ct_send() and its like) are not collected.  A group destroyed in between makes none.
 * torch's _coalescing_manager; ncclGroupStart() ... ncclGroupEnd(). */
CT_API ct_status ct_coalesce_begin(ct_group *group);
CT_API ct_status ct_coalesce_end(ct_group *group, ct_work **work);

/* ---- Point-to-point ---------------------------------------------------- */

/* Matched by (peer, tag) in posted order; tag >= 0.  The received count must
 * equal the sent one, else CT_ERR_MISMATCH: at the receiver, and at the sender
 * unless its message was small enough to go unasked, or on its way.  ct_send may block until the
 * message is received: a large one does, and a small one while its receiver keeps some 4 MiB of
 * this rank that no receive has taken yet.  A send to oneself needs a posted ct_irecv.
 *
 * A limit of time that ends breaks no group, and the call can be made again.  A send that failed
 * so is withdrawn: no receive gets it later, unless the last of its bytes came before that word.
 * A receive that failed so leaves its message to the next one of that peer and tag, though a part
 * had come: CT_OK of a send says that the receiver has the message, or keeps it. */
CT_API ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                         int tag);
/* src may be CT_ANY_SOURCE; *from (may be NULL) says who it was. */
CT_API ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                         int *from);
CT_API ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                          int tag, ct_work **work);
CT_API ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src,
                          int tag, ct_work **work);

/* One send or receive of many. */
typedef enum ct_p2p_kind { CT_P2P_SEND = 1, CT_P2P_RECV } ct_p2p_kind;
typedef struct ct_p2p {
    ct_p2p_kind kind;
    void *buf; /* a send only reads it */
    size_t count;
    ct_dtype dtype;
    int peer; /* of a receive CT_ANY_SOURCE too */
    int tag;
} ct_p2p;

/* `count` sends and receives, in any order and number, begun together: none waits for another, so
 * an exchange in which each rank lists its sends first can't stand still; small messages to one
 * peer leave in one write.  They match one by one as if made in the order of the list (the other
 * side need not use a list).  All are checked first: of a list that is refused nothing was begun.
 *
 * works: an array of `count`, each of which is owed one ct_wait() (or ct_wait_from()), in any
 * order; all NULL if nothing was begun.  works == NULL: returns when all are done, one limit of
 * time for them together.  Then the first that failed, in the order of the list, is told; the
 * others were waited for too.  Each send to this rank itself then needs its receive in
 * the list, or posted before.
 * torch.distributed.batch_isend_irecv; ncclGroupStart() ... ncclGroupEnd(). */
CT_API ct_status ct_batch_isend_irecv(ct_group *group, const ct_p2p *ops, int count,
                                      ct_work **works);

/* ---- Work -------------------------------------------------------------- */

/* Wait until done, free work, give its status.  NULL is CT_OK.  Before the
 * work's group is destroyed. */
CT_API ct_status ct_wait(ct_work *work);
/* As ct_wait, and who a receive from CT_ANY_SOURCE got (from may be NULL). */
CT_API ct_status ct_wait_from(ct_work *work, int *from);
/* As ct_wait, but CT_ERR_TIMEOUT after timeout_ms, and then work is still owed. */
CT_API ct_status ct_wait_for(ct_work *work, int timeout_ms);
/* *done says whether ct_wait would return at once.  Frees nothing. */
CT_API ct_status ct_test(ct_work *work, int *done);

/* ---- Store: torch.distributed.Store ------------------------------------ */

/* A client of the store at host:port; with is_master it also serves one
 * there.  Connecting is retried until timeout_ms, which is then the default of
 * the waiting calls.  Speaks PyTorch's TCPStore protocol.  A server lets programs of
 * our user on its host in; other hosts need the secret of CT_STORE_SECRET or
 * CT_STORE_SECRET_FILE, if it has one (docs/protocol.md). */
CT_API ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms,
                              ct_store **store);
/* What torch.distributed.TCPStore(..., world_size, wait_for_workers=True) does: counts
 * this client, and in the process that serves the store waits until world_size have been
 * counted; the others go on at once.  A master in PyTorch waits for its C clients so.
 * CT_ERR_TIMEOUT says how many came; CT_ERR_UNSUPPORTED for a file or hash store. */
CT_API ct_status ct_store_wait_workers(ct_store *store, int world_size);
/* PyTorch's FileStore format: processes of one host share a file. */
CT_API ct_status ct_store_file(const char *path, int timeout_ms, ct_store **store);
/* In this process's memory; threads share the handle. */
CT_API ct_status ct_store_hash(ct_store **store);
/* base with every key under "prefix/".  Either may be closed first. */
CT_API ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store);
/* The store the default group met at; the library's.  NULL before init. */
CT_API ct_store *ct_store_default(void);
CT_API ct_status ct_store_close(ct_store *store);

/* Keys are strings, values any bytes.  Values given out are malloc'ed, with a
 * 0 byte behind them that *bytes does not count; free() them.
 * timeout_ms: -1 is the store's own, which also bounds every answer of a server:
 * one that is silent for so long is gone (CT_ERR_TIMEOUT, then CT_ERR_PEER). */
CT_API ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits for the key; CT_ERR_TIMEOUT names it. */
CT_API ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                              size_t *bytes);
/* Adds delta to a decimal number (missing: 0); *result is the sum. */
CT_API ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result);
CT_API ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms);
CT_API ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present);
/* Sets desired if the value is expected (or the key is missing and expected is
 * empty); *value is what the store then answers (see torch.distributed). */
CT_API ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                                      size_t expected_bytes, const void *desired,
                                      size_t desired_bytes, void **value, size_t *bytes);
CT_API ct_status ct_store_delete(ct_store *store, const char *key, int *deleted);
CT_API ct_status ct_store_num_keys(ct_store *store, int64_t *count);
CT_API ct_status ct_store_append(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits for all keys; values and bytes are arrays of count, each value to be freed. */
CT_API ct_status ct_store_multi_get(ct_store *store, const char *const *keys, int count,
                                    int timeout_ms, void **values, size_t *bytes);
CT_API ct_status ct_store_multi_set(ct_store *store, const char *const *keys, int count,
                                    const void *const *values, const size_t *bytes);
CT_API ct_status ct_store_queue_push(ct_store *store, const char *key, const void *value,
                                     size_t bytes);
/* Oldest value; timeout_ms 0: CT_ERR_TIMEOUT when the queue is empty. */
CT_API ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                                    size_t *bytes);
CT_API ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length);
/* *keys: *count strings in one malloc'ed block; free(*keys) frees them all. */
CT_API ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count);

/* ---- Algorithms ----------------------------------------------------------- */

/* The i-th algorithm of an operation ("all_reduce"), best first, as CT_ALL_REDUCE and
 * ct_group_options.algorithms name it; NULL: there are no more, or there is no such operation. */
CT_API const char *ct_algorithm(const char *operation, int i);
/* The one by which this rank's last collective on the group was carried out, or begun; NULL: there
 * was none. */
CT_API const char *ct_last_algorithm(const ct_group *group);

/* ---- Memory that peers reach -------------------------------------------- */

/* `bytes` bytes (the same on all ranks) of memory that the other ranks of this host read and write
 * in place: collectives whose buffers all lie in it copy nothing in between.  Collective; either
 * all ranks get it or none.  Filled with zeros, its pages taken now, aligned to a page. It is the
 * caller's until ct_mem_free(), and ends with the process group that `group` was made from
 * (ct_destroy_process_group(CT_WORLD)).  Sub-groups use it as directly as `group` does; elsewhere
 * it is ordinary memory.  Of calls of several groups at one time whose buffers share a page, one
 * uses it directly and the others copy; so do all later calls after one failed while another rank
 * was at its buffers.  No core dump has it.  [ncclMemAlloc; MPI_Win_allocate_shared]
 * CT_ERR_MISMATCH: ranks ask for different sizes (the group stays sound); CT_ERR_NOMEM. */
CT_API ct_status ct_mem_alloc(ct_group *group, size_t bytes, void **ptr);
/* Collective.  ptr: what ct_mem_alloc(group, ...) gave; NULL is fine, on all ranks.  In a broken
 * group it is given back too, and the status is what broke it.  CT_ERR_INVALID: it is no such
 * memory of this group, or the group collects calls (ct_coalesce_begin()); nothing was freed. */
CT_API ct_status ct_mem_free(ct_group *group, void *ptr);

/* ---- Spawn: torch.multiprocessing.spawn --------------------------------- */

/* Forks nprocs children that have RANK, WORLD_SIZE and the rest set, run
 * fn(rank, nprocs, arg) and exit with its value.  Joins them; the first failure
 * kills the rest.  0, the first failing exit code (128 + signal), or a
 * CT_ERR_*; ct_last_error() says who failed.  Before the caller's first CUDA
 * call and, better, before its first thread. */
CT_API int ct_spawn(int nprocs, int (*fn)(int rank, int size, void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
