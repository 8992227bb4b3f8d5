/* SPDX-License-Identifier: Apache-2.0 */
/* ct.h - process groups, collectives and point-to-point for C programs.
 *
 * Start the program with ctrun, torchrun, mpirun or srun, or without a launcher as a single rank.
 * Call ct_init_process_group() once, then call the same collectives in the same order on every
 * rank.  Functions have the names and meanings of torch.distributed, or those of MPI if
 * torch.distributed has no such function.  A comment may end with names in brackets, which are
 * similar functions of other libraries.
 *
 * These rules hold for all calls:
 *  - A count is a number of elements, not of bytes, and may be 0.  Durations are in milliseconds.
 *    A buffer may be NULL if its count is 0.  No buffer may have more than PTRDIFF_MAX bytes.
 *  - `root`, `peer`, `src` and `dst` are ranks in the group that is passed to the call.
 *  - CT_WORLD, which is NULL, means the default group.
 *  - The caller owns all buffers.  If `work` is NULL, the call blocks until the caller may use the
 *    buffers again.  If `work` is not NULL, the call is asynchronous: it returns at once and uses
 *    the buffers until the work is done.  For each asynchronous call the caller must call ct_wait()
 *    exactly once, with *work.
 *  - The buffers of a call must be in host memory on all ranks, or in GPU memory on all ranks.  On
 *    each rank all GPU buffers of a call must be in the memory of the same GPU (ct_cuda.h).
 *  - A call whose two buffers have the same size is in place if send == recv.  A call whose buffers
 *    have different sizes is in place if the smaller buffer is the rank's own block of the larger
 *    buffer.  The comment of each function says which block that is.  A call returns CT_ERR_INVALID
 *    if its buffers overlap in any other way, or if two blocks overlap in the buffer that receives
 *    them.
 *  - If only the root uses a buffer, the other ranks may pass NULL for the buffer.
 *  - A rank-major buffer begins with the block of rank 0, followed by the block of rank 1, and so
 *    on.
 *  - Different threads may use different groups at the same time, but only one thread at a time may
 *    call functions on the same group.  If two threads call functions on one group at the same
 *    time, the results are wrong, but the library reports no error.
 *  - The library prints one line on stderr when ct_init_process_group() or
 *    ct_destroy_process_group() has waited for 5 s.  Under ctrun, ctrun prints this line instead.
 *    The library prints another line if a program ends with exit code 0 but has not destroyed
 *    CT_WORLD, or has not called ct_wait() for a work.  CT_LOG=none suppresses both lines of the
 *    library; CT_LOG=waits or error suppresses only the line at the end of the program.
 *  - The library never calls exit() or abort().  At init the library starts a thread that makes
 *    connections if ranks communicate over sockets, and a thread that serves the store if this rank
 *    hosts the store.  Asynchronous calls may start another thread.  All these threads block all
 *    signals.
 *
 * A call on a group returns CT_OK or one of these statuses.  After a failure, ct_last_error()
 * returns a message with the reason.
 *  - CT_ERR_INVALID if an argument is wrong, if there is no default group, or if the group was
 *    created before this process was forked.
 *  - CT_ERR_NOT_MEMBER if this rank is not a member of the group.  A call that returns
 *    CT_ERR_INVALID or CT_ERR_NOT_MEMBER was refused, which means that it changed nothing.
 *  - CT_ERR_TIMEOUT if the time limit of the call passed (ct_set_timeout()).
 *  - CT_ERR_PEER if another rank died, left the group, or failed first.
 *  - CT_ERR_MISMATCH if the ranks called different operations, or passed different counts, dtypes,
 *    ops or roots to the same operation.
 *  - CT_ERR_ABORTED if this rank called ct_abort().
 *  - CT_ERR_NOMEM if this rank is out of memory.
 *  - CT_ERR_SYSTEM if a system call failed.
 *  - CT_ERR_UNSUPPORTED if the program or the environment chose an algorithm that can't execute the
 *    call.
 *  - CT_ERR_CUDA if the buffers are in GPU memory and a CUDA function failed.
 *  - CT_ERR_NCCL if the buffers are in GPU memory and an NCCL function failed.
 *
 * When a call fails on one rank, the calls of the other ranks return as follows:
 *  - If the call of one rank is refused, the other ranks do not notice: their calls wait until that
 *    rank calls correctly, or until their time limit passes.
 *  - A collective that fails without being refused breaks the group.  If one rank gets
 *    CT_ERR_MISMATCH, all ranks get CT_ERR_MISMATCH.  A rank on which the mismatched call has
 *    already returned CT_OK gets CT_ERR_MISMATCH from one of its next 8 calls.  After any other
 *    status on one rank, the other ranks get CT_ERR_PEER, or CT_ERR_TIMEOUT if their own time limit
 *    passed first.  After a failure, each later call of a rank on the broken group returns the
 *    status of the rank's failed call again.
 *  - If a send or receive fails (ct_send() and similar functions), the group is not broken.
 *
 * These objects must be freed:
 *  - The world, even if it is broken, must be destroyed with ct_destroy_process_group(CT_WORLD),
 *    which also destroys the groups that were created from the world.  Each group of
 *    ct_create_group() or ct_shrink_group() must be destroyed, too.
 *  - Each work must be freed with ct_wait(), each store with ct_store_close(), and each value of a
 *    store with free().  Strings that a function returns as const char * must not be freed.
 *
 * The numbers of groups, works, sends and receives that exist at a time are limited only by memory.
 *
 * These rules apply when a process forks, ends or dies:
 *  - After fork() the child keeps no connection and no port of its parent open.  In the child,
 *    every call on a group, work or store that was created before the fork returns CT_ERR_INVALID
 *    and changes nothing.  In the child, ct_rank(), ct_size() and similar functions return the same
 *    values as in the parent, and memory of ct_mem_alloc() can be read.  If the parent had a
 *    default group at the fork, the child can't initialize a default group.  Children of ct_spawn()
 *    can always initialize a default group.
 *  - If a rank ends without ct_destroy_process_group(), the other ranks treat the rank as dead:
 *    each of their calls that needs the dead rank returns CT_ERR_PEER.  If the dead rank hosted the
 *    store, the store no longer exists.
 *  - When a rank dies during a collective, the collective may return CT_OK on some of the other
 *    ranks and CT_ERR_PEER on others.  Before the survivors continue, they must agree on the last
 *    step that all of them finished, for example by an all-reduce with CT_MIN in the group that
 *    ct_shrink_group() created.
 *  - Under ctrun the survivors can continue only with --on-failure=continue; otherwise ctrun ends
 *    the survivors.
 *  - A broken CT_WORLD stays broken after ct_shrink_group().  ct_rank(CT_WORLD) and
 *    ct_size(CT_WORLD) return the same numbers as before the failure.  Other calls on a broken
 *    CT_WORLD fail, including ct_new_group() and ct_should_stop().  Instead, pass the group of
 *    ct_shrink_group() to ct_should_stop(), or as options.parent to ct_new_group_with().
 *  - After a restart (ct_restart_count()) the program must continue from its checkpoint: for
 *    example, rank 0 reads the step from a file and broadcasts the step. */
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
/* Returns the version of the library, "major.minor.patch", as a constant string.  CT_VERSION is the
 * version of this header. */
CT_API const char *ct_version(void);

/* ---- Status ------------------------------------------------------------ */

/* Lists the name, the value and the text of each status.  The enum ct_status and the texts of
 * ct_strerror() are made from this list. */
