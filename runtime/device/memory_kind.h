/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kind.h - kinds of memory that the host can't touch, and what can be done with them.
 *
 * The core asks whose a pointer is and goes by this table; cuda/ is one row of it (registry.c).  No
 * row: host memory, which the processor reads and writes itself.
 *
 * What fails has said why (ct_last_error()).  Waiting ends at the deadline (ms of clock_ms()) with
 * CT_ERR_TIMEOUT, and soon after *given_up (may be NULL) is set with CT_ERR_ABORTED. */
#ifndef RUNTIME_DEVICE_MEMORY_KIND_H
#define RUNTIME_DEVICE_MEMORY_KIND_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

struct fold; /* combine.h */
struct signature;
struct device; /* one GPU, as this process uses it; kept until the process ends */

/* Where a buffer is. */
struct place {
    const struct space *space; /* NULL: host memory */
    struct device *device;
};

/* Memory of one process that another maps: plain data that travels.  A driver exports whole
 * allocations: the pointer lies at base + offset. */
struct device_handle {
    unsigned char ipc[64];
    uint64_t base, bytes; /* the allocation, where its owner sees it */
    uint64_t id;          /* of the allocation: no other one of that process ever gets it */
    uint64_t offset;
    uint64_t process; /* drawn by each, for pids come again */
    int32_t pid;
    int32_t number; /* of its device, where its owner sees it */
};

/* What is folded, or copied where the fold has one source: each destination gets the same. */
struct fold_part {
    void *const *dst;
    const void *const *src; /* [sources of the fold] */
    int dsts;
    size_t count; /* elements of each; 0: there is nothing to do */
};

/* A word in host memory that the device knows (pin()), for a stream to wait until it is the value
 * or more, as signed numbers; or to write. */
struct word_op {
    _Atomic uint32_t *word;
    uint32_t value;
    int waits;
};

/* A stream of the caller's.  When the device comes to the work and the word, in host memory that it
 * knows (pin()), is not 0, it does nothing.  NULL: there is none. */
struct in_stream {
    void *stream;
    const _Atomic uint32_t *called_off;
};

/* Whether a stream is being captured into a graph, so that what is enqueued there runs later, as
 * often as the graph is launched. */
enum capture { NOT_CAPTURED, CAPTURED, CAPTURE_IS_VOID };

/* By which ranks find each other: made by one, plain data that travels to all. */
struct talk_id {
    unsigned char bytes[128];
};

enum copy_way { COPY_TO_HOST, COPY_FROM_HOST, COPY_BETWEEN_DEVICES, COPY_WAYS };

struct talk; /* one rank's end of what ranks with a device each have together */

/* A library that makes whole collectives between devices.  Nothing here waits: what was begun is
 * over when ask() says so.  One thread at a time for a talk, and all ranks make the same calls. */
struct talks {
    const char *name;
    /* Loads it, the first time.  Ranks can talk if all have the same version. */
    ct_status (*find)(int32_t *version);
    ct_status (*make_id)(struct talk_id *id);
    /* Begun; it fails on all ranks, or never ends, where one of them can't. */
    ct_status (*join)(struct device *device, const struct talk_id *id, int rank, int size,
                      struct talk **talk);
    /* Enqueued on a stream of the talk's own, so that two groups can't stand in each other's way;
     * or in that of the caller's which is captured (NULL: none): then it is over when it is in the
     * graph, and no stream is asked.  What it can make, see collectives/device/nccl/nccl.c. */
    ct_status (*start)(struct talk *talk, const struct signature *what, const void *send,
                       void *recv, void *captured);
    ct_status (*ask)(struct talk *talk, int *done);
    /* What the library itself calls it. */
    void *(*handle)(const struct talk *talk);
    /* What it still had to do ends, and it makes no more calls: the buffers are free again, and a
     * capture that has got half a call is void.  Whatever stands still, it waits for some seconds
     * at most; what takes longer goes on beside. */
    void (*give_up)(struct talk *talk);
    /* Ends it; one that is not sound, or was given up, by force.  It may wait for all that the
     * device has to do. */
    void (*leave)(struct talk *talk, int sound);
};

