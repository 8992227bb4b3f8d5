/* SPDX-License-Identifier: Apache-2.0 */
/* flight_recorder.h - records each call in the control page, so that ctctl and ctrun can show which
 * call a rank is in.
 *
 * Each group has a line with its current call.  The ring has the last CONTROL_CALLS calls of all
 * groups.  Recording a call costs about ten stores and a read of the coarse clock, but no system
 * call and no lock.  A build with CT_RECORD=OFF has no recorder, to measure the recorder's cost. */
#ifndef RUNTIME_MONITOR_FLIGHT_RECORDER_H
#define RUNTIME_MONITOR_FLIGHT_RECORDER_H

#include "runtime/monitor/control_page.h"
#include "runtime/types/call_signature.h"
#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"

/* A group's access to the control page. */
struct record {
    struct control_rank *own;
    struct control_group *line; /* NULL if all lines are taken; then only the ring is written */
    uint16_t index;             /* of the line in groups[]; CONTROL_GROUPS without a line */
};

void record_open(struct record *record, struct control *control, uint64_t id, const char *name,
                 int rank, int size);
void record_close(struct record *record); /* may be called twice */
/* Records the source line of the group's call in progress.  Only one thread may call this function
 * at a time. */
void record_place(struct record *record, const char *place);

#ifdef CT_NO_RECORD

static inline void record_begin(struct record *record, const struct signature *signature, int tag,
                                const void *caller, uint64_t now)
{
    (void)record, (void)signature, (void)tag, (void)caller, (void)now;
}
static inline void record_end(struct record *record, uint64_t seq, enum control_phase phase)
{
    (void)record, (void)seq, (void)phase;
}

#else

/* True if the line shows a collective in progress.  A message then leaves the line unchanged. */
static inline int record_in_collective(const struct control_group *line)
{
    return line->now.seq != 0 && line->now.phase == CONTROL_IN;
}

/* Records the start of a call.  `now` is the time of the coarse clock. */
static inline void record_begin(struct record *record, const struct signature *signature, int tag,
                                const void *caller, uint64_t now)
{
    struct control_rank *own = record->own;
    struct control_group *line = record->line;
    const struct control_call call = { .seq = signature->seq,
                                       .count = signature->count,
                                       .begun_ns = now,
                                       .operation = signature->operation,
                                       .dtype = signature->dtype,
                                       .op = (int8_t)signature->op,
                                       .phase = CONTROL_IN,
                                       .group = record->index,
                                       .root = (int16_t)signature->root };
    uint64_t at;
    uint32_t version;

    if (!own)
        return;
    at = atomic_fetch_add_explicit(&own->calls, 1, memory_order_relaxed);
    control_note_call(own, at, &call);
    if (!line)
        return;
    version = control_write(&line->version);
    line->bytes += call.count * dtype_sizes[call.dtype];
    if (call.seq || !record_in_collective(line)) {
        line->now = call;
        line->tag = tag;
        line->caller = (uint64_t)(uintptr_t)caller;
    }
    control_written(&line->version, version);
    if (call.seq)
        atomic_store_explicit(&line->begun, call.seq, memory_order_release);
}

/* Records the end or a new phase of a call.  `seq` is a collective's number, or 0 for a message. */
static inline void record_end(struct record *record, uint64_t seq, enum control_phase phase)
{
    struct control_group *line = record->line;
    uint32_t version;

    if (!line)
        return;
    version = control_write(&line->version);
    if (line->now.seq == seq)
        line->now.phase = (uint8_t)phase;
    control_written(&line->version, version);
    if (phase != CONTROL_IDLE)
        return;
    if (seq)
        atomic_store_explicit(&line->done, seq, memory_order_release);
    if (atomic_load_explicit(&record->own->blamed, memory_order_relaxed) != BLAME_NONE)
        control_forgive(record->own, atomic_load_explicit(&line->id, memory_order_relaxed),
                        line->now.begun_ns);
}

#endif

/* Records the start of a message, as a call with seq 0 and the peer as root. */
static inline void record_message(struct record *record, const struct signature *signature,
                                  int peer, int tag, int is_send, const void *caller)
{
    struct signature message = *signature;

    message.seq = 0;
    message.operation = is_send ? OPERATION_SEND : OPERATION_RECV;
    message.root = peer;
    record_begin(record, &message, tag, caller, clock_coarse_ns());
}

#endif