#define CT_STATUS_MAP(X)                                            \
    X(OK, 0, "success")                                             \
    X(ERR_INVALID, -1, "invalid argument")                          \
    X(ERR_NOMEM, -2, "out of memory")                               \
    X(ERR_SYSTEM, -3, "system call failed")                         \
    X(ERR_TIMEOUT, -4, "the deadline passed")                       \
    X(ERR_PEER, -5, "a peer is gone")                               \
    X(ERR_ABORTED, -6, "the group was aborted")                     \
    X(ERR_MISMATCH, -7, "the ranks made different calls")           \
    X(ERR_NOT_MEMBER, -8, "this rank is not a member of the group") \
    X(ERR_UNSUPPORTED, -9, "not supported here")                    \
    X(ERR_CUDA, -10, "a CUDA call failed")                          \
    X(ERR_NCCL, -11, "an NCCL call failed")

typedef enum ct_status {
#define CT_STATUS_ENUM(name, value, text) CT_##name = value,
    CT_STATUS_MAP(CT_STATUS_ENUM)
#undef CT_STATUS_ENUM
} ct_status;

/* Returns a short description of the status, as a constant string.  ct_last_error() returns the
 * full error message of a failed call.  [ncclGetErrorString; MPI_Error_string] */
CT_API const char *ct_strerror(ct_status status);

/* Returns the error message of this thread's last failure.  The message contains the operation, the
 * number of the call, the group, the rank, how long the call waited, and what to do.  The message
 * identifies other ranks by their ranks in the world, and the peer of a send or receive also by its
 * rank in the group.  Returns "" before the first failure.  The library owns the string, which is
 * valid until the next failure in this thread.  [ncclGetLastError] */
CT_API const char *ct_last_error(void);

/* ---- Types ------------------------------------------------------------- */

typedef struct ct_group ct_group; /* a set of ranks that call collectives together */
typedef struct ct_work ct_work;   /* a handle of an asynchronous call, freed by ct_wait() */
typedef struct ct_store ct_store; /* a key-value store through which ranks find each other */

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
    CT_BF16, /* bfloat16: the upper 16 bits of an f32 */
    CT_F32,
    CT_F64,
    CT_BOOL,   /* one byte; any non-zero value is true; results are 0 or 1 */
    CT_C64,    /* two f32: real, imaginary */
    CT_C128,   /* two f64 */
    CT_F8E4M3, /* torch.float8_e4m3fn: overflow becomes NaN, not infinity */
    CT_F8E5M2  /* torch.float8_e5m2 */
} ct_dtype;

/* Says how a reduction combines elements.  Sums and products of integers wrap around.  Elements of
 * f16, bf16 and both f8 types are accumulated in f32 and rounded once.  AVG is the sum divided by
 * the group's size; for integers the quotient is rounded towards zero.  If an input of MIN or MAX
 * is NaN, the result is NaN.  On bool elements, SUM, MAX and BOR compute "or", while PRODUCT, MIN
 * and BAND compute "and".  Some combinations return CT_ERR_INVALID: MIN or MAX of complex types;
 * AVG of bool; BAND, BOR or BXOR of floating or complex types.  CT_ORDER sets the order in which
 * ranks are reduced (docs/algorithms.md). */
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
    /* ct_op_premul() returns values from 256 up */
};

/* Returns the size of one element in bytes, or 0 if the value is not a dtype. */
CT_API size_t ct_dtype_size(ct_dtype dtype);

/* Converts `count` elements from CT_F32 to CT_F16, CT_BF16, CT_F8E4M3 or CT_F8E5M2, or from one of
 * these four dtypes to CT_F32.  A conversion from CT_F32 rounds to the nearest value, ties to even.
 * A value that is too large for the new dtype becomes infinity, or NaN in CT_F8E4M3.  A conversion
 * to CT_F32 is exact.  `from` and `to` are arrays of `count` elements in host memory that must not
 * overlap.  Returns CT_ERR_INVALID for any other pair of dtypes, or if an array is NULL and count >
 * 0.  [torch.Tensor.to] */
CT_API ct_status ct_convert(const void *from, ct_dtype from_dtype, void *to, ct_dtype to_dtype,
                            size_t count);

/* Creates an op that multiplies this rank's input by *scalar and then sums over all ranks.
 * `scalar` points to one element of type `dtype` in host memory; the function copies this element.
 * Ranks may use different scalars.  Each rank rounds its products to `dtype` before it sends them;
 * the sum of the products is rounded once.  The op is valid only with `dtype` and in this process,
 * until ct_op_free().  Returns CT_ERR_INVALID if dtype is neither floating nor complex, or if a
 * pointer is NULL.  Returns CT_ERR_NOMEM if this process already has 256 such ops.
 * [ncclRedOpCreatePreMulSum] */
CT_API ct_status ct_op_premul(const void *scalar, ct_dtype dtype, ct_op *op);
/* Frees an op that ct_op_premul() created.  A call that started before ct_op_free() may still use
 * the op.  Returns CT_ERR_INVALID if ct_op_premul() did not create the op, or if the op was freed
 * before.  [ncclRedOpDestroy] */
CT_API ct_status ct_op_free(ct_op op);

/* ---- Start and end ----------------------------------------------------- */

/* Initialize this struct with CT_INIT_OPTIONS_INIT.  The strings must be valid only during the call
 * of ct_init_process_group(). */
typedef struct ct_init_options {
    size_t size;             /* sizeof(ct_init_options), set by the INIT macro */
    const char *init_method; /* "env://" (same as NULL), "tcp://host:port", "file:///path" */
    int rank;                /* -1 reads the rank from the environment */
    int world_size;          /* -1 reads the number of ranks from the environment */
    /* "cpu", or "gloo" with the same meaning, or "mpi", which executes collectives with the MPI
     * that started the program (docs/mpi.md); NULL takes CT_BACKEND if it is set, else "cpu" */
    const char *backend;
    /* time limit of init and of the group's calls; -1 takes CT_TIMEOUT_MS if set, else 30 min */
    int timeout_ms;
    ct_store *store; /* the caller's store, where ranks meet; NULL uses init_method */
} ct_init_options;
#define CT_INIT_OPTIONS_INIT                                  \
    {                                                         \
        sizeof(ct_init_options), NULL, -1, -1, NULL, -1, NULL \
    }

/* Joins the default group and returns when every rank has joined.  If options is NULL, all settings
 * come from the environment: from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT if they are set,
 * else from the variables that mpirun, mpiexec or srun sets.  If none of these variables is set,
 * this process is the only rank of its world.
 *
 * If the function fails, it does not create a default group.  Returns CT_ERR_INVALID if a variable
 * or option is wrong, or if there is a default group already; the error message says which.
 * Returns CT_ERR_TIMEOUT if ranks did not join in time; the error message lists the missing ranks.
 * Returns CT_ERR_PEER if the store is gone or a rank died.  Returns CT_ERR_MISMATCH if ranks have
 * different world sizes, the same rank, different versions of libct, or different values of
 * CT_LINK, CT_ORDER or CT_ENCRYPT.  Returns CT_ERR_UNSUPPORTED if the backend is one of
 * torch.distributed that libct does not have, or if the plug-in of the backend "mpi" can't be
 * loaded.  Returns CT_ERR_NOMEM if this rank is out of memory.  Returns CT_ERR_SYSTEM if a system
 * call failed.  [torch.distributed.init_process_group] */
CT_API ct_status ct_init_process_group(const ct_init_options *options);

