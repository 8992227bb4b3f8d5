/* SPDX-License-Identifier: Apache-2.0 */
/* ct.h - process groups, collectives and point-to-point for C programs.
 *
 * Start the program with ctrun, torchrun, mpirun or srun, or alone.  Call ct_init_process_group()
 * once, then call the same collectives in the same order on every rank.  Names and meanings are
 * those of torch.distributed, and those of the MPI standard where torch.distributed defines none.
 * A name in brackets at the end of a comment is a function of another library that is like this
 * one.
 *
 * These rules hold for all calls:
 *  - Counts are in elements, never in bytes, and may be 0.  Durations are in milliseconds.
 *    A buffer may be NULL if its count is 0, and has at most PTRDIFF_MAX bytes.
 *  - `root`, `peer`, `src`, `dst` are ranks in the group of the call.
 *  - A NULL group (CT_WORLD) is the default group.
 *  - Buffers stay the caller's.  If work == NULL, a call blocks, and the caller may use the buffers
 *    again when the call returns.  Otherwise the call returns at once, and the library uses the
 *    buffers until the work is done.  The caller must then call ct_wait() exactly once for *work.
 *  - All buffers of one call must be in host memory on all ranks, or in the memory of one GPU on
 *    each rank (ct_cuda.h has the rules for GPU memory).
 *  - A call is in place if send == recv, where the two buffers have the same size.  Where the sizes
 *    differ, a call is in place if the smaller buffer is the rank's own block of the larger buffer
 *    (each function says which block).  Any other overlap returns CT_ERR_INVALID, including an
 *    overlap of two blocks that are received.
 *  - Where only the root uses a buffer, the other ranks may pass NULL for that buffer.
 *  - Rank-major means that the block of rank 0 comes first, then the block of rank 1, and so on.
 *  - Threads may use different groups in parallel, but only one thread at a time may call functions
 *    on the same group.  The library does not notice two calls at the same time on one group: their
 *    results are wrong.
 *  - The library prints one line on stderr when ct_init_process_group() or
 *    ct_destroy_process_group() has waited for 5 s.  It also prints one line if a program ends
 *    with exit code 0 but did not wait for a call or did not destroy CT_WORLD.  CT_LOG=none turns
 * both lines off; CT_LOG=warn prints more.  The library never calls exit() or abort().  It starts
 * threads only when it needs them: at init a thread that makes connections, if ranks communicate
 * over sockets, and a thread that serves the store, if this rank hosts the store; later a thread
 * for asynchronous calls.  These threads block all signals.
 *
 * A call on a group returns these statuses besides CT_OK.  ct_last_error() says why.
 *  - CT_ERR_INVALID if an argument is wrong, if there is no default group, or in a child of fork().
 *    The call was refused and changed nothing.
 *  - CT_ERR_NOT_MEMBER if this rank is not a member of the group.  The call was refused, too.
 *  - CT_ERR_TIMEOUT if the time limit of the call passed (ct_set_timeout()).
 *  - CT_ERR_PEER if another rank died, left the group, or failed first.
 *  - CT_ERR_MISMATCH if the ranks called different operations, or the same one with another count,
 *    dtype, op or root.
 *  - CT_ERR_ABORTED if this rank called ct_abort().
 *  - CT_ERR_NOMEM if this rank is out of memory.
 *  - CT_ERR_SYSTEM if a system call failed.
 *  - CT_ERR_UNSUPPORTED if an algorithm that the program or the environment set can't do the call.
 *  - CT_ERR_CUDA if a CUDA call failed, on GPU memory.
 *  - CT_ERR_NCCL if an NCCL call failed, on GPU memory.
 *
 * What the other ranks get when the call of one rank fails:
 *  - The other ranks do not notice a call that was refused.  They wait until this rank calls
 *    correctly, or until their time limit passes.
 *  - Any other failure of a collective breaks the group.  After CT_ERR_MISMATCH all ranks get that
 *    status; a rank that has finished its part gets it from its next call.  After any other status
 *    the other ranks get CT_ERR_PEER, or CT_ERR_TIMEOUT if their own time limit passed first.  Each
 *    later call on the group returns the same status again.
 *  - A message that fails (ct_send() and similar functions) does not break the group.
 *
 * What must be freed:
 *  - The world must be destroyed with ct_destroy_process_group(CT_WORLD).  A group that was created
 *    from the world may be destroyed earlier; otherwise it ends with the world.  A group of
 *    ct_create_group() or ct_shrink_group() does not end with the world and must be destroyed.
 *  - Each work must be passed to ct_wait() before its group is destroyed.  Each store must be
 *    closed with ct_store_close(), except that of ct_store_default().  Values of a store must be
 *    freed with free().  Strings that the library returns must not be freed.
 *
 * The largest tag is INT_MAX (2147483647).  Only memory limits how many groups, works, sends and
 * receives exist at a time.
 *
 * These rules hold when processes fork, end and die:
 *  - After fork() the child keeps no connection and no port of its parent open.  In the child,
 *    every call on a group, work or store that was created before the fork returns CT_ERR_INVALID
 *    and changes nothing.  That includes a ct_destroy_process_group() by the program's atexit().
 *    ct_rank(), ct_size() and similar functions return what they return in the parent, and memory
 *    of ct_mem_alloc() can be read.  If the parent has a default group, the child can't initialize
 *    one; otherwise both may.  Ranks of ct_spawn() may initialize in any case.
 *  - A rank that ends without ct_destroy_process_group() counts as dead: each call of another rank
 *    that needs the dead rank returns CT_ERR_PEER.  If the dead rank hosted the store, the store is
 *    gone.
 *  - When a rank dies in a collective, some of the other ranks may get CT_OK and their result, and
 *    some may get CT_ERR_PEER.  Before the survivors continue, they must agree which step was the
 *    last, for example by an all_reduce with CT_MIN in the group that ct_shrink_group() created.
 *  - Under ctrun the survivors continue only with --on-failure=continue; otherwise ctrun ends them.
 *  - A broken CT_WORLD stays broken after ct_shrink_group().  ct_rank() and ct_size() of CT_WORLD
 *    return the old numbers.  Calls on CT_WORLD fail, including ct_new_group() and
 *    ct_should_stop().  Instead, use ct_new_group_with() with options.parent set to the survivors'
 *    group, and call ct_should_stop() on the survivors' group.  CT_WORLD must still be destroyed
 *    with ct_destroy_process_group().
 *  - After a restart by ctrun --max-restarts, ct_restart_count() returns the number of restarts (0
 *    if none).  It does not count the restarts of an elastic job after nodes joined
 *    or left.  The program
 *    continues from its checkpoint: rank 0 reads the step and broadcasts it. */
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