struct space {
    const char *name;
    int (*is_there)(void); /* 0: no pointer can be its own now; some ns */
    /* Whose memory it is; NULL: it is not of this kind.  From any thread, without enter(). */
    ct_status (*device_of)(const void *pointer, struct device **device);
    /* The one that is current on this thread; where there is none it fails. */
    ct_status (*current)(struct device **device);
    /* Around all that follows but id(): which device is current on this thread is the program's
     * business, and becomes again what it was; and nothing that is made between them spoils the
     * capture of a stream that it has nothing to do with. */
    ct_status (*enter)(void **before);
    void (*leave)(void *before);
    /* The same in every process that uses it, whatever number it has there. */
    void (*id)(const struct device *device, unsigned char id[16]);
    /* Of a stream of the caller's (not NULL). */
    ct_status (*capture_of)(struct device *device, void *stream, enum capture *capture);
    /* What a stream of the caller's has to do (NULL: the legacy default one) until now: noted when
     * a call is made, waited for when it runs, and forgotten in any case (it need not have come).
     * CT_ERR_INVALID: the stream is one that can't be waited for now. */
    ct_status (*mark)(struct device *device, void *stream, void **mark);
    ct_status (*wait_for)(struct device *device, void *mark, int64_t deadline,
                          const _Atomic int *given_up);
    void (*forget)(struct device *device, void *mark);
    /* Enqueued in a stream of the caller's, in this order.  CT_ERR_UNSUPPORTED: the driver can't.
     */
    ct_status (*words)(struct device *device, void *stream, const struct word_op *ops, int count);
    /* Whether that can be, by a word that is pinned and of no use: as of words(). */
    ct_status (*try_word)(struct device *device, void *word);
    /* What is captured in it becomes no graph. */
    void (*spoil)(struct device *device, void *stream);
    /* What comes later in a stream of the caller's (NULL: the legacy default one) waits until it is
     * let go; no more than that is done with the hold, by any thread, without enter().
     * CT_ERR_UNSUPPORTED: the driver can't.  CT_ERR_INVALID: as of mark(). */
    ct_status (*hold)(struct device *device, void *stream, void **hold);
    void (*let_go)(void *hold);
    /* Around a call in which a stream waits for words that other ranks write, from before they are
     * enqueued until it has passed them: what the driver might wait for it with is put off, as
     * while one is held.  From any thread, without enter(). */
    void (*call_enters_stream)(void);
    void (*call_leaves_stream)(void);
    /* Blocking copies between it and host memory. */
    ct_status (*to_host)(struct device *device, void *to, const void *from, size_t bytes);
    ct_status (*from_host)(struct device *device, void *to, const void *from, size_t bytes);
    /* Copies that are begun: those of one way one behind the other, beside those of other ways.
     * Between devices: both are this one's, or were taken.  They are done, and the buffers the
     * caller's again, when what mark_copies() noted of that way has come (wait_for(), forget());
     * end_copies() waits for all, after a failure. */
    ct_status (*begin_copy)(struct device *device, enum copy_way way, void *to, const void *from,
                            size_t bytes);
    ct_status (*mark_copies)(struct device *device, enum copy_way way, void **mark);
    void (*end_copies)(struct device *device);
    /* Host memory of the caller's, for copies that need no second one on their way; unpin() comes
     * before it is unmapped.  Where this fails the memory is as good as any, only slower.
     * CT_ERR_UNSUPPORTED: not now, a stream is held, and the driver may wait for it; unpin() says
     * that unless it may wait. */
    ct_status (*pin)(struct device *device, void *memory, size_t bytes);
    ct_status (*unpin)(struct device *device, void *memory, int may_wait);
    /* Memory there that other processes can map (give()).  When it is released, nothing may use it,
     * but others may still have it mapped: it is kept for the next one, of whatever group. */
    ct_status (*alloc)(struct device *device, size_t bytes, void **memory);
    /* CT_ERR_UNSUPPORTED: none is there, and to get some might be to wait for a stream that is
     * held.
     */
    ct_status (*alloc_now)(struct device *device, size_t bytes, void **memory);
    void (*release)(struct device *device, void *memory);
    /* Some of it with bytes that never change, by which others try whether they reach it
     * (peer_access_check.h); it stays the space's. */
    ct_status (*sample)(struct device *device, void **memory);
    /* Can this memory be given, by what is known of it?  From any thread, without enter(). */
    int (*can_give)(struct device *device, const void *pointer);
    /* `bytes` from the pointer on, for another process; CT_ERR_UNSUPPORTED: this memory can't be
     * mapped elsewhere. */
    ct_status (*give)(struct device *device, const void *pointer, size_t bytes,
                      struct device_handle *handle);
    /* Where that memory is in this process, for this device, though it be another's (if that can't
     * be reached, CT_ERR_UNSUPPORTED; if it can't now, CT_ERR_INVALID), until the user (any
     * address) says that it needs nothing any more that it took; then nothing enqueued may still be
     * at it.  The owner must live, and must not free it meanwhile. */
    ct_status (*take)(struct device *device, const struct device_handle *handle, const void *user,
                      void **pointer);
    void (*put)(const void *user); /* on all devices */
    /* Enqueued where it says, or (NULL) in a stream of libct's own, the parts in any order,
     * behind what was enqueued there before; the bits of combine_fold_to() for each.  No part may
     * read what another one writes.  scalars[sources]: by which combine_scale() is to multiply a
     * source first, of the fold's dtype; NULL, one of them or all: it is taken as it is.  finish()
     * waits for all that is in libct's own. */
    ct_status (*fold)(struct device *device, const struct in_stream *in, const struct fold *fold,
                      const void *const *scalars, const struct fold_part *parts, int count);
    ct_status (*finish)(struct device *device, int64_t deadline, const _Atomic int *given_up);
    const struct talks *talks; /* NULL: built without such a library */
};

int spaces_are_there(void); /* any */
/* Whose memory it is. */
ct_status place_of(const void *pointer, struct place *place);
/* The device that is current on this thread. */
ct_status place_current(struct place *place);

#endif