/* Leaves a group and frees its handle.  The function first completes asynchronous collectives.  The
 * function abandons sends and receives of ct_isend() and ct_irecv() for which ct_wait() was not
 * called.  Works that ct_wait() has not freed are freed and must not be used any more.  Destroying
 * CT_WORLD also destroys all groups that were created from the default group: their handles are
 * freed and must not be used or destroyed.  A rank that hosts the store serves the store until all
 * ranks have called this function or the group's timeout has passed.  The group may be broken, and
 * this rank need not be a member.
 *
 * The function destroys the group even if it returns CT_ERR_MISMATCH.  Returns CT_ERR_MISMATCH if
 * the ranks made different calls, and this rank's call returned CT_OK before the difference was
 * noticed.  [torch.distributed.destroy_process_group] */
CT_API ct_status ct_destroy_process_group(ct_group *group);

/* Returns 1 if there is a default group, else 0.  [torch.distributed.is_initialized] */
CT_API int ct_is_initialized(void);
/* Returns this process's rank in the group, from 0 to ct_size() - 1.  Returns -1 if this process is
 * not a member, or if there is no default group.  [MPI_Comm_rank] */
CT_API int ct_rank(const ct_group *group);
/* Returns the number of ranks in the group, or -1 if there is no default group.  [MPI_Comm_size] */
CT_API int ct_size(const ct_group *group);
/* Returns this process's number among the ranks of its host (LOCAL_RANK), or 0 if the process is
 * the only rank. */
CT_API int ct_local_rank(void);
/* Returns how often ctrun --max-restarts has restarted the ranks after a failure, or 0 if never.
 * The number does not include restarts of an elastic job after nodes joined or left. */
CT_API int ct_restart_count(void);
/* Returns the group's backend, "cpu" or "mpi", as a constant string, or "" if there is no default
 * group.  [torch.distributed.get_backend] */
CT_API const char *ct_backend(const ct_group *group);

/* Sets the time limit of each later call on the group, in ms.  An asynchronous collective keeps the
 * limit that was set when the collective started.  For ct_isend() and ct_irecv(), the limit applies
 * to the time that ct_wait() waits.  Returns CT_ERR_INVALID if timeout_ms < 1. */
CT_API ct_status ct_set_timeout(ct_group *group, int timeout_ms);
/* Sets the time limit, in ms, of only the next call on the group.  Returns CT_ERR_INVALID if
 * timeout_ms < 1. */
CT_API ct_status ct_set_next_timeout(ct_group *group, int timeout_ms);

/* ---- Groups ------------------------------------------------------------ */

/* Initialize this struct with CT_GROUP_OPTIONS_INIT.  The strings must be valid only during the
 * call that creates the group. */
typedef struct ct_group_options {
    size_t size;      /* sizeof(ct_group_options), set by the INIT macro */
    const char *name; /* shown in messages, at most 63 bytes; NULL generates a name */
    /* the parent's backend or NULL; any other backend returns CT_ERR_UNSUPPORTED */
    const char *backend;
    int timeout_ms;   /* time limit of each call; -1 takes the parent's limit */
    ct_group *parent; /* `ranks` are ranks in this group; NULL means the default group */
    int local_sync;   /* not 0 if only the new group's ranks call the function */
    /* The algorithms that the group's calls use, for example "all_reduce=shm_one_shot:32K,
     * shm_two_shot; broadcast=shm".  A size such as 32K is the largest number of bytes per rank for
     * which the algorithm is used.  All members must pass the same text.  If `algorithms` is NULL,
     * CT_TUNING, CT_ALL_REDUCE and similar variables choose the algorithms.  If none of these
     * variables is set, the library chooses the best known algorithms (docs/algorithms.md). */
    const char *algorithms;
} ct_group_options;
#define CT_GROUP_OPTIONS_INIT                                   \
    {                                                           \
        sizeof(ct_group_options), NULL, NULL, -1, NULL, 0, NULL \
    }

/* Creates a group of `count` ranks of the world.  A rank's position in `ranks` is its rank in the
 * new group.  This function is a collective of the world: every rank of the world must call it,
 * with the same list.  A rank that is not on the list gets a handle for which ct_rank() returns -1
 * and every operation returns CT_ERR_NOT_MEMBER at once.  To create one group per row or column of
 * a grid of ranks, call ct_split_group() once instead.  Each rank may destroy the group at any
 * time, without waiting for other ranks.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if the list contains a rank
 * twice, or a rank that is not in the world.  Returns CT_ERR_MISMATCH if the ranks passed different
 * lists; this does not break the world.  [torch.distributed.new_group; MPI_Comm_create] */
CT_API ct_status ct_new_group(const int *ranks, int count, ct_group **group);
/* Creates a group like ct_new_group(), with options.  `ranks` are ranks in options.parent.  All
 * ranks of options.parent must call this function.  If options.local_sync is not 0, only the ranks
 * on the list must call this function.  If options is NULL, the function does the same as
 * ct_new_group().
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if the list contains a rank
 * twice, or a rank that is not in the parent, or if an option is wrong.  Returns CT_ERR_MISMATCH if
 * the ranks passed different lists; this does not break the parent.  Returns CT_ERR_UNSUPPORTED if
 * options.backend is not the parent's backend.  [torch.distributed.new_group] */
CT_API ct_status ct_new_group_with(const int *ranks, int count, const ct_group_options *options,
                                   ct_group **group);

/* Creates groups, each of all ranks of `parent` that pass the same color.  A new group is ordered
 * by key, and ranks with the same key are ordered by their rank in `parent`.  This function is a
 * collective of `parent`.  A rank that passes color < 0 joins no group and gets a handle with which
 * every operation returns CT_ERR_NOT_MEMBER.  Returns the statuses of a call on a group.
 * [MPI_Comm_split] */
CT_API ct_status ct_split_group(ct_group *parent, int color, int key, ct_group **group);

/* Divides the world into groups of `size` consecutive ranks.  Each rank gets the group that
 * contains this rank.  This function is a collective of the world.  Returns the statuses of a call
 * on a group.  Returns CT_ERR_INVALID on all ranks if the world's size is not a multiple of `size`.
 * [torch.distributed.new_subgroups] */
CT_API ct_status ct_new_subgroups(int size, ct_group **group);

/* Creates a group that is not part of the world; a default group is not needed.  The `size`
 * callers, which are processes or threads of one process, meet at `store`.  Each caller passes a
 * different rank from 0 to size - 1.  If the caller closes the store before the group is destroyed,
 * the group keeps the store open.  Each group needs different keys in the store, so pass a store of
 * ct_store_prefix().  Returns CT_ERR_INVALID if rank is not from 0 to size - 1, if a pointer is
 * NULL, or if an option is wrong.  Returns CT_ERR_TIMEOUT if callers did not come in time; the
 * error message lists the missing callers.  Returns CT_ERR_PEER if the store is gone or a caller
 * died.  Returns CT_ERR_MISMATCH if callers pass different sizes, or the same rank.  Returns
 * CT_ERR_UNSUPPORTED if options.backend is not "cpu" or "gloo".  Returns CT_ERR_NOMEM if this
 * process is out of memory.  Returns CT_ERR_SYSTEM if a system call failed. */
CT_API ct_status ct_create_group(ct_store *store, int rank, int size,
                                 const ct_group_options *options, ct_group **group);

/* Returns the rank in `group` of the process that has rank `global` in the group's root group, or
 * -1 if this process is not a member of `group`.  The root group is the world, or the group of
 * ct_create_group() or ct_shrink_group() from which `group` was created. */