/* The list of all statuses, from which the enum, the names and the texts of ct_strerror() are
 * made. */
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

/* Returns the status in a few words, as a constant string.  ct_last_error() returns the whole error
 * message.  [ncclGetErrorString; MPI_Error_string] */
CT_API const char *ct_strerror(ct_status status);

/* Returns the error message of this thread's last failure.  The message contains the operation, its
 * number, the group, the rank, how long the call waited, and what to do.  It identifies other ranks
 * by their rank in the world, and the peer of a message also by its rank in the group.  Returns ""
 * before the first failure.  The library owns the string, which is valid until the next call of
 * this thread that fails.  [ncclGetLastError] */
CT_API const char *ct_last_error(void);

/* ---- Types ------------------------------------------------------------- */

typedef struct ct_group ct_group; /* ranks that call collectives together */
typedef struct ct_work ct_work;   /* an asynchronous call, until its ct_wait() */
typedef struct ct_store ct_store; /* keys and values with which ranks find each other */

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
    CT_BOOL,   /* one byte; any non-zero value is true, results are 0 or 1 */
    CT_C64,    /* two f32: real, imaginary */
    CT_C128,   /* two f64 */
    CT_F8E4M3, /* as torch.float8_e4m3fn: no infinity, overflow becomes NaN */
    CT_F8E5M2  /* as torch.float8_e5m2 */
} ct_dtype;

/* How a reduction combines elements.  Integers wrap around. f16, bf16 and both f8 types are
 * accumulated in f32 and rounded once.  AVG is the sum divided by the group's size; for integers
 * the quotient is rounded towards zero.  If an input of MIN or MAX is NaN, the result is NaN.  For
 * bool, SUM, MAX and BOR are "or"; PRODUCT, MIN and BAND are "and".  These combinations have no
 * meaning and return CT_ERR_INVALID: MIN and MAX of complex types, AVG of bool, and BAND, BOR and
 * BXOR of all types but integers and bool.  The order in which ranks are reduced is fixed
 * (CT_ORDER; docs/algorithms.md). */
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
 * these dtypes to CT_F32.  A conversion from CT_F32 rounds to the nearest value, ties to even.  A
 * value that is too large becomes infinity, or NaN in CT_F8E4M3.  A conversion to CT_F32 is exact.
 * `from` and `to` are arrays of `count` elements in host memory that must not overlap.  A group is
 * not needed.  Returns CT_ERR_INVALID for other dtypes, or if an array is NULL and count > 0.
 * [torch.Tensor.to] */
CT_API ct_status ct_convert(const void *from, ct_dtype from_dtype, void *to, ct_dtype to_dtype,
                            size_t count);

/* Creates an op that multiplies this rank's input by *scalar, then sums.  `scalar` points to one
 * element of dtype in host memory, which is copied.  Ranks may use different scalars.  Each rank
 * rounds its products to dtype before it sends them; the sum of the products is rounded once.  The
 * op is valid for this dtype, in this process, until ct_op_free().  Returns CT_ERR_INVALID if dtype
 * is neither floating nor complex, or if a pointer is NULL.  Returns CT_ERR_NOMEM if 256 such ops
 * exist.  [ncclRedOpCreatePreMulSum] */
CT_API ct_status ct_op_premul(const void *scalar, ct_dtype dtype, ct_op *op);
/* Frees an op of ct_op_premul().  A call that started before may still use the op.  Returns
 * CT_ERR_INVALID if op is not such an op, or was freed before.  [ncclRedOpDestroy] */
CT_API ct_status ct_op_free(ct_op op);

/* ---- Start and end ----------------------------------------------------- */

/* Initialize this struct with CT_INIT_OPTIONS_INIT.  The strings are read only during the call. */
typedef struct ct_init_options {
    size_t size;             /* sizeof(ct_init_options), set by the INIT macro */
    const char *init_method; /* "env://" (same as NULL), "tcp://host:port", "file:///path" */
    int rank;                /* -1 to read it from the environment */
    int world_size;          /* -1 to read it from the environment */
    /* "cpu" or its synonym "gloo"; "mpi" for collectives over the MPI that started the program
     * (docs/mpi.md); NULL to take CT_BACKEND if it is set, else "cpu" */
    const char *backend;
    /* time limit of init and of the group's calls; -1 for CT_TIMEOUT_MS or 30 min */
    int timeout_ms;
    ct_store *store; /* the store to meet at instead of init_method; stays the caller's */
} ct_init_options;
#define CT_INIT_OPTIONS_INIT                                  \
    {                                                         \
        sizeof(ct_init_options), NULL, -1, -1, NULL, -1, NULL \
    }

