/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kind.h - kinds of memory that the host can't access, and the operations on them.
 *
 * A buffer's kind is a row of a table (registry.c); cuda/ is one row.  No row: host memory.
 *
 * A failure sets ct_last_error().  A wait ends at the deadline (ms of clock_ms()) with
 * CT_ERR_TIMEOUT, and soon after *given_up (may be NULL) is set with CT_ERR_ABORTED. */
#ifndef RUNTIME_DEVICE_MEMORY_KIND_H
#define RUNTIME_DEVICE_MEMORY_KIND_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

struct fold; /* combine.h */
struct signature;
struct device; /* one GPU as this process uses it; kept until the process ends */

/* Where a buffer is. */
struct place {
    const struct space *space; /* NULL: host memory */
    struct device *device;
};

/* Memory of one process that another can map: plain data, to be sent.  A driver exports whole
 * allocations: the pointer is base + offset. */
struct device_handle {
    unsigned char ipc[64];
    uint64_t base, bytes; /* the allocation, as its owner sees it */
    uint64_t id;          /* of the allocation: unique in that process for ever */
    uint64_t offset;
    uint64_t process; /* a random number of that process, since pids are reused */
    int32_t pid;
    int32_t number; /* of its device, as its owner sees it */
};

/* One part of a fold, or of a copy if the fold has one source.  Each destination gets the result.
 * An exchange has two sources and two destinations, and each destination gets the source of its
 * number; a destination may be the other source. */
struct fold_part {
    void *const *dst;
    const void *const *src; /* [sources of the fold] */
    int dsts;
    size_t count;  /* elements of each; may be 0 */
    int exchanges; /* of a copy: it is an exchange */
};

/* A stream flag: a word in registered host memory.  A stream waits until it is the value or more,
 * as signed numbers; or writes it. */
struct flag_op {
    _Atomic uint32_t *flag;
    uint32_t value;
    int waits;
};

/* A stream of the caller.  If *called_off, a word in registered host memory, is not 0 when the
 * device begins the work, it does nothing.  NULL: there is no such word. */
struct in_stream {
    void *stream;
    const _Atomic uint32_t *called_off;
};

/* When the gates of an owner open at the latest.  The caller keeps it until end_limit(). */
struct gate_limit {
    const void *owner;
    int64_t deadline;
    int is_over;
    int opened; /* gates of the owner that this limit or another one has opened */
    struct gate_limit *next;
};

/* A thread that the driver does not keep notices a timeout before its gates open by their limit. */
enum { DRIVER_LATE_MS = 1000 };

/* Whether a stream is being captured into a graph: then the work enqueued there runs at each launch
 * of the graph. */
enum capture { NOT_CAPTURED, CAPTURED, CAPTURE_IS_VOID };

/* By which the ranks of a communicator find each other: one rank makes it and sends it to all. */
struct comm_id {
    unsigned char bytes[128];
};

enum copy_way { COPY_TO_HOST, COPY_FROM_HOST, COPY_BETWEEN_DEVICES, COPY_WAYS };

struct device_comm; /* one rank of a library's communicator of several devices */

/* A library of collectives between devices.  No function waits: ask() says when a call is done. One
 * thread at a time uses a communicator, and all its ranks make the same calls. */
struct comm_library {
    const char *name;
    /* Loads the library at the first call.  All ranks need the same version. */
    ct_status (*find)(int32_t *version);
    ct_status (*make_id)(struct comm_id *id);
    /* Begins to create a communicator.  If one rank fails, it fails on all or never ends. */
    ct_status (*join)(struct device *device, const struct comm_id *id, int rank, int size,
                      struct device_comm **comm);
    /* Enqueues a call on the communicator's own stream, so that two groups do not block each other;
     * or in the caller's captured stream (NULL: none), where it is done when it is in the graph.
     * Which calls it has: see collectives/device/nccl/nccl.c. */
    ct_status (*start)(struct device_comm *comm, const struct signature *what, const void *send,
                       void *recv, void *captured);
    ct_status (*ask)(struct device_comm *comm, int *done);
    /* The library's own handle. */
    void *(*handle)(const struct device_comm *comm);
    /* Ends the calls under way, so that their buffers are free again, and makes a capture with half
     * a call invalid.  No more calls follow.  It waits some seconds at most; a longer end goes on
     * in the background. */
    void (*give_up)(struct device_comm *comm);
    /* Destroys it: by force if it is not sound or was given up.  It may wait for all work of the
     * device. */
    void (*leave)(struct device_comm *comm, int sound);
};