CT_API int ct_group_rank(const ct_group *group, int global);
/* Translates `rank`, a rank in `group`, to the rank of the same process in the group's root group
 * (ct_group_rank()).  Returns -1 if `group` has no such rank.  [torch.distributed.get_global_rank;
 * MPI_Group_translate_ranks] */
CT_API int ct_global_rank(const ct_group *group, int rank);
/* Returns an array of ct_size() ranks, or NULL if there is no default group.  Entry r is the rank
 * in the group's root group (ct_group_rank()) of the process that has rank r in `group`.  The group
 * owns the array. */
CT_API const int *ct_group_ranks(const ct_group *group);

/* Breaks the group.  On this rank, calls on the group that are waiting and all later calls on the
 * group return CT_ERR_ABORTED.  On the other members, calls on the group return CT_ERR_PEER.  Any
 * thread may call this function.  The group must still be destroyed with
 * ct_destroy_process_group().  Returns CT_ERR_NOT_MEMBER if this rank is not a member of the group.
 * [ncclCommAbort] */
CT_API ct_status ct_abort(ct_group *group);

/* Creates a group of the survivors after a member died (CT_ERR_PEER).  Each survivor must call this
 * function.  The survivors agree which members are left, and get a new group in which they keep
 * their order.  Like a group of ct_create_group(), the new group is not part of the world and must
 * be destroyed.  The function breaks the old group on all survivors.
 *
 * The survivors wait up to timeout_ms for each member that is not known to be dead.  A negative
 * timeout_ms means the group's timeout.  A member that calls the function too late is left out of
 * the new group and gets CT_ERR_TIMEOUT.  A member that dies while the survivors agree is left out,
 * too.  Either all survivors get the same group, or none gets a group.  The function gives up after
 * twice timeout_ms, or after timeout_ms plus 10 s if that is longer.
 *
 * The survivors meet at the store at which the group was created.  A store that ctrun hosts
 * outlives all ranks.  Returns CT_ERR_NOT_MEMBER if this rank is not a member of the group.
 * Returns CT_ERR_TIMEOUT if this rank called too late, or if the survivors could not agree in time.
 * Returns CT_ERR_PEER if the store is gone, for example because rank 0 hosted the store and died.
 * Returns CT_ERR_NOMEM if this rank is out of memory.  Returns CT_ERR_SYSTEM if a system call
 * failed.  [MPI's ULFM: revoke, agree, shrink] */
CT_API ct_status ct_shrink_group(ct_group *group, int timeout_ms, ct_group **survivors);

/* Asks whether the job should stop.  A program that can stop early calls this function once per
 * step.  Returns 0 as long as the job should continue, 1 when the job should stop, or a negative
 * ct_status after a failure.  All ranks get the first 1 at the same step, and get 1 from then on.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if CT_DEADLINE is not a
 * number.
 *
 * The job should stop when ctrun or any rank has received SIGTERM, at the time of ctrun --deadline,
 * or shortly before Slurm ends the job.  Without ctrun, the deadline is $CT_DEADLINE, in seconds
 * since the epoch, if it is set, else 60 s before $SLURM_JOB_END_TIME.  If the first call comes
 * less than 120 s before $SLURM_JOB_END_TIME, the deadline is halfway between these two times.
 *
 * This function is a collective of the group: all ranks must call it, equally often.
 *
 * The first call and then every k-th call execute an all-reduce of 4 bytes.  Calls without an
 * all-reduce only check for failures and return at once.  At each all-reduce the ranks choose k
 * anew, so that the all-reduces take less than 1 % of the program's time.  The new k is at most
 * 100, at most twice the previous k, and so small that k steps like the last ones take at most 1 s.
 * Calls without an all-reduce are not numbered, so the numbers of collectives in messages and
 * traces differ from run to run.
 *
 * The first call replaces the default action of SIGTERM with a handler that only records the
 * signal.  If the program has already installed a handler for SIGTERM, that handler stays, and the
 * job stops after a SIGTERM to ctrun, but not after a SIGTERM to one rank. */
CT_API int ct_should_stop(ct_group *group);

/* ---- Collectives ------------------------------------------------------- */

/* All ranks of the group must call the same functions in the same order.  `count` is the number of
 * elements in the block that one rank sends or receives, and is the same on all ranks.  If work is
 * NULL, the call blocks.  Returns the statuses of a call on a group. */

/* Copies `buf` of root to `buf` of all other ranks.  `buf` has `count` elements on each rank.
 * [MPI_Bcast] */
CT_API ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                              ct_work **work);
/* Sets recv[i] at root to the reduction of all ranks' send[i] with `op`.  Both buffers have `count`
 * elements.  The call does not change `recv` of the other ranks.  [MPI_Reduce] */
CT_API ct_status ct_reduce(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, ct_op op, int root, ct_work **work);
/* Sets recv[i] on all ranks to the reduction of all ranks' send[i] with `op`.  The results have the
 * same bits on all ranks.  Both buffers have `count` elements.  [MPI_Allreduce] */
CT_API ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_op op, ct_work **work);
/* Reduces each block of `send` over all ranks.  Rank r gets the result of block r in `recv`.
 * `send` has ct_size() * recv_count elements, rank-major, and `recv` has recv_count elements.  The
 * call is in place if `recv` is this rank's block of `send`.  [MPI_Reduce_scatter_block] */
CT_API ct_status ct_reduce_scatter(ct_group *group, const void *send, void *recv, size_t recv_count,
                                   ct_dtype dtype, ct_op op, ct_work **work);
/* Collects `send` of all ranks in `recv` of root, rank-major.  `send` has `count` elements.  `recv`
 * has ct_size() * count elements and is used only at root.  The call is in place at root if `send`
 * is root's block of `recv`.  [MPI_Gather] */
CT_API ct_status ct_gather(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, int root, ct_work **work);
/* Collects `send` of all ranks in `recv` of all ranks, rank-major.  `send` has `count` elements,
 * and `recv` has ct_size() * count elements.  The call is in place if `send` is this rank's block
 * of `recv`.  [MPI_Allgather] */
CT_API ct_status ct_all_gather(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);
/* Copies block r of root's `send` to `recv` of rank r.  `send` has ct_size() * count elements,
 * rank-major, and is used only at root.  `recv` has `count` elements.  The call is in place at root
 * if `recv` is root's block of `send`.  [MPI_Scatter] */
CT_API ct_status ct_scatter(ct_group *group, const void *send, void *recv, size_t count,
                            ct_dtype dtype, int root, ct_work **work);
/* Copies block j of rank i's `send` to block i of rank j's `recv`.  Both buffers have ct_size() *
 * count elements, rank-major.  [MPI_Alltoall] */
CT_API ct_status ct_all_to_all(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);
/* Waits until all ranks have called this function.  No data is sent.  [MPI_Barrier] */
CT_API ct_status ct_barrier(ct_group *group, ct_work **work);
/* Waits like ct_barrier(), and reports the ranks that do not call this function.  If ranks are
 * missing after timeout_ms, rank 0 returns CT_ERR_TIMEOUT.  A negative timeout_ms means the group's
 * timeout.  The error message of rank 0 lists only the first missing rank, or up to 8 missing ranks
 * and the number of the others if wait_all is not 0.  Then the ranks that are not missing return
 * CT_ERR_PEER with rank 0's error message.  If rank 0 itself is missing, the other ranks return
 * CT_ERR_TIMEOUT at most a second later, or CT_ERR_PEER with the message of a rank whose time ended
 * first.  All messages go through rank 0, so this function is meant for debugging.  Returns
 * CT_ERR_INVALID if timeout_ms is 0.  [torch's monitored_barrier] */