/* Joins the default group and returns when every rank has joined.  If options is NULL, all settings
 * come from the environment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or else the variables
 * that mpirun, mpiexec or srun set.  Without any of these variables this process is alone, in a
 * world of one rank.
 *
 * After a failure the default group does not exist.  Returns CT_ERR_INVALID if a variable or option
 * is wrong, or if there is a default group already; the error message says which.  Returns
 * CT_ERR_TIMEOUT if ranks are missing; the error message lists them.  Returns CT_ERR_PEER if the
 * store is gone or a rank died.  Returns CT_ERR_MISMATCH if ranks have different world sizes, the
 * same rank, or different versions of libct.  Returns CT_ERR_UNSUPPORTED if libct does not have the
 * backend.  Returns CT_ERR_NOMEM if this rank is out of memory.  Returns CT_ERR_SYSTEM if a system
 * call failed.  [torch.distributed.init_process_group] */
CT_API ct_status ct_init_process_group(const ct_init_options *options);

/* Leaves a group and frees its handle.  Asynchronous collectives are completed first.  Messages of
 * ct_isend() and ct_irecv() without a ct_wait() are abandoned.  Works that ct_wait() has not freed
 * are freed and must not be used any more.  With CT_WORLD all groups that were created from the
 * default group end, too: their handles are freed and must not be used or destroyed.  A rank that
 * hosts the store serves it until all ranks have called this function or the group's timeout has
 * passed.  The function is safe on a broken group and on a non-member's handle.
 *
 * If a program ends with exit code 0 and has not destroyed CT_WORLD, or has not waited for a work,
 * the library prints a line on stderr.  CT_LOG=none, waits or error suppresses this line.
 *
 * The group is destroyed after CT_ERR_MISMATCH, too.  Returns CT_ERR_MISMATCH if the ranks made
 * different calls, but this rank had finished its part, so no call has returned the error.  For
 * example, each rank passed itself as the root of the last broadcast.
 * [torch.distributed.destroy_process_group] */
CT_API ct_status ct_destroy_process_group(ct_group *group);

/* Returns 1 if there is a default group, else 0.  [torch.distributed.is_initialized] */
CT_API int ct_is_initialized(void);
/* Returns this process's rank in the group, from 0 to ct_size() - 1.  Returns -1 if this process is
 * not a member, or if there is no default group.  [MPI_Comm_rank] */
CT_API int ct_rank(const ct_group *group);
/* Returns the number of ranks in the group, or -1 if there is no default group.  [MPI_Comm_size] */
CT_API int ct_size(const ct_group *group);
/* Returns this process's number among the ranks of its host (LOCAL_RANK); 0 if it is alone. */
CT_API int ct_local_rank(void);
/* Returns the number of restarts after a failure (ctrun --max-restarts); 0 at the first start. */
CT_API int ct_restart_count(void);
/* Returns the group's backend, "cpu" or "mpi", as a constant string, or "" if there is no default
 * group.  [torch.distributed.get_backend] */
CT_API const char *ct_backend(const ct_group *group);

/* Sets the time limit of each later call on the group, in ms.  An asynchronous collective keeps the
 * limit that was set when it started.  The time of an isend or irecv runs while ct_wait() waits for
 * it.  The error message of a CT_ERR_TIMEOUT contains the call, how long it waited, the limit, what
 * set the limit, and, if known, where the missing ranks are.  Returns CT_ERR_INVALID if timeout_ms
 * < 1. */
CT_API ct_status ct_set_timeout(ct_group *group, int timeout_ms);
/* Sets the time limit of the next call on the group only, in ms.  Returns CT_ERR_INVALID if
 * timeout_ms < 1. */
CT_API ct_status ct_set_next_timeout(ct_group *group, int timeout_ms);

/* ---- Groups ------------------------------------------------------------ */

/* Initialize this struct with CT_GROUP_OPTIONS_INIT.  The strings are read only during the call. */
typedef struct ct_group_options {
    size_t size;      /* sizeof(ct_group_options), set by the INIT macro */
    const char *name; /* for messages, at most 63 bytes; NULL for a generated name */
    /* the parent's, or NULL for the same; any other returns CT_ERR_UNSUPPORTED */
    const char *backend;
    int timeout_ms;   /* time limit of each call; -1 for the parent's limit */
    ct_group *parent; /* `ranks` are ranks in this group; NULL for the default group */
    int local_sync;   /* non-zero if only the members call the function */
    /* The algorithms that the group's calls use: "all_reduce=shm_one_shot:32K,shm_two_shot;
     * broadcast=shm".  A size is the largest number of bytes per rank for which the algorithm is
     * used.  All members must pass the same text.  If NULL, the environment chooses the algorithms
     * (CT_ALL_REDUCE and similar variables, CT_TUNING), or else the library chooses the best known
     * ones (docs/algorithms.md). */
    const char *algorithms;
} ct_group_options;
#define CT_GROUP_OPTIONS_INIT                                   \
    {                                                           \
        sizeof(ct_group_options), NULL, NULL, -1, NULL, 0, NULL \
    }

/* Creates a group of `count` ranks of the world.  The position in the list is the rank in the new
 * group.  Every rank of the world must call this function, in the same order and with the same
 * list. A rank that is not on the list gets a handle too: its ct_rank() is -1, and every operation
 * on the handle returns CT_ERR_NOT_MEMBER at once.  If each rank is in one of several groups, as
 * with rows and columns, one call of ct_split_group() creates all these groups.  A group may be
 * destroyed with ct_destroy_process_group() at any time, by each rank for itself, and ends at the
 * latest with the group from which it was created.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if a rank is listed twice, or
 * is outside of the world.  Returns CT_ERR_MISMATCH if the ranks passed different lists; the world
 * is not broken then.  [torch.distributed.new_group; MPI_Comm_create] */
CT_API ct_status ct_new_group(const int *ranks, int count, ct_group **group);
/* Creates a group like ct_new_group(), with options.  `ranks` are ranks of options.parent, and the
 * ranks of options.parent must call this function.  With options.local_sync only the ranks of the
 * list must call it.  If options is NULL, the function does the same as ct_new_group().
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if a rank is listed twice, is
 * outside of the parent, or if an option is wrong.  Returns CT_ERR_MISMATCH if the ranks passed
 * different lists; the parent is not broken then.  Returns CT_ERR_UNSUPPORTED if options.backend is
 * not the parent's.  [torch.distributed.new_group] */
