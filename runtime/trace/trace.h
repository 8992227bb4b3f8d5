/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - records what a rank did and when, for a timeline.  Each call, wait and message is an
 * event in a ring buffer.
 *
 * ctrun --trace creates one memory file that the workers of its node inherit (CT_TRACE_RING). ctrun
 * writes the events as JSON at the end of a round or after a crash (trace_json.h).  The memory has:
 *
 *     struct trace_head
 *     [rings]  struct trace_ring and its events: one ring per worker, then the ring of ctrun
 *
 * Without ctrun, a rank with CT_TRACE=file creates a ring itself and writes the file when its group
 * is destroyed.  If tracing is off, a hook costs one branch.
 *
 * A writer adds an event at its start and sets the end time later, so the call in which a rank was
 * killed has no end time.  The newest events overwrite the oldest.  Any thread may write.  It takes
 * an event number, writes all fields, and then marks the event with the number, so that readers can
 * skip incomplete events.  The memory has no pointers. */
#ifndef RUNTIME_TRACE_TRACE_H
#define RUNTIME_TRACE_TRACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/shm/waiter.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/error.h"

#define TRACE_MAGIC 0x31727463u /* "ctr1" */
#define TRACE_VERSION 2
#define TRACE_NAME "ct-trace" /* the memfd's name */
#define TRACE_GROUPS 48       /* a worker's first groups, which have names in the trace */
#define TRACE_ALGORITHMS 12   /* most algorithms of an operation */
#define TRACE_DEFAULT_BYTES ((size_t)64 << 20)

enum trace_kind {
    TRACE_CALL = 1, /* a collective; `id` is its sequence number */
    TRACE_MESSAGE,  /* a ct_send() or ct_recv() with `peer` and `tag` */
    TRACE_SENT,     /* data is sent to `peer`; `id` is the arrow's id */
    TRACE_WAIT,     /* a wait for `peer`; `id` is the arrow that ends here, or 0 */
    TRACE_INIT,     /* a call of ct_init_process_group() */
    TRACE_ROUND,    /* by ctrun: a round */
    TRACE_DIED,     /* by ctrun: the end of rank `peer`, with its pid in `bytes`, its si_code in
                     * `tag`, and its exit code or signal in `status` */
    TRACE_STOPPING, /* by ctrun: ctrun stops all workers with signal `tag` */
    TRACE_KINDS
};

enum { TRACE_RECEIVES = 1 }; /* in `flags`: the message is a receive */

struct trace_event {
    _Atomic uint64_t mark;     /* event number + 1; 0 or TRACE_HALF while incomplete */
    uint64_t begun_ns;         /* CLOCK_MONOTONIC of the rank's host */
    _Atomic uint64_t ended_ns; /* 0 if the event has not ended */
    _Atomic uint64_t id;
    uint64_t bytes;
    /* rank in the mesh; for a collective, the root's rank in the group; -1 for none or any rank */
    _Atomic int32_t peer;
    int32_t thread, tag;
    uint16_t group; /* index in groups[]; TRACE_GROUPS for none */
    _Atomic int16_t status;
    uint8_t kind, operation, dtype, algorithm;
    int8_t op; /* ct_op; -1 if the call does not reduce */
    uint8_t flags;
};

#define TRACE_HALF UINT64_MAX

struct trace_group {
    _Atomic uint32_t filled;
    int32_t rank, size;
    char name[52];
};

struct trace_ring {
    int32_t rank;
    _Atomic int32_t pid; /* of the process that writes to the ring; 0 before the first write */
    _Atomic uint32_t groups_used;
    _Alignas(CACHE_PAIR) _Atomic uint64_t next; /* number of the next event */
    _Alignas(CACHE_PAIR) struct trace_group groups[TRACE_GROUPS];
    _Atomic uint8_t named[OPERATION_COUNT][TRACE_ALGORITHMS];
    char algorithms[OPERATION_COUNT][TRACE_ALGORITHMS][20];
};

struct trace_head {
    uint32_t magic, version;
    int32_t rings;
    uint32_t pad;
    uint64_t events; /* size of each ring in events, a power of two */
};

#define TRACE_HEAD_BYTES ((size_t)4096)
#define TRACE_RING_BYTES ((size_t)12288)
_Static_assert(sizeof(struct trace_event) == 64, "an event is a cache line");
_Static_assert(sizeof(struct trace_ring) <= TRACE_RING_BYTES, "a ring's head has three pages");

/* Returns the largest power of two, but at least 64, of events per ring for which `rings` rings fit
 * into `bytes`. */