CT_API ct_status ct_monitored_barrier(ct_group *group, int timeout_ms, int wait_all);

/* ---- Collectives with counts -------------------------------------------- */

/* These functions have arguments for the count and the displacement of each rank's block, in
 * elements.  The arrays have ct_size() values and are copied during the call.  A rank's array is
 * used only if the rank uses the buffer that the array describes: at root, or on all ranks.  If
 * displs is NULL, the blocks follow one another without gaps.  Returns the statuses of a call on a
 * group.  Returns CT_ERR_MISMATCH if a sender and a receiver pass different counts for a block.
 * Returns CT_ERR_INVALID if this rank passes two different counts for the block that it sends to
 * itself, or if an array of counts is NULL. */

/* Collects blocks of different sizes at root.  `send` has send_count elements.  Block r of `recv`
 * has recv_counts[r] elements and begins at element recv_displs[r].  [MPI_Gatherv] */
CT_API ct_status ct_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                             const size_t *recv_counts, const size_t *recv_displs, ct_dtype dtype,
                             int root, ct_work **work);
/* Collects blocks of different sizes on all ranks.  `send` has send_count elements.  Block r of
 * `recv` has recv_counts[r] elements and begins at element recv_displs[r].  All ranks must pass the
 * same recv_counts; recv_displs may differ.  [MPI_Allgatherv] */
CT_API ct_status ct_all_gather_v(ct_group *group, const void *send, size_t send_count, void *recv,
                                 const size_t *recv_counts, const size_t *recv_displs,
                                 ct_dtype dtype, ct_work **work);
/* Copies blocks of different sizes from root to all ranks.  Block r of root's `send` has
 * send_counts[r] elements and begins at element send_displs[r].  `recv` has recv_count elements.
 * [MPI_Scatterv] */
CT_API ct_status ct_scatter_v(ct_group *group, const void *send, const size_t *send_counts,
                              const size_t *send_displs, void *recv, size_t recv_count,
                              ct_dtype dtype, int root, ct_work **work);
/* Copies block j of rank i's `send` to block i of rank j's `recv`.  Block r of `send` has
 * send_counts[r] elements and begins at element send_displs[r].  Block r of `recv` has
 * recv_counts[r] elements and begins at element recv_displs[r].  [MPI_Alltoallv] */
CT_API ct_status ct_all_to_all_v(ct_group *group, const void *send, const size_t *send_counts,
                                 const size_t *send_displs, void *recv, const size_t *recv_counts,
                                 const size_t *recv_displs, ct_dtype dtype, ct_work **work);
/* Reduces each block of `send` over all ranks.  Rank r gets the result of block r, which has
 * recv_counts[r] elements.  The blocks of `send` follow one another without gaps.  All ranks must
 * pass the same recv_counts.  [MPI_Reduce_scatter] */
CT_API ct_status ct_reduce_scatter_v(ct_group *group, const void *send, void *recv,
                                     const size_t *recv_counts, ct_dtype dtype, ct_op op,
                                     ct_work **work);

/* ---- Collectives with lists --------------------------------------------- */

/* Instead of one large buffer, these functions use an array of ct_size() pointers.  Pointer r is
 * the address of the block of `count` elements that is sent to rank r or received from rank r.  The
 * array is copied during the call.  Returns the statuses of a call on a group.  Returns
 * CT_ERR_INVALID if an array that is used on this rank is NULL.  [torch.distributed's lists of
 * tensors] */

/* Does the same as ct_gather(), with a list of `recv` blocks at root. */
CT_API ct_status ct_gather_list(ct_group *group, const void *send, void *const *recv, size_t count,
                                ct_dtype dtype, int root, ct_work **work);
/* Does the same as ct_all_gather(), with a list of `recv` blocks. */
CT_API ct_status ct_all_gather_list(ct_group *group, const void *send, void *const *recv,
                                    size_t count, ct_dtype dtype, ct_work **work);
/* Does the same as ct_scatter(), with a list of `send` blocks at root. */
CT_API ct_status ct_scatter_list(ct_group *group, const void *const *send, void *recv, size_t count,
                                 ct_dtype dtype, int root, ct_work **work);
/* Does the same as ct_all_to_all(), with lists of `send` and `recv` blocks. */
CT_API ct_status ct_all_to_all_list(ct_group *group, const void *const *send, void *const *recv,
                                    size_t count, ct_dtype dtype, ct_work **work);
/* Does the same as ct_reduce_scatter(), with a list of `send` blocks. */
CT_API ct_status ct_reduce_scatter_list(ct_group *group, const void *const *send, void *recv,
                                        size_t count, ct_dtype dtype, ct_op op, ct_work **work);

/* ---- Combined collectives ----------------------------------------------- */

/* Starts to combine many small collectives into few calls.  Until ct_coalesce_end(), each
 * collective of this group with work == NULL is only checked and collected, and returns at once.
 * The library uses the buffers of collected calls until ct_coalesce_end() is done.  All ranks must
 * collect the same calls.
 *
 * While the group collects calls, these calls return CT_ERR_INVALID: a call with a work, and a call
 * that must return its result at once (ct_new_group() and similar functions, ct_mem_alloc(),
 * ct_should_stop()).  A call that is refused is not collected; the calls that were collected before
 * stay collected.  Sends and receives (ct_send() and similar functions) are not collected.  If the
 * group is destroyed before ct_coalesce_end(), none of the collected calls is executed.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if the group already collects
 * calls.  [ncclGroupStart] */
CT_API ct_status ct_coalesce_begin(ct_group *group);
/* Executes the collected calls in order.  Unless CT_ORDER is fast, the results have the same bits
 * as without ct_coalesce_begin().  With CT_ORDER=fast, the results of combined calls have the bits
 * of one call of the combined size.  Adjacent all-reduces, broadcasts, all-gathers or
 * reduce-scatters of up to 8 KiB each are combined into one call if they have the same operation,
 * dtype, op and root.  If work is NULL, the function blocks until all calls are done.  If work is
 * not NULL, the caller must call ct_wait() once for *work, which is NULL if no calls were
 * collected.  If a collected call fails, the later collected calls are not executed.  The group
 * stops collecting calls even if the function fails.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if the group does not collect
 * calls.  Returns CT_ERR_INVALID if a call writes memory that another call reads or writes, and
 * both are combined into one call; no collected call is executed then.  [ncclGroupEnd] */
CT_API ct_status ct_coalesce_end(ct_group *group, ct_work **work);

/* ---- Point-to-point ---------------------------------------------------- */

/* A receive gets a message by its sender and tag: messages with the same sender and tag are
 * received in the order in which they were sent.  `tag` is a number from 0 to INT_MAX.  `buf` has
 * `count` elements.
 *
 * A send or receive that times out does not break the group, and can be repeated.  If a send times
 * out, no later receive gets the message, unless all bytes of the message had arrived before the
 * timeout.  If a receive times out, the next receive with the same peer and tag gets the message,
 * even if a part of the message had already arrived.
 * Returns the statuses of a call on a group.  Returns CT_ERR_MISMATCH if the sender and the
 * receiver pass different counts or dtypes; in this case a send returns CT_OK if its message was so
 * small that it was sent at once. */

/* Sends a message to rank dst.  CT_OK means that the message was received, or that the receiver
 * stores the message for a later receive.  A send of more than 256 KiB blocks until the message is
 * received.  A send of up to 32 KiB does not wait for its receive, unless the receiver already
 * stores about 4 MiB of unreceived messages of this rank.  Whether a send of 32 KiB to 256 KiB
 * waits depends on the connection, and on one host on the room in the memory that the two ranks
 * share.  Returns CT_ERR_INVALID if dst is this rank and ct_irecv() has not posted a receive for
 * the message.  [MPI_Send] */