/* How long, and how often the driver is asked: the longer it has been waited, the less often. */
struct patience {
    int64_t deadline;            /* clock_ms(); 0: asks once */
    const _Atomic int *given_up; /* not 0: the wait ends; NULL: nobody gives up */
    int64_t since_us; /* clock_us() when the wait began, of which this is a part; 0: now */
};

struct space {
    const char *name;
    int (*is_there)(void); /* 0: no pointer can be of this kind now; takes some ns */
    /* The device of the memory; NULL: it is not of this kind.  From any thread, without enter(). */
    ct_status (*device_of)(const void *pointer, struct device **device);
    /* The device that is current on this thread; it fails if there is none. */
    ct_status (*current)(struct device **device);
    /* Around all calls below but id().  leave() makes the program's current device of this thread
     * current again; and no call between them invalidates a capture of another stream. */
    ct_status (*enter)(void **before);
    void (*leave)(void *before);
    /* The same in every process that uses the device, whatever number it has there. */
    void (*id)(const struct device *device, unsigned char id[16]);
    /* Of a stream of the caller (not NULL). */
    ct_status (*capture_of)(struct device *device, void *stream, enum capture *capture);
    /* Marks the work enqueued until now in a stream of the caller (NULL: the legacy default one),
     * when a call is made.  wait_for() waits for it when the call runs; forget() is called in any
     * case.  *mark NULL: there is nothing to wait for.  CT_ERR_INVALID: the stream is being
     * captured. */
    ct_status (*mark)(struct device *device, void *stream, void **mark);
    ct_status (*wait_for)(struct device *device, void *mark, struct patience wait);
    void (*forget)(struct device *device, void *mark);
    /* Enqueues the flag operations in a stream of the caller, in this order.  CT_ERR_UNSUPPORTED:
     * the driver can't. */
    ct_status (*flag_ops)(struct device *device, void *stream, const struct flag_op *ops,
                          int count);
    /* Tries it with an unused flag in registered memory: fails as flag_ops() does. */
    ct_status (*try_flag)(struct device *device, void *flag);
    /* Makes the capture of the stream invalid. */
    void (*spoil)(struct device *device, void *stream);
    /* A stream gate: work enqueued later in a stream of the caller (NULL: the legacy default one)
     * waits until open_gate(), which any thread calls once, without enter().  owner: any address,
     * whose limits count for the gate.  CT_ERR_UNSUPPORTED: the driver can't, or a limit of the
     * owner is over.  CT_ERR_INVALID: as mark(). */
    ct_status (*close_gate)(struct device *device, void *stream, const void *owner, void **gate);
    void (*open_gate)(void *gate);
    /* Around what a thread does for an owner of gates.  At the deadline all gates of the owner
     * open, even if the thread stands in a driver call.  set_limit() sets another deadline.  It
     * returns 1 if a gate of the owner is open too early, by this limit or another one: then
     * everything that the owner's gates wait for has failed.  Any thread, without enter(). */
    void (*begin_limit)(struct gate_limit *limit, const void *owner, int64_t deadline);
    int (*set_limit)(struct gate_limit *limit, int64_t deadline);
    ct_status (*fail_late)(void); /* CT_ERR_TIMEOUT, and says what kept the thread */
    void (*end_limit)(struct gate_limit *limit);
    /* Around a call in which a stream waits for flags that other ranks write, from before the waits
     * are enqueued until the stream has passed them: driver calls that might wait for it are put
     * off, as while a gate is closed.  From any thread, without enter(). */
    void (*call_enters_stream)(void);
    void (*call_leaves_stream)(void);
    /* Blocking copies between the device and host memory. */
    ct_status (*to_host)(struct device *device, void *to, const void *from, size_t bytes);
    ct_status (*from_host)(struct device *device, void *to, const void *from, size_t bytes);
    /* Copies in the background: those of one way in order, at the same time as those of other ways.
     * Between devices: both buffers are this device's, or were taken.  They are done, and the
     * buffers are free, when the mark of mark_copies() is reached (wait_for(), forget());
     * end_copies() waits for all, after a failure. */
    ct_status (*begin_copy)(struct device *device, enum copy_way way, void *to, const void *from,
                            size_t bytes);
    ct_status (*mark_copies)(struct device *device, enum copy_way way, void **mark);
    void (*end_copies)(struct device *device);
    /* Registers (pins) host memory of the caller, so that the driver need not copy it twice.  The
     * caller unregisters it before it is unmapped.  After a failure copies work, too, but slower.
     * CT_ERR_UNSUPPORTED: a gate is closed, and the driver might wait for it; unregister_host()
     * says so unless may_wait is set. */
    ct_status (*register_host)(struct device *device, void *memory, size_t bytes);
    ct_status (*unregister_host)(struct device *device, void *memory, int may_wait);
    /* Device memory that other processes can map (give()).  Other processes may still have released
     * memory mapped, so it is kept for the next caller of any group. */
    ct_status (*alloc)(struct device *device, size_t bytes, void **memory);
    /* CT_ERR_UNSUPPORTED: none is idle, and to get some the driver might wait for a stream at a
     * gate.
     */
    ct_status (*alloc_now)(struct device *device, size_t bytes, void **memory);
    void (*release)(struct device *device, void *memory);
    /* Device memory with the test pattern, which never changes, for the peer-access check of other
     * ranks (peer_access_check.h).  The caller does not release it. */
    ct_status (*test_pattern)(struct device *device, void **memory);
    /* Whether this memory can be exported.  From any thread, without enter(). */
    int (*can_give)(struct device *device, const void *pointer);
    /* Exports `bytes` from the pointer on; CT_ERR_UNSUPPORTED: other processes can't map this
     * memory. */
    ct_status (*give)(struct device *device, const void *pointer, size_t bytes,
                      struct device_handle *handle);
    /* Maps exported memory for this device, until put() of the user (any address); then no enqueued
     * work may use it.  It may be another device's: CT_ERR_UNSUPPORTED without peer access,
     * CT_ERR_INVALID if it can't be mapped now.  The owner must live and not free it meanwhile. */
    ct_status (*take)(struct device *device, const struct device_handle *handle, const void *user,
                      void **pointer);
    void (*put)(const void *user); /* on all devices */
    /* Enqueues a fold in the stream of `in`, or (NULL) in libct's own: its parts in any order, with
     * the same bits as combine_fold_to().  No part may read what another one writes.
     * scalars[sources]: a source is first multiplied by its scalar, of the fold's dtype, as by
     * combine_scale(); NULL, one or all: it is not.  finish() waits for all work in libct's own
     * stream. */
    ct_status (*fold)(struct device *device, const struct in_stream *in, const struct fold *fold,
                      const void *const *scalars, const struct fold_part *parts, int count);
    ct_status (*finish)(struct device *device, struct patience wait);
    const struct comm_library *comm_library; /* NULL: built without such a library */
};

int spaces_are_there(void); /* of any kind */
/* The kind and device of a buffer. */
ct_status place_of(const void *pointer, struct place *place);
/* The device that is current on this thread. */
ct_status place_current(struct place *place);

#endif