CT_API ct_status ct_new_group_with(const int *ranks, int count, const ct_group_options *options,
                                   ct_group **group);

/* Creates groups of the ranks of `parent` that pass the same color.  A group is ordered by key,
 * then by rank in parent.  This is a collective of parent.  A rank with color < 0 is in no group
 * and gets a non-member's handle.  Returns the statuses of a call on a group.  [MPI_Comm_split] */
CT_API ct_status ct_split_group(ct_group *parent, int color, int key, ct_group **group);

/* Divides the world into groups of `size` consecutive ranks.  Each rank gets the group that it is
 * in.  This is a collective of the world.  Returns the statuses of a call on a group.  Returns
 * CT_ERR_INVALID if the world's size is not a multiple of `size`; all ranks get it.
 * [torch.distributed.new_subgroups] */
CT_API ct_status ct_new_subgroups(int size, ct_group **group);

/* Creates a group that is not part of the world; a default group is not needed.  `size` callers
 * (processes, or threads of one process) meet at `store`.  Each passes a different rank below
 * `size`.  The store stays the caller's.  If the caller closes the store before the group ends, the
 * group keeps the store open until then, since survivors would meet there.  Each group needs its
 * own keys: pass the store of a ct_store_prefix().  The group must be destroyed.  Returns
 * CT_ERR_INVALID if rank is not below size, if a pointer is NULL, or if an option is wrong. Returns
 * CT_ERR_TIMEOUT if callers are missing; the error message lists them.  Returns CT_ERR_PEER if the
 * store is gone or a caller died.  Returns CT_ERR_MISMATCH if callers pass different sizes, or the
 * same rank.  Returns CT_ERR_UNSUPPORTED if options.backend is not "cpu" or "gloo".  Returns
 * CT_ERR_NOMEM if this process is out of memory.  Returns CT_ERR_SYSTEM if a system call failed. */
CT_API ct_status ct_create_group(ct_store *store, int rank, int size,
                                 const ct_group_options *options, ct_group **group);

/* Returns the rank in the group of rank `global` of the group's root, or -1 if that rank is not a
 * member.  The root is the world, or a group of ct_create_group() or ct_shrink_group(). */
CT_API int ct_group_rank(const ct_group *group, int global);
/* Returns the rank in the group's root of a rank in the group, or -1 if there is no such rank.
 * [torch.distributed.get_global_rank; MPI_Group_translate_ranks] */
CT_API int ct_global_rank(const ct_group *group, int rank);
/* Returns an array of ct_size() ranks in the group's root, ordered by rank in the group, or NULL if
 * there is no default group.  The group owns the array. */
CT_API const int *ct_group_ranks(const ct_group *group);

/* Breaks the group.  Each call of this rank that waits in the group, and each later call, returns
 * CT_ERR_ABORTED.  Calls of the other members return CT_ERR_PEER.  Any thread may call this
 * function.  The group must still be destroyed with ct_destroy_process_group().  Returns
 * CT_ERR_NOT_MEMBER if this rank is not a member of the group.  [ncclCommAbort] */
CT_API ct_status ct_abort(ct_group *group);

/* Creates a group of the survivors after a member died (CT_ERR_PEER).  Each survivor must call this
 * function.  The survivors agree which of them are left, keep their order, and get a new group
 * (like a group of ct_create_group()) that shares no message with the old group.  From then on the
 * old group is broken on all survivors.  The new group must be destroyed, too.
 *
 * A member that is not known to be dead and does not call within timeout_ms (the group's
 * timeout if timeout_ms < 0) is left out and gets CT_ERR_TIMEOUT.  A member that dies while the
 * survivors agree is left out, too.  All survivors get the same group, or none does.  After that,
 * creating the group takes at most as long again, or 10 s if that is more.
 *
 * The survivors meet at the store at which the group was created.  ctrun's store outlives all
 * ranks. Returns CT_ERR_NOT_MEMBER if this rank is not a member of the group.  Returns
 * CT_ERR_TIMEOUT if this rank came too late, or if the survivors could not agree in time.  Returns
 * CT_ERR_PEER if the store is gone, for example because rank 0 hosted it and died.  Returns
 * CT_ERR_NOMEM if this rank is out of memory.  Returns CT_ERR_SYSTEM if a system call failed.
 * [MPI's ULFM: revoke, agree, shrink] */
CT_API ct_status ct_shrink_group(ct_group *group, int timeout_ms, ct_group **survivors);

/* Asks whether the job shall stop.  A program that can stop early calls this function once per
 * step. Returns 0 until the job shall stop, and 1 from then on, or a negative ct_status after a
 * failure. All ranks get the first 1 at the same step.  Returns the statuses of a call on a group.
 * Returns CT_ERR_INVALID if CT_DEADLINE is not a number.
 *
 * The job shall stop after SIGTERM to ctrun or to any rank, at ctrun --deadline, or shortly before
 * Slurm ends the job.  Without ctrun the deadline is $CT_DEADLINE, in seconds since the epoch, or
 * else 60 s before $SLURM_JOB_END_TIME.  If the first call comes less than 120 s before
 * $SLURM_JOB_END_TIME, the deadline is halfway between that call and the end.
 *
 * This is a collective of the group: all ranks must call it, equally often.  After the death of a
 * member it returns CT_ERR_PEER; then call it on the survivors' group.
 *
 * Only the first call and then every k-th call make an all-reduce, of 4 bytes.  The calls between
 * look for failures and return at once.  The ranks choose k anew each time, so that the all-reduces
 * take less than 1 % of the program's time.  k is at most 100, at most twice the k before, and so
 * small that k steps like the last ones take at most a second.  A program with steps that suddenly
 * become longer may stop up to 100 of them later.  A call without an all-reduce has no number, so
 * the numbers of collectives in messages and traces differ from run to run.
 *
 * The first call replaces the default action of SIGTERM with a handler that only records the
 * signal.  A handler that the program has installed stays: then SIGTERM to ctrun and ctrun's
 * deadline stop the job, but SIGTERM to one rank does not. */