CT_API ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                         int tag);
/* Receives a message from rank src, which may be CT_ANY_SOURCE.  Sets *from to the rank of the
 * sender; from may be NULL.  The tag must not be CT_ANY_TAG, because ct_recv() does not return the
 * tag of the message.  To receive a message with any tag, call ct_probe() first, which returns the
 * tag.  [MPI_Recv] */
CT_API ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                         int *from);
/* Starts to send a message, and returns without waiting for the receiver.  The caller must call
 * ct_wait() once for *work.  Returns CT_ERR_INVALID if work is NULL.  [MPI_Isend] */
CT_API ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                          int tag, ct_work **work);
/* Posts a receive, and returns without waiting for the message.  For *work, the caller must call
 * either ct_wait() once, or ct_wait_from() once to learn the sender.  `src` may be CT_ANY_SOURCE.
 * Returns CT_ERR_INVALID if work is NULL.  [MPI_Irecv] */
CT_API ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src,
                          int tag, ct_work **work);

/* Describes a message that has not been received yet. */
typedef struct ct_message {
    int from; /* rank of the sender in the group */
    int tag;
    size_t count; /* number of elements */
    ct_dtype dtype;
} ct_message;

/* Waits for a message from src with this tag for which no receive was posted.  `src` may be
 * CT_ANY_SOURCE, and `tag` may be CT_ANY_TAG.  The function sets *message to a description of the
 * first such message; message may be NULL.  The function does not receive the message.  A later
 * ct_recv() with the from, tag, count and dtype of *message gets the message, unless the sender's
 * ct_send() has timed out before.  [MPI_Probe] */
CT_API ct_status ct_probe(ct_group *group, int src, int tag, ct_message *message);
/* Does the same as ct_probe() without waiting.  Sets *found to 1 if there is a message that
 * ct_probe() would find.  Otherwise sets *found to 0 and leaves *message unchanged.  Returns
 * CT_ERR_INVALID if found is NULL.  [MPI_Iprobe] */
CT_API ct_status ct_iprobe(ct_group *group, int src, int tag, int *found, ct_message *message);

/* Describes a send or a receive of ct_batch_isend_irecv(). */
typedef enum ct_p2p_kind { CT_P2P_SEND = 1, CT_P2P_RECV } ct_p2p_kind;
typedef struct ct_p2p {
    ct_p2p_kind kind;
    void *buf; /* a send only reads the buffer */
    size_t count;
    ct_dtype dtype;
    int peer; /* may be CT_ANY_SOURCE in a receive */
    int tag;
} ct_p2p;

/* Starts `count` sends and receives together.  The list `ops` may contain sends and receives in any
 * order.  No entry of the list waits for another entry, so an exchange in which each rank lists its
 * sends first can't block forever.  Messages are matched in the order of the list, as if each entry
 * were a separate call.  A peer may use separate calls instead of a list.  The array `ops` is
 * copied during the call.
 *
 * `works` is an array of `count` entries.  The caller must call ct_wait() or ct_wait_from() once
 * for each entry, in any order.  If nothing was started, all entries of `works` are NULL.  If
 * `works` is NULL, the call blocks until all sends and receives of the list are done, with one time
 * limit for all of them together.  If several of them fail, the blocking call returns the status of
 * the first entry in the list that failed.
 * Returns CT_ERR_INVALID if an entry is wrong; no entry is started then.  Returns CT_ERR_INVALID if
 * works is NULL and the receive for a send to this rank itself is neither in the list nor already
 * posted.  [torch.distributed.batch_isend_irecv; ncclGroupStart() ... ncclGroupEnd()] */
CT_API ct_status ct_batch_isend_irecv(ct_group *group, const ct_p2p *ops, int count,
                                      ct_work **works);

/* ---- Work -------------------------------------------------------------- */

/* A work is a handle of an asynchronous call.  If work is NULL, each function of this section
 * returns CT_OK.  A work must not be used after its group was destroyed. */

/* Waits until the asynchronous call is done, and frees work.  Must be called exactly once for each
 * work, even if the asynchronous call failed.  Returns the status of the asynchronous call.
 * Returns the statuses of a call on a group.  [MPI_Wait] */
CT_API ct_status ct_wait(ct_work *work);
/* Waits like ct_wait(), and sets *from to the sender of a received message.  `from` may be NULL.
 * Returns the status of the asynchronous call.  Returns the statuses of a call on a group. */
CT_API ct_status ct_wait_from(ct_work *work, int *from);
/* Waits like ct_wait(), but for at most timeout_ms.  A negative timeout_ms waits without a limit.
 * If the asynchronous call itself timed out, the function also returns CT_ERR_TIMEOUT, but frees
 * work; ct_test() never frees work.  Returns the status of the asynchronous call.  Returns the
 * statuses of a call on a group.  Returns CT_ERR_TIMEOUT if the asynchronous call is not done after
 * timeout_ms; work is not freed then. */
CT_API ct_status ct_wait_for(ct_work *work, int timeout_ms);
/* Sets *done to 1 if ct_wait() would return at once, else to 0.  The function does not free work.
 * Returns CT_ERR_INVALID if done is NULL, or in a child of fork().  [MPI_Test, which also frees] */
CT_API ct_status ct_test(ct_work *work, int *done);
/* Makes ct_watched() return `tag` once, when the asynchronous collective is done.  If the
 * collective is done already, only sets *done to 1.  Else sets *done to 0.  The work must still be
 * passed to ct_wait(), before or after ct_watched() has returned the tag.  Returns CT_ERR_INVALID
 * if tag or done is NULL, or in a child of fork().  Returns CT_ERR_UNSUPPORTED if work is a send or
 * receive. Returns CT_ERR_NOMEM if this rank is out of memory. */
CT_API ct_status ct_watch(ct_work *work, void *tag, int *done);
/* Waits until a collective of the group that ct_watch() watches is done, and sets *tag to its tag.
 * Meanwhile this thread executes the group's asynchronous collectives, so the library's own thread
 * need not be woken.  Several threads may wait.  They may do so while another thread calls
 * functions on the group.  Sets *tag to NULL after ct_watch_end(), or if the group has had no
 * asynchronous collective.  Returns CT_ERR_INVALID if tag is NULL, or if the group is not valid.
 * Returns CT_ERR_NOT_MEMBER if this rank is not a member. */
CT_API ct_status ct_watched(ct_group *group, void **tag);
/* Makes all threads return from ct_watched(), and lets none wait there any more.  These threads
 * must have returned before the group is destroyed.  Returns CT_ERR_INVALID if the group is not
 * valid. Returns CT_ERR_NOT_MEMBER if this rank is not a member. */
CT_API ct_status ct_watch_end(ct_group *group);

/* ---- Store: torch.distributed.Store ------------------------------------ */

/* Keys are strings, and values are arbitrary bytes.  A value that a call returns is malloc()ed, and
 * the caller must free() the value.  A value is followed by a 0 byte that *bytes does not count.
 * `timeout_ms` is the time in ms for which a call waits for a key; -1 means the store's own
 * timeout.  The store's own timeout also limits how long a call waits for an answer of the server.
 * A pointer to a result may be NULL, unless the function's comment says otherwise.  Each function
 * that creates a store sets *store, which the caller must close with ct_store_close().
 *
 * Returns CT_ERR_INVALID if the store or a key is NULL, if a value is NULL but its size is not 0,
 * or in a child of fork().  Returns CT_ERR_TIMEOUT if a time limit passed.  Returns CT_ERR_PEER if
 * the server is gone, or if an earlier call timed out before the server answered.  Returns
 * CT_ERR_NOMEM if this process is out of memory.  Returns CT_ERR_SYSTEM if a system call failed. */

