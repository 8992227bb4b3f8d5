/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kind.h - kinds of memory that the host can't access, and the operations on them.
 *
 * Each kind of memory is a row of a table (registry.c), and cuda/ implements one row.  A buffer of
 * no such kind is host memory.
 *
 * A function that fails sets ct_last_error().  A wait returns CT_ERR_TIMEOUT at the deadline (ms of
 * clock_ms()).  It returns CT_ERR_ABORTED soon after *given_up is set; given_up may be NULL. */
#ifndef RUNTIME_DEVICE_MEMORY_KIND_H
#define RUNTIME_DEVICE_MEMORY_KIND_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

struct fold; /* combine.h */
struct signature;
struct device; /* one GPU of this process; kept until the process ends */

/* Where a buffer is. */
struct place {
    const struct space *space; /* NULL for host memory */
    struct device *device;
};

/* Memory of one process that another process can map.  The struct is plain data, to be sent.  A
 * driver exports whole allocations, so the exported pointer is base + offset. */
struct device_handle {
    unsigned char ipc[64];
    uint64_t base, bytes; /* the whole allocation, in the owner's addresses */
    uint64_t id;          /* id of the allocation; the owner never uses an id again */
    uint64_t offset;
    uint64_t process; /* a random number of the owner process, since pids are reused */
    int32_t pid;
    int32_t number; /* number of the device in the owner process */
};

/* One part of a fold, which is a reduction.  A fold with one source is a copy.  Each destination
 * gets the result.  An exchange is a copy with two sources and two destinations: the first
 * destination gets the first source, the second destination the second source.  A destination may
 * be the other source. */
struct fold_part {
    void *const *dst;
    const void *const *src; /* [number of sources of the fold] */
    int dsts;
    size_t count;  /* elements in each source and destination; may be 0 */
    int exchanges; /* 1 if this copy is an exchange */
};

/* An operation of a stream on a flag, which is a word in registered host memory.  The stream either
 * waits until flag - value, as a signed number, is 0 or more, or writes the value to the flag. */
struct flag_op {
    _Atomic uint32_t *flag;
    uint32_t value;
    int waits;
};

/* A stream of the caller.  `called_off` points to a word in registered host memory, or is NULL.  If
 * the word is not 0 when the device starts the work, the device does nothing. */
struct in_stream {
    void *stream;
    const _Atomic uint32_t *called_off;
};

/* The time at which the gates of an owner open at the latest (see close_gate() below).  The caller
 * keeps the struct until end_limit(). */
struct gate_limit {
    const void *owner;
    int64_t deadline;
    int is_over;
    int opened; /* number of the owner's gates that any limit has opened */
    struct gate_limit *next;
};

/* In ms.  A gate limit is so much later than the timeout of the call.  So a thread that is not
 * blocked in the driver notices the timeout before the limit opens the gates. */
enum { DRIVER_LATE_MS = 1000 };

/* Whether a stream is being captured into a graph.  Work enqueued in a captured stream runs at each
 * launch of the graph. */
enum capture { NOT_CAPTURED, CAPTURED, CAPTURE_IS_VOID };

/* The id by which the ranks of a communicator find each other.  One rank makes the id and sends it
 * to all ranks. */
struct comm_id {
    unsigned char bytes[128];
};

enum copy_way { COPY_TO_HOST, COPY_FROM_HOST, COPY_BETWEEN_DEVICES, COPY_WAYS };

struct device_comm; /* one rank of a communicator between devices */

/* A library of collectives between devices, such as NCCL.  No function waits for a call, and ask()
 * tells whether the call is done.  Only one thread at a time uses a communicator, and all its ranks
 * make the same calls. */
struct comm_library {
    const char *name;
    /* Loads the library at the first call, and returns its version.  All ranks need the same
     * version. */
    ct_status (*find)(int32_t *version);
    ct_status (*make_id)(struct comm_id *id);
    /* Starts to create a communicator.  If creation fails on one rank, it fails on all ranks or
     * never ends. */
    ct_status (*join)(struct device *device, const struct comm_id *id, int rank, int size,
                      struct device_comm **comm);
    /* Enqueues a call on the communicator's own stream, so that two groups do not block each other.
     * If `captured` is not NULL, enqueues the call in that captured stream of the caller instead.
     * Then the call is done when it is in the graph.  collectives/device/nccl/nccl.c lists the
     * calls. */
    ct_status (*start)(struct device_comm *comm, const struct signature *what, const void *send,
                       void *recv, void *captured);
    ct_status (*ask)(struct device_comm *comm, int *done);
    /* Returns the library's own handle. */
    void *(*handle)(const struct device_comm *comm);
    /* Ends the running calls, so that their buffers are free again, and invalidates a capture that
     * has only half of a call.  No calls may follow.  Waits for a few seconds at most; a longer end
     * continues in the background. */
    void (*give_up)(struct device_comm *comm);
    /* Destroys the communicator, by force if it is not sound or was given up.  May wait for all
     * work of the device. */
    void (*leave)(struct device_comm *comm, int sound);
};