CT_API int ct_should_stop(ct_group *group);

/* ---- Collectives ------------------------------------------------------- */

/* All ranks of the group call the same functions in the same order.  `count` is the number of
 * elements in the block that one rank sends or receives, and is the same on all ranks.  If work is
 * NULL, the call blocks.  Returns the statuses of a call on a group. */

/* Copies `buf` of root to `buf` of all other ranks.  It has `count` elements on each rank.
 * [MPI_Bcast] */
CT_API ct_status ct_broadcast(ct_group *group, void *buf, size_t count, ct_dtype dtype, int root,
                              ct_work **work);
/* Sets recv[i] at root to op over every rank's send[i].  Both buffers have `count` elements.  The
 * call does not change `recv` of the other ranks.  [MPI_Reduce] */
CT_API ct_status ct_reduce(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, ct_op op, int root, ct_work **work);
/* Sets recv[i] to op over every rank's send[i], with the same bits on all ranks.  Both buffers have
 * `count` elements.  [MPI_Allreduce] */
CT_API ct_status ct_all_reduce(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_op op, ct_work **work);
/* Reduces each block of `send` over all ranks.  Rank r gets the result of block r in `recv`.
 * `send` has ct_size() * recv_count elements, rank-major, and `recv` has recv_count elements.  The
 * call is in place if `recv` is block `rank` of `send`.  [MPI_Reduce_scatter_block] */
CT_API ct_status ct_reduce_scatter(ct_group *group, const void *send, void *recv, size_t recv_count,
                                   ct_dtype dtype, ct_op op, ct_work **work);
/* Collects `send` of all ranks in `recv` of root, rank-major.  `send` has `count` elements.  `recv`
 * has ct_size() * count elements and is used only at root.  The call is in place at root if `send`
 * is block `root` of `recv`.  [MPI_Gather] */
CT_API ct_status ct_gather(ct_group *group, const void *send, void *recv, size_t count,
                           ct_dtype dtype, int root, ct_work **work);
/* Collects `send` of all ranks in `recv` of all ranks, rank-major.  `send` has `count` elements,
 * and `recv` has ct_size() * count elements.  The call is in place if `send` is block `rank` of
 * `recv`. [MPI_Allgather] */
CT_API ct_status ct_all_gather(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);
/* Copies block r of root's `send` to `recv` of rank r.  `send` has ct_size() * count elements,
 * rank-major, and is used only at root.  `recv` has `count` elements.  The call is in place at root
 * if `recv` is block `root` of `send`.  [MPI_Scatter] */
CT_API ct_status ct_scatter(ct_group *group, const void *send, void *recv, size_t count,
                            ct_dtype dtype, int root, ct_work **work);
/* Copies block j of rank i's `send` to block i of rank j's `recv`.  Both buffers have ct_size() *
 * count elements, rank-major.  [MPI_Alltoall] */
CT_API ct_status ct_all_to_all(ct_group *group, const void *send, void *recv, size_t count,
                               ct_dtype dtype, ct_work **work);
/* Waits until all ranks have called this function.  No data is sent.  [MPI_Barrier] */
CT_API ct_status ct_barrier(ct_group *group, ct_work **work);
/* Waits like ct_barrier(), and identifies the ranks that do not come.  After timeout_ms (the
 * group's timeout if negative) rank 0 returns CT_ERR_TIMEOUT, and its error message lists the first
 * missing rank, or all missing ranks if wait_all is not 0.  The other ranks then return CT_ERR_PEER
 * with rank 0's error message.  If rank 0 itself is missing, the other ranks return CT_ERR_TIMEOUT
 * at most a second later.  All messages go through rank 0, so this function is for debugging.
 * Returns CT_ERR_INVALID if timeout_ms is 0.  [torch's monitored_barrier] */
CT_API ct_status ct_monitored_barrier(ct_group *group, int timeout_ms, int wait_all);

/* ---- Collectives with counts -------------------------------------------- */

/* These forms have a count and a displacement for each rank, in elements.  The arrays have
 * ct_size() values and are copied during the call.  They are used only where their buffer is used
 * (at root, or on all ranks).  If displs is NULL, the blocks follow one another without gaps.
 * Returns the statuses of a call on a group.  Returns CT_ERR_MISMATCH if a sender and a receiver
 * pass different counts for a block.  Returns CT_ERR_INVALID if the two counts that this rank
 * passes for its own block differ, or if an array of counts is NULL; only this rank gets the error,
 * and the group is not broken. */

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
 * send_counts[r] elements and begins at element send_displs[r], as in `recv`.  [MPI_Alltoallv] */
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

/* These forms have an array of ct_size() pointers instead of one large buffer.  Pointer r is the
 * address of a block of `count` elements for rank r or from rank r.  The array is copied during the
 * call.  Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if an array that is
 * used on this rank is NULL.  [torch.distributed's lists of tensors] */

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

/* Starts to combine many small collectives into few calls.  Until ct_coalesce_end() the collectives
 * of this group (with work == NULL) are only checked and collected, and return at once.  The
 * library uses their buffers until ct_coalesce_end() is done.  All ranks must collect the same
 * calls.
 *
 * These calls return CT_ERR_INVALID while the group collects: a call with a work, and a call that
 * must return its result at once (ct_new_group() and similar functions, ct_mem_alloc(),
 * ct_should_stop()).  A call that is refused is not in the list; the other calls still are.
 * Messages (ct_send() and similar functions) are not collected.  If the group is destroyed before
 * the end, none of the collected calls is made.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if the group collects already.
 * [ncclGroupStart] */
