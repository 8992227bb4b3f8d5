/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.h - runs a fused call in the ranks' streams.  The streams wait for each other by
 * flags in host memory, so no host waits for a device (stream_handover.c). */
#ifndef COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H
#define COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H

#include <stdint.h>

#include "collectives/core/call.h"
#include "collectives/device/staged/staging_memory.h"

struct leaders;

/* The state of a group for stream hand-over. */
struct handover {
    /* the memory of this rank's words, for which its stream and the leaders' streams wait */
    struct host_memory memory;
    /* the words of all ranks, one part after the other, as mapped in this process */
    char *parts;
    struct place pinned; /* the device for which all parts are pinned */
    int tried;           /* 1 if all ranks have tried handover_begin() */
    int on;              /* 1 if every rank can hand over; the same on all ranks */
    /* 1 if hand-over is not only for graphs: no rank has CT_HANDOVER=host, or there is one rank */
    int always;
    int used;    /* 1 if a call has been handed over */
    int is_open; /* 1 if a part of the call that is being enqueued is in the stream */
    /* 1 if a stream did not advance after its call was given up; then the words stay allocated, and
     * a thread raises them */
    int stands_still;
    int calls_left;  /* number of calls in a stream that does not advance */
    int captured;    /* 1 if a call is in a graph, which may be launched at any time */
    void *stream;    /* the stream of the last call outside of a graph */
    uint32_t number; /* number of the last call outside of a graph; the same on all ranks */
};

/* Sets up hand-over.  All ranks call this function together in the group's first call.  They call
 * it again as long as a rank captures that call or has a stream that waits.  If a rank can't hand
 * calls over, this is not a failure. */
ct_status handover_begin(struct call *c, struct handover *handover, int always);
/* Called when the group ends.  Returns 1 if a stream may still read or wait for the words.  Then
 * the words and the memory that is mapped for the stream's work must stay.  Returns 0 if the caller
 * must free the words with handover_end(). */
int handover_stays(ct_group *group, struct handover *handover);
void handover_end(ct_group *group, struct handover *handover);

/* Waits until the calls in another stream are done, since only one stream at a time may use the
 * words.  Called first, in the caller's thread. */
ct_status handover_turn(const struct call *c);
/* Returns 1 if earlier calls were handed over in another stream than this stream.  Must not be
 * called before the group's first call has ended. */
int handover_is_in_another(const ct_group *group, const void *stream);
/* handover_open() and handover_close() enclose a leader's work, once all ranks have agreed on the
 * call.  A rank that is not a leader has no work.  Once a part of the call is in the stream, the
 * call must be closed, even if its work could not be enqueued.  Unless the call is in a graph, a
 * thread of the group waits for the call, and releases the stream if the group breaks. */
ct_status handover_open(struct call *c, const struct leaders *l);
ct_status handover_close(struct call *c, const struct leaders *l, ct_status status);
/* Returns this leader's word CALLED_OFF.  Returns NULL if this rank is not a leader or the group
 * has one rank. */
const _Atomic uint32_t *handover_called_off(const ct_group *group);
/* After a failure of the call, makes its capture void.  Outside a capture, a thread of the group
 * releases the call's stream. */
void handover_fail(struct call *c);

#endif