/* How long a wait lasts.  The longer the wait has lasted, the less often it asks the driver. */
struct patience {
    int64_t deadline;            /* ms of clock_ms(); 0 to ask only once */
    const _Atomic int *given_up; /* the wait ends when *given_up is not 0; may be NULL */
    /* clock_us() at the start of the longer wait of which this wait is a part; 0 if this wait
     * starts now */
    int64_t since_us;
};

struct space {
    const char *name;
    /* Returns 0 if no pointer can be of this kind now.  Takes a few ns. */
    int (*is_there)(void);
    /* Sets *device to the device of the memory, or to NULL if the memory is not of this kind.  May
     * be called from any thread, without enter(). */
    ct_status (*device_of)(const void *pointer, struct device **device);
    /* Sets *device to the current device of this thread.  Fails if the thread has no current
     * device. */
    ct_status (*current)(struct device **device);
    /* enter() and leave() enclose all calls below except id() and those that say "without enter()".
     * leave() makes the program's current device of this thread current again.  No call between
     * enter() and leave() invalidates a capture of another stream. */
    ct_status (*enter)(void **before);
    void (*leave)(void *before);
    /* Writes an id that is the same in every process that uses the device, even if the processes
     * number their devices differently. */
    void (*id)(const struct device *device, unsigned char id[16]);
    /* Says whether a stream of the caller (not NULL) is being captured. */
    ct_status (*capture_of)(struct device *device, void *stream, enum capture *capture);
    /* mark() marks the work enqueued so far in a stream of the caller (NULL: the legacy default
     * stream), at the time of a call.  wait_for() waits for the mark when the call runs.  forget()
     * must always follow.  If there is nothing to wait for, mark() sets *mark to NULL.  It returns
     * CT_ERR_INVALID if the stream is being captured. */
    ct_status (*mark)(struct device *device, void *stream, void **mark);
    ct_status (*wait_for)(struct device *device, void *mark, struct patience wait);
    void (*forget)(struct device *device, void *mark);
    /* Enqueues the flag operations in a stream of the caller, in this order.  Returns
     * CT_ERR_UNSUPPORTED if the driver can't. */
    ct_status (*flag_ops)(struct device *device, void *stream, const struct flag_op *ops,
                          int count);
    /* Tries a flag operation with an unused flag in registered memory.  Fails like flag_ops(). */
    ct_status (*try_flag)(struct device *device, void *flag);
    /* Makes the capture of the stream invalid. */
    void (*spoil)(struct device *device, void *stream);
    /* close_gate() closes a stream gate.  Work enqueued later in a stream of the caller (NULL: the
     * legacy default stream) waits until open_gate().  Any thread calls open_gate() once, without
     * enter().  `owner` is any address; the limits of this owner apply to the gate.  Returns
     * CT_ERR_UNSUPPORTED if the driver can't or a limit of the owner is over.  Returns
     * CT_ERR_INVALID if the stream is being captured. */
    ct_status (*close_gate)(struct device *device, void *stream, const void *owner, void **gate);
    void (*open_gate)(void *gate);
    /* begin_limit() and end_limit() enclose the work of a thread for an owner of gates.  At the
     * deadline all gates of the owner open, even if the thread is blocked in a driver call.
     * set_limit() sets another deadline.  It returns 1 if any limit has opened a gate of the owner
     * too early.  Then everything that the owner's gates wait for has failed.  These functions may
     * be called from any thread, without enter(). */
    void (*begin_limit)(struct gate_limit *limit, const void *owner, int64_t deadline);
    int (*set_limit)(struct gate_limit *limit, int64_t deadline);
    /* Returns CT_ERR_TIMEOUT.  ct_last_error() says why the thread was blocked. */
    ct_status (*fail_late)(void);
    void (*end_limit)(struct gate_limit *limit);
    /* These two functions enclose a call in which a stream waits for flags that other ranks write.
     * The first is called before the waits are enqueued, the second after the stream has passed
     * them.  Driver calls that might wait for the stream are delayed meanwhile, as while a gate is
     * closed.  Both may be called from any thread, without enter(). */
    void (*call_enters_stream)(void);
    void (*call_leaves_stream)(void);
    /* Copy between the device and host memory, and return when the copy is done. */
    ct_status (*to_host)(struct device *device, void *to, const void *from, size_t bytes);
    ct_status (*from_host)(struct device *device, void *to, const void *from, size_t bytes);
    /* begin_copy() starts a copy in the background.  Copies with the same `way` run in order, and
     * copies with different ways run at the same time.  Between devices, each buffer must be in
     * memory of this device or mapped with take().  When the mark of mark_copies() is reached
     * (wait_for(), forget()), the copies are done and the buffers are free.  end_copies() waits for
     * all copies after a failure. */
    ct_status (*begin_copy)(struct device *device, enum copy_way way, void *to, const void *from,
                            size_t bytes);
    ct_status (*mark_copies)(struct device *device, enum copy_way way, void **mark);
    void (*end_copies)(struct device *device);
    /* register_host() registers (pins) host memory of the caller, so that the driver need not copy
     * the data twice.  The caller unregisters the memory before unmapping it.  After a failure
     * copies still work, but slower.  Returns CT_ERR_UNSUPPORTED if a gate is closed and the driver
     * might wait for the gate.  unregister_host() does the same unless may_wait is set. */
    ct_status (*register_host)(struct device *device, void *memory, size_t bytes);
    ct_status (*unregister_host)(struct device *device, void *memory, int may_wait);
    /* Gets device memory that other processes can map (give()).  After release() other processes
     * may still have the memory mapped, so it is kept for the next caller of any group. */
    ct_status (*alloc)(struct device *device, size_t bytes, void **memory);
    /* Gets idle memory like alloc().  Returns CT_ERR_UNSUPPORTED if no memory is idle and the
     * driver might wait for a stream at a gate. */
    ct_status (*alloc_now)(struct device *device, size_t bytes, void **memory);
    void (*release)(struct device *device, void *memory);
    /* Gets device memory with the test pattern, which never changes.  Other ranks read the pattern
     * in their peer-access check (peer_access_check.h).  The caller does not release the memory. */
    ct_status (*test_pattern)(struct device *device, void **memory);
    /* Returns 1 if this memory can be exported.  May be called from any thread, without enter(). */
    int (*can_give)(struct device *device, const void *pointer);
    /* Exports `bytes` from the pointer on.  Returns CT_ERR_UNSUPPORTED if other processes can't map
     * this memory. */
    ct_status (*give)(struct device *device, const void *pointer, size_t bytes,
                      struct device_handle *handle);
    /* Maps exported memory for this device until put(user).  `user` is any address that names the
     * user of the mapping.  No
     * enqueued work may use the memory when put() is called.  The memory may be on another device.
     * Returns CT_ERR_UNSUPPORTED without peer access, and CT_ERR_INVALID if the memory can't be
     * mapped now.  The process that owns the memory must not end or free the memory before
     * put(). */
    ct_status (*take)(struct device *device, const struct device_handle *handle, const void *user,
                      void **pointer);
    void (*put)(const void *user); /* unmaps the user's memory on all devices */
    /* fold() enqueues a fold in the stream of `in`, or in libct's own stream if `in` is NULL.  The
     * parts run in any order, so no part may read what another part writes.  The result has the
     * same bits as with combine_fold_to().  If scalars and scalars[i] are not NULL, source i is
     * first multiplied by scalars[i], of the fold's dtype, as with combine_scale().  finish() waits
     * for all work in libct's own stream. */
    ct_status (*fold)(struct device *device, const struct in_stream *in, const struct fold *fold,
                      const void *const *scalars, const struct fold_part *parts, int count);
    ct_status (*finish)(struct device *device, struct patience wait);
    const struct comm_library *comm_library; /* NULL if built without such a library */
};

/* Returns 1 if a pointer can be of any of these kinds now. */
int spaces_are_there(void);
/* Finds the kind and the device of a buffer. */
ct_status place_of(const void *pointer, struct place *place);
/* Finds the current device of this thread. */
ct_status place_current(struct place *place);

#endif