CT_API ct_status ct_coalesce_begin(ct_group *group);
/* Makes the collected calls in order.  Results and bits are the same as without collecting; with
 * CT_ORDER=fast the bits are those of a call of the combined size.  Adjacent all-reduces,
 * broadcasts, all-gathers or reduce-scatters of up to 8 KiB each are sent as one call if they have
 * the same operation, dtype, op and root.  If work == NULL, the function blocks until all calls are
 * done.  Otherwise the caller must call ct_wait() once for *work (*work is NULL if there was
 * nothing to do).  If a call fails, the later ones are not made.  The group always stops
 * collecting.
 * Returns the statuses of a call on a group.  Returns CT_ERR_INVALID, and makes
 * none of the calls, if the group does not collect, or if a call writes memory that another call of
 * the same message reads or writes.  [ncclGroupEnd] */
CT_API ct_status ct_coalesce_end(ct_group *group, ct_work **work);

/* ---- Point-to-point ---------------------------------------------------- */

/* A message is matched by (peer, tag): messages with the same sender and tag are received in the
 * order in which they were sent.  `tag` is a number from 0 to INT_MAX.  `buf` has `count` elements.
 * Any number of sends and receives may be outstanding.
 *
 * A timeout does not break the group, and the call can be repeated.  A send that timed out is
 * withdrawn: no later receive gets its message, unless all bytes of the message had arrived before.
 * A receive that timed out leaves its message to the next receive of that peer and tag, even if a
 * part of the message had arrived.
 * Returns the statuses of a call on a group.  Returns CT_ERR_MISMATCH if the receiver passes
 * another count or dtype than the sender; the receive returns it, and so does the send unless its
 * message was small enough to leave at once. */

/* Sends a message to rank dst.  CT_OK means that the message was received, or that the
 * receiver stores it until it calls a receive.  A
 * send of more than 256 KiB blocks until the message is received.  A send of up to 32 KiB does not
 * wait for its receive, unless the receiver already stores about 4 MiB of this rank's messages that
 * no receive has taken.  In between it depends on the connection.  Returns CT_ERR_INVALID if dst is
 * this rank and ct_irecv() has not posted a receive for the message.  [MPI_Send] */
CT_API ct_status ct_send(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                         int tag);
/* Receives a message from rank src, which may be CT_ANY_SOURCE.  Sets *from to the rank of the
 * sender; from may be NULL.  The tag must not be CT_ANY_TAG, since the function could not return
 * the tag of its message: call ct_probe() first.  [MPI_Recv] */
CT_API ct_status ct_recv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src, int tag,
                         int *from);
/* Starts to send a message, and returns without waiting for the receiver.  The caller must call
 * ct_wait() once for *work.  Returns CT_ERR_INVALID if work is NULL.  [MPI_Isend] */
CT_API ct_status ct_isend(ct_group *group, const void *buf, size_t count, ct_dtype dtype, int dst,
                          int tag, ct_work **work);
/* Posts a receive, and returns without waiting for the message.  The caller must call ct_wait(), or
 * ct_wait_from() to learn the sender, once for *work.  src may be CT_ANY_SOURCE.  Returns
 * CT_ERR_INVALID if work is NULL.  [MPI_Irecv] */
CT_API ct_status ct_irecv(ct_group *group, void *buf, size_t count, ct_dtype dtype, int src,
                          int tag, ct_work **work);

/* Describes a message that no receive has taken yet. */
typedef struct ct_message {
    int from; /* rank of the sender in the group */
    int tag;
    size_t count; /* number of elements */
    ct_dtype dtype;
} ct_message;

/* Waits until there is a message from src (may be CT_ANY_SOURCE) with this tag (may be CT_ANY_TAG)
 * for which no receive was posted.  Describes the first such message in *message (message may be
 * NULL).  The message is not received.  A ct_recv() with the from, tag, count and dtype of *message
 * gets the message, unless the sender's ct_send() timed out meanwhile, which withdraws it.
 * [MPI_Probe] */
CT_API ct_status ct_probe(ct_group *group, int src, int tag, ct_message *message);
/* Does the same as ct_probe() without waiting.  Sets *found to 1 if there is such a message.
 * Otherwise sets *found to 0 and leaves *message unchanged.  Returns CT_ERR_INVALID if found is
 * NULL.  [MPI_Iprobe] */
CT_API ct_status ct_iprobe(ct_group *group, int src, int tag, int *found, ct_message *message);

/* One of the sends and receives of ct_batch_isend_irecv(). */
typedef enum ct_p2p_kind { CT_P2P_SEND = 1, CT_P2P_RECV } ct_p2p_kind;
typedef struct ct_p2p {
    ct_p2p_kind kind;
    void *buf; /* a send only reads the buffer */
    size_t count;
    ct_dtype dtype;
    int peer; /* may be CT_ANY_SOURCE in a receive */
    int tag;
} ct_p2p;

/* Starts `count` sends and receives together, in any order.  None of them waits for another, so an
 * exchange in which each rank lists its sends first can't block forever.  Small messages to one
 * peer are sent in one write.  The messages match in the order of the list, in the same way as
 * separate calls; the other side need not use a list.  The array is copied during the call.
 *
 * `works` is an array of `count` entries.  The caller must call ct_wait() or ct_wait_from() once
 * for each entry, in any order.  All entries are NULL if nothing was started.  If works is NULL,
 * the call returns when all messages are done, with one time limit for all of them together.  It
 * waits for all of them, and then returns the failure of the first entry in the list that failed.
 * Returns CT_ERR_INVALID if an entry is wrong; no entry is started then.  Returns CT_ERR_INVALID if
 * works is NULL and a send to this rank itself has its receive neither in the list nor posted
 * before.  [torch.distributed.batch_isend_irecv; ncclGroupStart() ... ncclGroupEnd()] */
CT_API ct_status ct_batch_isend_irecv(ct_group *group, const ct_p2p *ops, int count,
                                      ct_work **works);