/* Creates a client of the store at host:port, which uses PyTorch's TCPStore protocol.  If is_master
 * is not 0, this process also serves the store at that port.  The function tries to connect for at
 * most timeout_ms, which is also the timeout of the store's later calls.  A server admits every
 * program of the server's user on the server's host.  If the server has a secret, programs of other
 * users or on other hosts need this secret in CT_STORE_SECRET or CT_STORE_SECRET_FILE
 * (docs/protocol.md). */
CT_API ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms,
                              ct_store **store);
/* Counts this client as a worker.  In the process that serves the store, the function then waits
 * until world_size workers have been counted.  In other processes the function returns at once.  If
 * a PyTorch program serves the store, it can wait for C clients that call this function.  The time
 * limit is the store's own timeout.  Returns CT_ERR_UNSUPPORTED if the store does not have a
 * server.  [TCPStore(..., wait_for_workers=True)] */
CT_API ct_status ct_store_wait_workers(ct_store *store, int world_size);
/* Creates a client of a store in a file, which the processes of one host share.  The file has
 * PyTorch's FileStore format.  `timeout_ms` is the timeout of the store's calls.
 * [torch.distributed.FileStore] */
CT_API ct_status ct_store_file(const char *path, int timeout_ms, ct_store **store);
/* Creates a store in the memory of this process.  The threads of the process share the handle.  The
 * store's own timeout is unlimited.  [torch.distributed.HashStore] */
CT_API ct_status ct_store_hash(ct_store **store);
/* Creates a store that adds "prefix/" in front of every key and then uses the store `base`.  The
 * two stores may be closed in any order.  [torch.distributed.PrefixStore] */
CT_API ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store);
/* Contains the functions of a store that the caller implements, for example with another program's
 * key-value server or with a store object of Python.  The library may call these functions from
 * several threads at the same time.  Keys are strings, and `arg` is the argument of
 * ct_store_wrap().  The library never passes NULL as a pointer to a result.  A pointer to a value
 * of 0 bytes may be NULL.  Each function must behave like the function with a similar name below
 * (`set` like ct_store_set()), with two differences: a timeout_ms of -1 waits forever, and the
 * library frees the values that get and compare_set return.  Each value that get or compare_set
 * returns must be malloc()ed, with a 0 byte after it.  The pointers delete_key, append and close
 * may be NULL. */
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
    void (*close)(void *arg); /* called when the store's last user closes the store */
} ct_store_ops;
/* Creates a store that uses the functions in *ops.  The struct *ops is copied.  `timeout_ms` is the
 * timeout of the store's calls, and -1 waits forever.  On this store the queue functions,
 * ct_store_num_keys() and ct_store_list_keys() return CT_ERR_UNSUPPORTED.  Returns CT_ERR_INVALID
 * if ops->size is wrong, or if a required pointer is NULL.  [torch.distributed.Store as a base
 * class] */
CT_API ct_status ct_store_wrap(const ct_store_ops *ops, void *arg, int timeout_ms,
                               ct_store **store);
/* Returns the store at which the ranks of the default group met, or NULL before
 * ct_init_process_group().  The library owns the store: do not close it.  The store adds the prefix
 * ct/GENERATION/N/ to every key.  The prefix is new for each start of the ranks and for each init,
 * so a program does not find the keys of an earlier start.  To share keys with other programs, call
 * ct_store_tcp() with MASTER_ADDR and MASTER_PORT. */
CT_API ct_store *ct_store_default(void);
/* Closes the store and frees its handle.  `store` may be NULL.  If this process serves the store,
 * the server stops, unless a group or a store of ct_store_prefix() still uses it. */
CT_API ct_status ct_store_close(ct_store *store);

/* Sets the key to the value, which has `bytes` bytes.  [torch.distributed.Store.set] */
CT_API ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits until the key exists, and returns the key's value in *value.  `value` must not be NULL. */
CT_API ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                              size_t *bytes);
/* Adds delta to the key's value, which is a decimal number, and sets *result to the sum.  If the
 * key is missing, the function sets the value to delta. */
CT_API ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result);
/* Waits until all keys exist. */
CT_API ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms);
/* Sets *present to 1 if all keys exist now, else to 0.  `present` must not be NULL. */
CT_API ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present);
/* Sets the key's value to `desired` if the value equals `expected`, or if the key is missing and
 * `expected` is empty.  The function then sets *value to the key's value.  If the key is missing
 * and `expected` is not empty, the function sets *value to `expected`. */
CT_API ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                                      size_t expected_bytes, const void *desired,
                                      size_t desired_bytes, void **value, size_t *bytes);
/* Deletes the key.  Sets *deleted to 1 if the key existed, else to 0. */
CT_API ct_status ct_store_delete(ct_store *store, const char *key, int *deleted);
/* Sets *count to the number of all keys in the store.  `count` must not be NULL. */
CT_API ct_status ct_store_num_keys(ct_store *store, int64_t *count);
/* Appends bytes to the key's value.  If the key is missing, the function sets the value to these
 * bytes. */
CT_API ct_status ct_store_append(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits until all keys exist, and sets values[i] and bytes[i] for each key.  `values` and `bytes`
 * are arrays of `count` entries.  The caller must free() each value. */
CT_API ct_status ct_store_multi_get(ct_store *store, const char *const *keys, int count,
                                    int timeout_ms, void **values, size_t *bytes);
/* Sets `count` keys.  `values` and `bytes` are arrays of `count` entries. */
CT_API ct_status ct_store_multi_set(ct_store *store, const char *const *keys, int count,
                                    const void *const *values, const size_t *bytes);
/* Adds a value to the end of the queue with the name `key`.  Returns CT_ERR_UNSUPPORTED for a file
 * store or a store of ct_store_wrap(). */
CT_API ct_status ct_store_queue_push(ct_store *store, const char *key, const void *value,
                                     size_t bytes);
/* Removes the oldest value from the queue with the name `key`, and sets *value to the removed
 * value.  The function waits until the queue contains a value; a timeout_ms of 0 does not wait.
 * `value` must not be NULL.  Returns CT_ERR_UNSUPPORTED for a file store or a store of
 * ct_store_wrap(). */
CT_API ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                                    size_t *bytes);
/* Sets *length to the number of values in the queue with the name `key`.  `length` must not be
 * NULL.  Returns CT_ERR_UNSUPPORTED for a file store or a store of ct_store_wrap(). */
CT_API ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length);
/* Lists the keys that have the store's prefix, without the prefix.  *keys is an array of *count
 * strings in one malloc()ed block; free(*keys) frees the array and all strings.  `keys` and `count`
 * must not be NULL. */
CT_API ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count);

/* ---- Algorithms ----------------------------------------------------------- */

/* Returns the name of the i-th algorithm of an operation, as a constant string.  The algorithms are
 * sorted from best to worst.  `operation` is, for example, "all_reduce".  The name can be used in
 * CT_ALL_REDUCE and in ct_group_options.algorithms.  Returns NULL if the operation has no algorithm
 * i, or if there is no such operation. */
