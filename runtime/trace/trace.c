/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - writes events to a ring.
 *
 * A writer takes a number by one atomic addition, marks the slot of that number as incomplete,
 * fills the slot, and marks it with the number.  Meanwhile the ring may have wrapped around.  If
 * another writer is still in the slot or has written a newer event to it, the writer drops its
 * event.  So an event may be missing, but never wrong. */
#include "runtime/trace/trace.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/clock.h"

uint64_t trace_events_for(size_t bytes, int rings)
{
    const size_t heads = TRACE_HEAD_BYTES + (size_t)rings * TRACE_RING_BYTES;
    const size_t each =
        bytes > heads ? (bytes - heads) / (size_t)rings / sizeof(struct trace_event) : 0;
    uint64_t events = 64;

    while (2 * events <= each)
        events *= 2;
    return events;
}

static size_t bytes_of_ring(uint64_t events)
{
    return TRACE_RING_BYTES + (size_t)events * sizeof(struct trace_event);
}

size_t trace_bytes(int rings, uint64_t events)
{
    return TRACE_HEAD_BYTES + (size_t)rings * bytes_of_ring(events);
}

struct trace_ring *trace_ring_at(void *memory, int ring, uint64_t events)
{
    return (struct trace_ring *)(void *)((char *)memory + TRACE_HEAD_BYTES
                                         + (size_t)ring * bytes_of_ring(events));
}

/* ---- Names ----------------------------------------------------------------- */

uint16_t trace_group(struct trace *trace, const char *name, int rank, int size)
{
    struct trace_group *group;
    uint32_t index;

    if (!trace)
        return TRACE_GROUPS;
    index = atomic_load(&trace->ring->groups_used);
    do
        if (index >= TRACE_GROUPS)
            return TRACE_GROUPS;
    while (!atomic_compare_exchange_weak(&trace->ring->groups_used, &index, index + 1));
    group = &trace->ring->groups[index];
    group->rank = rank;
    group->size = size;
    snprintf(group->name, sizeof group->name, "%s", name);
    atomic_store(&group->filled, 1);
    return (uint16_t)index;
}

/* Copies the algorithm's name to the ring, since only the traced program knows the names. */
static void name_algorithm(struct trace_ring *ring, const struct trace_what *what)
{
    const uint32_t operation = what->signature->operation, row = signature_row(what->signature);

    if (!what->algorithm || operation >= OPERATION_COUNT || row >= TRACE_ALGORITHMS
        || atomic_load_explicit(&ring->named[operation][row], memory_order_relaxed)
        || atomic_exchange(&ring->named[operation][row], 1))
        return;
    snprintf(ring->algorithms[operation][row], sizeof ring->algorithms[operation][row], "%s",
             what->algorithm);
}

/* ---- Events ---------------------------------------------------------------- */

/* Returns the thread's id.  A copy of the id avoids a system call per event. */
static int32_t this_thread(void)
{
    static _Thread_local int32_t known;

    if (!known)
        known = (int32_t)syscall(SYS_gettid); /* glibc has gettid() since 2.30 */
    return known;
}

/* Orders the mark before the fields, for readers in other processes.  ThreadSanitizer does not
 * support fences.  Threads of this process don't need the fence, because a writer takes a slot only
 * after the slot's last writer has finished. */
static void mark_fence(void)
{
#ifndef CT_THREAD_SANITIZER
    atomic_thread_fence(memory_order_release);
#endif
}

/* Marks the slot as incomplete.  Returns 1, or 0 if another writer is in the slot or has written a
 * newer event to it. */
static int take_slot(struct trace_event *event, uint64_t number)
{
    uint64_t mark = atomic_load_explicit(&event->mark, memory_order_relaxed);

    return mark <= number /* false for TRACE_HALF, which exceeds all numbers */
           && atomic_compare_exchange_strong_explicit(&event->mark, &mark, TRACE_HALF,
                                                      memory_order_acquire, memory_order_relaxed);
}

static void describe_call(struct trace_event *event, const struct trace_what *what)
{
    const struct signature *s = what->signature;

    event->operation = s->operation;
    event->dtype = s->dtype;
    event->op = (int8_t)s->op;
    event->algorithm = (uint8_t)signature_row(s);
}

uint64_t trace_begin_now(struct trace *trace, const struct trace_what *what)
{
    const uint64_t number = atomic_fetch_add_explicit(&trace->ring->next, 1, memory_order_relaxed);
    struct trace_event *event = &trace->events[number & trace->mask];

    if (what->signature)
        name_algorithm(trace->ring, what);
    if (!take_slot(event, number))
        return 0;
    mark_fence();
    event->begun_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC);
    atomic_store_explicit(&event->ended_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&event->id, what->id, memory_order_relaxed);
    event->bytes = what->bytes;
    atomic_store_explicit(&event->peer, what->peer, memory_order_relaxed);
    event->thread = this_thread();
    event->tag = what->tag;
    event->group = what->group;
    atomic_store_explicit(&event->status, 0, memory_order_relaxed);
    event->kind = what->kind;
    event->flags = what->flags;
    event->operation = event->dtype = event->algorithm = 0;
    event->op = -1;
    if (what->signature)
        describe_call(event, what);
    atomic_store_explicit(&event->mark, number + 1, memory_order_release);
    return number + 1;
}

/* Returns the event with this mark, or NULL if a newer event has overwritten it. */
static struct trace_event *still_there(struct trace *trace, uint64_t mark)
{
    struct trace_event *event = &trace->events[(mark - 1) & trace->mask];

    return atomic_load_explicit(&event->mark, memory_order_relaxed) == mark ? event : NULL;
}

void trace_end_now(struct trace *trace, uint64_t mark, ct_status status)
{
    struct trace_event *event = still_there(trace, mark);

    if (!event)
        return;
    atomic_store_explicit(&event->status, (int16_t)status, memory_order_relaxed);
    atomic_store_explicit(&event->ended_ns, (uint64_t)clock_ns(CLOCK_MONOTONIC),
                          memory_order_release);
}

void trace_received_now(struct trace *trace, uint64_t mark, ct_status status, int from,
                        uint64_t arrow)
{
    struct trace_event *event = still_there(trace, mark);

    if (!event)
        return;
    atomic_store_explicit(&event->peer, from, memory_order_relaxed);
    if (status == CT_OK)
        atomic_store_explicit(&event->id, arrow, memory_order_relaxed);
    trace_end_now(trace, mark, status);
}

/* The id has 52 bits, since JSON readers store numbers as doubles. */
uint64_t trace_arrow(const struct trace *trace, int sender, uint64_t number)
{
    uint64_t mixed = trace->token + (uint64_t)(uint32_t)sender * 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9u + number;
    mixed = (mixed ^ mixed >> 30) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    return (mixed & ((1ULL << 52) - 1)) | 1;
}
