/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - what a rank did and when, for a timeline: each call, wait and message is an event
 * in a ring.
 *
 * ctrun --trace creates one inherited memory for the workers of its node (CT_TRACE_RING) and writes
 * it as JSON at the end of a round or after a crash (trace_json.h).  The memory has:
 *
 *     struct trace_head
 *     [rings]  struct trace_ring, and its events: one for each worker, the last one ctrun's
 *
 * Without ctrun, CT_TRACE=file makes a rank keep a ring of its own and write the file when its
 * group is destroyed.  If tracing is off, a hook is one branch.
 *
 * An event is written when something begins, and its end is added later, so the call in which a
 * rank was killed has no end.  The newest events overwrite the oldest.  Any thread writes: it takes
 * a number, and marks the event with it when all fields are written, so that a reader skips an
 * event that is half written.  The memory has no pointers. */
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
#define TRACE_NAME "ct-trace" /* of the memfd */
#define TRACE_GROUPS 48       /* of a worker, ever; further groups have no name */
#define TRACE_ALGORITHMS 12   /* of an operation */
#define TRACE_DEFAULT_BYTES ((size_t)64 << 20)

enum trace_kind {
    TRACE_CALL = 1, /* a collective; id: its sequence number */
    TRACE_MESSAGE,  /* ct_send, ct_recv; peer, tag */
    TRACE_SENT,     /* bytes for peer; id: of the arrow */
    TRACE_WAIT,     /* for peer; id: the arrow that ends here, 0: none */
    TRACE_INIT,     /* ct_init_process_group() */
    TRACE_ROUND,    /* ctrun's: id: restarts so far */
    TRACE_DIED,     /* ctrun's: peer is the rank, bytes its pid, tag is si_code, status the code */
    TRACE_STOPPING, /* ctrun's: stops all workers with signal `tag` */
    TRACE_KINDS
};

enum { TRACE_RECEIVES = 1 }; /* flags */

struct trace_event {
    _Atomic uint64_t mark;     /* its number + 1; 0 or TRACE_HALF: it is not complete */
    uint64_t begun_ns;         /* CLOCK_MONOTONIC of its host */
    _Atomic uint64_t ended_ns; /* 0: it had not ended */
    _Atomic uint64_t id;
    uint64_t bytes;
    _Atomic int32_t peer; /* rank in the mesh; -1: none, any.  Of a call: its root in the group */
    int32_t thread, tag;
    uint16_t group; /* index in groups[] */
    _Atomic int16_t status;
    uint8_t kind, operation, dtype, algorithm;
    int8_t op; /* -1: none */
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
    _Atomic int32_t pid; /* of the process that writes; 0: none has yet */
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
    uint64_t events; /* of each ring, a power of two */
};

#define TRACE_HEAD_BYTES ((size_t)4096)
#define TRACE_RING_BYTES ((size_t)12288)
_Static_assert(sizeof(struct trace_event) == 64, "an event is a cache line");
_Static_assert(sizeof(struct trace_ring) <= TRACE_RING_BYTES, "a ring's head has three pages");

/* How many events each of `rings` may have for all to fit into `bytes`: a power of two. */
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
    uint64_t token; /* of the mesh: both sides of a message have it */
    void *memory;   /* mapped by trace_open(); NULL: it belongs to `own` */
    size_t bytes;
    struct trace_own *own; /* without ctrun: where it is written */
};

/* *trace NULL: tracing is off, or ctrun's ring belongs to another process.  It fails only if
 * CT_TRACE can't be satisfied. */
ct_status trace_open(int rank, int size, struct trace **trace);
void trace_close(struct trace *trace); /* NULL is fine; writes the file of a rank without ctrun */

/* Both sides of a message know the token: it is part of the arrow's id. */
static inline void trace_token(struct trace *trace, const unsigned char token[16])
{
    if (trace)
        memcpy(&trace->token, token, sizeof trace->token);
}

/* Index for the events of a group. */
uint16_t trace_group(struct trace *trace, const char *name, int rank, int size);

/* An event as its hook describes it. */
struct trace_what {
    uint64_t id, bytes;
    int peer, tag;
    const struct signature *signature; /* NULL: there is none */
    const char *algorithm;             /* of a call */
    uint16_t group;
    uint8_t kind, flags;
};

/* Begins an event.  Returns its number + 1; 0: it could not be written. */
uint64_t trace_begin_now(struct trace *trace, const struct trace_what *what);
void trace_end_now(struct trace *trace, uint64_t event, ct_status status);
void trace_received_now(struct trace *trace, uint64_t event, ct_status status, int from,
                        uint64_t arrow);

/* The id of a message's arrow, from its sender and the number that the sender gave it: equal on
 * both sides. */
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