/* ---- Work -------------------------------------------------------------- */

/* A work is an asynchronous call.  If work is NULL, each function returns CT_OK.  A work must not
 * be used after its group was destroyed. */

/* Waits until the call is done, and frees work.  Must be called exactly once for each work, even if
 * the call failed.  Returns the status of the call.  Returns the statuses of a call on a group.
 * [MPI_Wait] */
CT_API ct_status ct_wait(ct_work *work);
/* Waits like ct_wait(), and sets *from to the sender of a received message.  `from` may be NULL.
 * Returns the status of the call.  Returns the statuses of a call on a group. */
CT_API ct_status ct_wait_from(ct_work *work, int *from);
/* Waits like ct_wait(), at most timeout_ms.  A negative timeout_ms waits without a limit.  If the
 * call itself timed out, work is freed; where that can happen, use ct_test() instead.  Returns the
 * status of the call.  Returns the statuses of a call on a group.  Returns CT_ERR_TIMEOUT if the
 * call is not done after timeout_ms; work is not freed then. */
CT_API ct_status ct_wait_for(ct_work *work, int timeout_ms);
/* Sets *done to 1 if ct_wait() would return at once, else to 0.  Frees nothing.  Returns
 * CT_ERR_INVALID if done is NULL, or in a child of fork().  [MPI_Test, which also frees] */
CT_API ct_status ct_test(ct_work *work, int *done);

/* ---- Store: torch.distributed.Store ------------------------------------ */

/* Keys are strings, and values are any bytes.  A value that a call returns is malloc()ed, with a 0
 * byte after it that *bytes does not count; the caller must free() the value.  `timeout_ms` is how
 * long to wait for a key, in ms; -1 is the store's own timeout.  The store's own timeout also
 * limits each answer of a server.  A pointer to a result may be NULL, unless a comment says
 * otherwise.  Each function that creates a store sets *store, which the caller must close with
 * ct_store_close().
 *
 * Returns CT_ERR_INVALID if the store, a key or a value that has bytes is NULL, or in a child of
 * fork().  Returns CT_ERR_TIMEOUT if a time limit passed.  Returns CT_ERR_PEER if the server is
 * gone, or did not answer an earlier call before a timeout.  Returns CT_ERR_NOMEM if this process
 * is out of memory.  Returns CT_ERR_SYSTEM if a system call failed. */

/* Creates a client of the store at host:port, which uses PyTorch's TCPStore protocol.  If is_master
 * is not 0, this process also serves the store there.  The function tries to connect until
 * timeout_ms has passed; timeout_ms is then the timeout of the store's calls.  A server admits
 * programs of the same user on the same host.  If the server has a secret, all other programs need
 * it in CT_STORE_SECRET or CT_STORE_SECRET_FILE (docs/protocol.md). */
CT_API ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms,
                              ct_store **store);
/* Counts this client as a worker.  In the process that serves the store, the function then waits
 * until world_size workers have been counted; in other processes it returns at once.  A master in
 * PyTorch waits for its C clients in this way.  The time limit is the store's own timeout.  The
 * error message of CT_ERR_TIMEOUT contains the number of workers that came.  Returns
 * CT_ERR_UNSUPPORTED for a store without a server. [TCPStore(..., wait_for_workers=True)] */
CT_API ct_status ct_store_wait_workers(ct_store *store, int world_size);
/* Creates a client of a store in a file, which the processes of one host share.  The file has
 * PyTorch's FileStore format.  `timeout_ms` is the timeout of its calls.
 * [torch.distributed.FileStore] */
CT_API ct_status ct_store_file(const char *path, int timeout_ms, ct_store **store);
/* Creates a store in the memory of this process.  The threads of the process share the handle.  The
 * store's own timeout is unlimited.  [torch.distributed.HashStore] */
CT_API ct_status ct_store_hash(ct_store **store);
/* Creates a store that adds "prefix/" in front of every key and uses the store `base`.  Either
 * store may be closed first.  [torch.distributed.PrefixStore] */
CT_API ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store);
/* The functions of a store that the caller implements, for example with another program's key-value
 * server or with a store object of Python.  Several threads may call them at the same time.  Keys
 * are strings, and `arg` is the argument of ct_store_wrap().  A pointer to a value or to a result
 * is never NULL.  The functions do what the functions ct_store_... with the same names below do,
 * with these differences.  A timeout_ms of -1 waits forever.  A value that get or compare_set
 * returns is malloc()ed with a 0 byte after it, and the library frees the value.  The pointers
 * delete_key, append and close may be NULL. */
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
    void (*close)(void *arg); /* called when the last holder has closed the store */
} ct_store_ops;
/* Creates a store that uses the functions in *ops, which is copied.  `timeout_ms` is the timeout of
 * the store's calls, and -1 waits forever.  On this store the queue functions,
 * ct_store_num_keys() and ct_store_list_keys() return CT_ERR_UNSUPPORTED.  Returns CT_ERR_INVALID
 * if ops->size is wrong, or if a pointer that is needed is NULL.  [torch.distributed.Store as a
 * base class] */
CT_API ct_status ct_store_wrap(const ct_store_ops *ops, void *arg, int timeout_ms,
                               ct_store **store);
/* Returns the store at which the default group met, or NULL before init.  The library owns the
 * store: do not close it.  The store adds a prefix, ct/GENERATION/N/, in front of every key.  The
 * prefix is new for each start of the workers and each init, so keys of an earlier start are not
 * found.  A program that uses the same store without the prefix does not find the keys, either.
 * For keys that other programs use, call ct_store_tcp() with MASTER_ADDR and MASTER_PORT. */
CT_API ct_store *ct_store_default(void);
/* Closes the store and frees its handle.  NULL is allowed.  If this process serves the store, the
 * service ends, unless a group or a store of ct_store_prefix() still uses it. */
CT_API ct_status ct_store_close(ct_store *store);