CT_API const char *ct_algorithm(const char *operation, int i);
/* Returns the algorithm of this rank's last collective on the group, or the path of a collective on
 * GPU memory (docs/gpu.md), as a constant string.  An asynchronous collective counts from the time
 * when it runs.  Returns NULL if this rank has not called a collective on the group. */
CT_API const char *ct_last_algorithm(const ct_group *group);

/* Records the place in the program of the call that is running on the group, for example
 * "train.py:88 (step)".  `place` has at most 95 bytes.  ctctl and ctrun show this place with the
 * call.  Without ct_note_place(), ctctl and ctrun show the C function that called libct.  The
 * function is for bindings of languages that do not use the stack of C: if a call takes long, a
 * thread of the binding records the place of the call.  ct_note_place() may be called while other
 * threads are in calls on the group, but only by one thread at a time.  Returns CT_ERR_INVALID if
 * place is NULL. */
CT_API ct_status ct_note_place(ct_group *group, const char *place);

/* ---- Calls of other libraries --------------------------------------------- */

/* An observer shows the calls of another library to ctrun and ctctl, which judge them as they judge
 * libct's calls.  The Python package observes PyTorch's gloo and NCCL in this way.  A thread of the
 * program waits with ct_observer_wait() until ctrun or ctctl asks, and then answers. */
typedef struct ct_observer ct_observer;

enum ct_observed_state {
    CT_OBSERVED_RUNS = 0, /* the call is in progress */
    CT_OBSERVED_DONE = 1,
    CT_OBSERVED_FAILED = 2 /* the call failed, and the program ends because of that */
};

/* A call of another library. */
struct ct_observed_call {
    /* its name in torch.distributed, such as "all_reduce" or "send"; other names count as "call" */
    const char *operation;
    unsigned long long number; /* of the collective in its group, from 1; 0 for a message */
    size_t count;              /* elements, if each rank must pass the same number; else 0 */
    int dtype;                 /* a ct_dtype; -1 if it is not known */
    int peer;                  /* root or message peer, a rank in the group; -1 for none or any */
    int tag;                   /* of a message */
    enum ct_observed_state state;
    unsigned long long age_ns; /* how long ago the call began */
    const char *place;         /* where the program made the call; NULL if not known */
};

struct ct_observed_group {
    const char *name;      /* at most 27 bytes */
    unsigned long long id; /* not 0; equal on all members, and different for each group */
    int rank, size;        /* this process's rank in the group, and the number of members */
    int call_count;        /* number of calls */
    const struct ct_observed_call *calls; /* the last calls, the oldest first */
};

enum ct_observed_phase {
    CT_OBSERVED_NO_GROUP = 0, /* the process has made no group yet */
    CT_OBSERVED_INIT = 1,     /* the process is making its first group */
    CT_OBSERVED_READY = 2,    /* the process has groups */
    CT_OBSERVED_LEFT = 3      /* the process has destroyed its groups */
};

/* What a process does now. */
struct ct_observation {
    size_t size; /* sizeof(struct ct_observation) */
    enum ct_observed_phase phase;
    int is_last;       /* 1 if the process ends; later answers are ignored */
    const char *place; /* where its main thread is, such as "train.py:88 (step)" */
    /* a memfd with the name "ct-stacks", which ctctl stack prints: the stacks of its threads, as
     * text that ends in a 0 byte; -1 for none */
    int stacks_fd;
    int group_count; /* number of groups; at most 24 are shown */
    const struct ct_observed_group *groups;
};

/* Opens an observer for this process.  `rank` is the rank of the process if no ctrun started it,
 * and is ignored otherwise.  The caller must close *observer.  Returns CT_ERR_INVALID if `observer`
 * is NULL, and CT_ERR_NOMEM or CT_ERR_SYSTEM if memory is exhausted. */
CT_API ct_status ct_observer_open(int rank, ct_observer **observer);
/* Waits until ctrun or ctctl asks.  A negative timeout_ms waits without a limit.  The processor
 * time that a thread uses from here until it waits again counts as the observer's, not as work of
 * the program.  Returns CT_ERR_TIMEOUT after timeout_ms, and CT_ERR_INVALID if `observer` is NULL.
 */
CT_API ct_status ct_observer_wait(ct_observer *observer, int timeout_ms);
/* Shows what the process does.  The memory of *seen may be freed after the call.  If several
 * processes of a worker have observers, the first one that has groups is shown.  Only one thread
 * may answer at a time.  Returns CT_ERR_INVALID if `observer` or `seen` is NULL, or if seen->size
 * or seen->phase is wrong. */
CT_API ct_status ct_observer_answer(ct_observer *observer, const struct ct_observation *seen);
/* Closes the observer.  No thread may be in a call on it.  Returns CT_ERR_INVALID if `observer` is
 * NULL. */
CT_API ct_status ct_observer_close(ct_observer *observer);

/* ---- Memory that peers reach -------------------------------------------- */

/* Allocates memory that the other ranks of this host read and write directly.  A collective whose
 * buffers are all in such memory needs no intermediate copies.  This function is a collective.
 * `bytes` must be the same on all ranks.  The memory is filled with zeros and begins at a page
 * boundary.  All its pages are allocated during the call.  The memory is valid until ct_mem_free(),
 * but at most until the root group of `group` is destroyed (ct_group_rank()).  Groups that were
 * created from `group` use the memory in the same way; other groups treat it as ordinary memory.
 * If several groups run calls at the same time with buffers in the same page, one of these calls
 * uses the page directly and the others copy.  If a call fails while another rank accesses the
 * call's buffers, all later calls copy, too.  Core dumps do not contain the memory.
 * Returns the statuses of a call on a group.  Returns CT_ERR_MISMATCH if the ranks pass different
 * `bytes`; the group is not broken then.  Returns CT_ERR_NOMEM if a rank can't get the memory; in
 * this case the call fails on all ranks, and the group is not broken.  [ncclMemAlloc;
 * MPI_Win_allocate_shared] */
CT_API ct_status ct_mem_alloc(ct_group *group, size_t bytes, void **ptr);
/* Frees memory that ct_mem_alloc(group, ...) returned.  This function is a collective.  `ptr` may
 * be NULL if it is NULL on all ranks.  If the group is broken, the function also frees the memory,
 * and returns the status of the failure that broke the group.  Returns the statuses of a call on a
 * group.  Returns CT_ERR_INVALID if ptr is not memory of ct_mem_alloc() in this group, or if the
 * group collects calls (ct_coalesce_begin()); nothing is freed then.  [ncclMemFree] */
CT_API ct_status ct_mem_free(ct_group *group, void *ptr);

/* ---- Spawn: torch.multiprocessing.spawn --------------------------------- */

/* Forks nprocs children with RANK, WORLD_SIZE and similar variables set.  Each child runs fn(rank,
 * nprocs, arg) and exits with the value that fn returns.  The parent waits for all children.  When
 * the first child fails, the parent sends SIGTERM to the other children, and SIGKILL 5 s later.
 * Call this function before this process calls CUDA and, if possible, before this process starts
 * threads.  Returns 0 if all children succeeded.  Returns the exit code of the first child that
 * failed, or 128 + signal if a signal killed this child; ct_last_error() says which rank failed.
 * Returns a negative ct_status if the children could not be started.  Returns CT_ERR_INVALID if
 * nprocs < 1 or fn is NULL.  Returns CT_ERR_NOMEM if this process is out of memory.  Returns
 * CT_ERR_SYSTEM if a system call failed.  [torch.multiprocessing.spawn] */
CT_API int ct_spawn(int nprocs, int (*fn)(int rank, int size, void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