uint64_t trace_events_for(size_t bytes, int rings);
size_t trace_bytes(int rings, uint64_t events);
struct trace_ring *trace_ring_at(void *memory, int ring, uint64_t events);
static inline struct trace_event *trace_events_of(struct trace_ring *ring)
{
    return (struct trace_event *)(void *)((char *)ring + TRACE_RING_BYTES);
}

/* ---- A rank's view --------------------------------------------------------- */

struct trace {
    struct trace_ring *ring;
    struct trace_event *events;
    uint64_t mask;
    uint64_t token; /* the mesh's token, the same on all ranks of the mesh */
    void *memory;   /* ctrun's memory, mapped by trace_open(); NULL without ctrun */
    size_t bytes;
    struct trace_own *own; /* the ring and file name of a rank without ctrun; else NULL */
};

/* Opens the ring.  Sets *trace to NULL if tracing is off or if ctrun's ring belongs to another
 * process.  Fails only if CT_TRACE is set but the ring for it can't be created. */
ct_status trace_open(int rank, int size, struct trace **trace);
void trace_close(struct trace *trace); /* without ctrun, writes the file; ignores NULL */

/* Sets the token from which trace_arrow() makes ids.  Sender and receiver have the same token. */
static inline void trace_token(struct trace *trace, const unsigned char token[16])
{
    if (trace)
        memcpy(&trace->token, token, sizeof trace->token);
}

/* Adds a group name to the ring.  Returns the index for the group's events, or TRACE_GROUPS if
 * tracing is off or all names are taken. */
uint16_t trace_group(struct trace *trace, const char *name, int rank, int size);

/* The arguments of trace_begin_now(): the fields of the event. */
struct trace_what {
    uint64_t id, bytes;
    int peer, tag;
    const struct signature *signature; /* of the call; NULL if the event is not a call */
    const char *algorithm;             /* name of the collective's algorithm, or NULL */
    uint16_t group;
    uint8_t kind, flags;
};

/* Writes an event that begins now.  Returns the event's number + 1, or 0 if the event was dropped
 * because another thread was writing to its slot. */
uint64_t trace_begin_now(struct trace *trace, const struct trace_what *what);
void trace_end_now(struct trace *trace, uint64_t event, ct_status status);
void trace_received_now(struct trace *trace, uint64_t event, ct_status status, int from,
                        uint64_t arrow);

/* Returns the id of the arrow of a message.  Sender and receiver compute the same id, from the
 * sender's rank and the number that the sender gave the message. */
uint64_t trace_arrow(const struct trace *trace, int sender, uint64_t number);

static inline void trace_received(struct trace *trace, uint64_t event, ct_status status, int from,
                                  uint64_t arrow)
{
    if (__builtin_expect(event != 0, 0))
        trace_received_now(trace, event, status, from, arrow);
}

static inline void trace_end(struct trace *trace, uint64_t event, ct_status status)
{
    if (__builtin_expect(event != 0, 0))
        trace_end_now(trace, event, status);
}

static inline uint64_t trace_sent(struct trace *trace, int self, int to, int tag, size_t bytes,
                                  uint64_t number)
{
    if (__builtin_expect(trace == NULL, 1))
        return 0;
    return trace_begin_now(trace, &(struct trace_what){ .kind = TRACE_SENT,
                                                        .id = trace_arrow(trace, self, number),
                                                        .peer = to,
                                                        .tag = tag,
                                                        .bytes = bytes,
                                                        .group = TRACE_GROUPS });
}

static inline uint64_t trace_init(struct trace *trace)
{
    if (__builtin_expect(trace == NULL, 1))
        return 0;
    return trace_begin_now(
        trace, &(struct trace_what){ .kind = TRACE_INIT, .peer = -1, .group = TRACE_GROUPS });
}

static inline uint64_t trace_wait(struct trace *trace, int peer, size_t bytes)
{
    if (__builtin_expect(trace == NULL, 1))
        return 0;
    return trace_begin_now(
        trace, &(struct trace_what){
                   .kind = TRACE_WAIT, .peer = peer, .bytes = bytes, .group = TRACE_GROUPS });
}

static inline uint64_t trace_message(struct trace *trace, const struct signature *signature,
                                     uint16_t group, int peer, int tag, size_t bytes, int receives)
{
    if (__builtin_expect(trace == NULL, 1))
        return 0;
    return trace_begin_now(trace, &(struct trace_what){ .kind = TRACE_MESSAGE,
                                                        .signature = signature,
                                                        .group = group,
                                                        .peer = peer,
                                                        .tag = tag,
                                                        .bytes = bytes,
                                                        .flags = receives ? TRACE_RECEIVES : 0 });
}

#endif