/* Sets the key to the value, which has `bytes` bytes.  [torch.distributed.Store.set] */
CT_API ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes);
/* Waits until the key exists, and returns its value in *value.  The error message of CT_ERR_TIMEOUT
 * contains the key.  `value` must not be NULL. */
CT_API ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                              size_t *bytes);
/* Adds delta to the key's value, which is a decimal number, and sets *result to the sum.  A missing
 * key counts as 0. */
CT_API ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result);
/* Waits until all keys exist. */
CT_API ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms);
/* Sets *present to 1 if all keys exist now, else to 0.  `present` must not be NULL. */
CT_API ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present);
/* Sets the key's value to `desired` if the value equals `expected`, or if the key is missing and
 * `expected` is empty.  Sets *value to the value that the key has afterwards.  If the key is
 * missing and `expected` is not empty, sets *value to `expected`. */
CT_API ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                                      size_t expected_bytes, const void *desired,
                                      size_t desired_bytes, void **value, size_t *bytes);
/* Deletes the key.  Sets *deleted to 1 if the key existed, else to 0. */
CT_API ct_status ct_store_delete(ct_store *store, const char *key, int *deleted);
/* Sets *count to the number of all keys in the store.  `count` must not be NULL. */
CT_API ct_status ct_store_num_keys(ct_store *store, int64_t *count);
/* Appends bytes to the key's value.  Sets the value if the key is missing. */
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
/* Removes the oldest value from the queue and returns it in *value.  Waits until the queue has a
 * value; a timeout_ms of 0 does not wait.  `value` must not be NULL.  Returns CT_ERR_UNSUPPORTED
 * for a file store or a store of ct_store_wrap(). */
CT_API ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                                    size_t *bytes);
/* Sets *length to the number of values in the queue.  `length` must not be NULL.  Returns
 * CT_ERR_UNSUPPORTED for a file store or a store of ct_store_wrap(). */
CT_API ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length);
/* Lists the keys under the store's prefix, without the prefix.  *keys has *count strings in one
 * malloc()ed block; free(*keys) frees all of them.  `keys` and `count` must not be NULL. */
CT_API ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count);

/* ---- Algorithms ----------------------------------------------------------- */

/* Returns the name of the i-th algorithm of an operation, best first, as a constant string.  The
 * operation is, for example, "all_reduce".  CT_ALL_REDUCE and ct_group_options.algorithms accept
 * the name.  Returns NULL if there are no more algorithms, or if there is no such operation. */
CT_API const char *ct_algorithm(const char *operation, int i);
/* Returns the algorithm of this rank's last collective on the group, or its path on GPU memory, as
 * a constant string.  Returns NULL if there was no collective. */
CT_API const char *ct_last_algorithm(const ct_group *group);

/* Records where the program made the call that is running on the group: "train.py:88 (step)", at
 * most 95 bytes. ctctl and ctrun show this place with the call.  Without this function they show
 * the C function that made the call.  The function is for bindings of languages that do not use the
 * stack of C: a thread of the binding records the place of a call that takes long.  One thread at a
 * time may call it, while other threads are in calls of the group.  Returns CT_ERR_INVALID if place
 * is NULL. */
CT_API ct_status ct_note_place(ct_group *group, const char *place);

/* ---- Memory that peers reach -------------------------------------------- */

/* Allocates memory that the other ranks of this host read and write directly: a collective with all
 * buffers in such memory needs no copies in between.  This function is a collective.  `bytes` must
 * be the same on all ranks.  The memory is filled with zeros, its pages are allocated now, and it
 * starts at a page boundary.  It is the caller's until ct_mem_free().  It ends at the latest with
 * the root group from which `group` was created (ct_destroy_process_group(CT_WORLD)).  Groups
 * created from `group` use the memory in the same way; to other groups it is ordinary memory.  If
 * calls of several groups at one time have buffers in the same page, one of the calls uses the page
 * directly and the others copy.  If a call failed while another rank accessed its buffers, all
 * later calls copy, too.  Core dumps do not contain the memory.
 * Returns the statuses of a call on a group.  Returns CT_ERR_MISMATCH if `bytes` differs; the group
 * is not broken then.  Returns CT_ERR_NOMEM if a rank can't get the memory; all ranks get an error,
 * none has the memory, and the group is not broken.  [ncclMemAlloc; MPI_Win_allocate_shared] */
CT_API ct_status ct_mem_alloc(ct_group *group, size_t bytes, void **ptr);
/* Frees memory that ct_mem_alloc(group, ...) returned.  This function is a collective. ptr may be
 * NULL, on all ranks.  In a broken group the memory is freed too, and the status says what broke
 * the group.  Returns the statuses of a call on a group.  Returns CT_ERR_INVALID if ptr is not such
 * memory of this group, or if the group collects calls (ct_coalesce_begin()); nothing is freed
 * then. [ncclMemFree] */
CT_API ct_status ct_mem_free(ct_group *group, void *ptr);

/* ---- Spawn: torch.multiprocessing.spawn --------------------------------- */

/* Forks nprocs children with RANK, WORLD_SIZE and similar variables set.  Each child runs fn(rank,
 * nprocs, arg) and exits with the value that fn returns.  The parent waits for all children; the
 * first that fails stops the others with SIGTERM, and 5 s later with SIGKILL.  Call this function
 * before this process's first CUDA call and, better, before its first thread.  Returns 0, or the
 * exit code of the first child that failed (128 + signal); ct_last_error() says which rank failed.
 * Returns a negative ct_status if the children could not be started.  Returns CT_ERR_INVALID if
 * nprocs < 1 or fn is NULL.  Returns CT_ERR_NOMEM if this process is out of memory.  Returns
 * CT_ERR_SYSTEM if a system call failed.  [torch.multiprocessing.spawn] */
CT_API int ct_spawn(int nprocs, int (*fn)(int rank, int size, void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
