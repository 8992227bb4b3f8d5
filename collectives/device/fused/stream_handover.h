/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.h - a fused call in the ranks' streams, which wait for each other by flags in
 * host memory, so that no host waits for a device (stream_handover.c). */
#ifndef COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H
#define COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H

#include <stdint.h>

#include "collectives/core/call.h"
#include "collectives/device/staged/staging_memory.h"

struct leaders;

/* What a group keeps for handing over. */
struct handover {
    struct host_memory memory; /* this rank's flags, which its stream and its leader wait for */
    char *parts;               /* all ranks' flags, one part behind the other, in this process */
    struct place pinned;       /* the device that has pinned all parts */
    int tried;                 /* all ranks have tried it */
    int on;                    /* every rank can; the same on all */
    int always;       /* not only for graphs: CT_HANDOVER=host on no rank, or there is one rank */
    int used;         /* by a call */
    int is_open;      /* of the call that is being enqueued a part is in the stream */
    int stands_still; /* a stream did after its call was given up: the words stay, and are raised */
    int calls_left;   /* in a stream that stands still */
    int captured;     /* a call is in a graph, which may be launched at any time */
    void *stream;     /* of the last call outside of a graph */
    uint32_t number;  /* number of that call; the same on all ranks */
};

/* Sets up hand-over.  All ranks call this function together in the group's first call.  They call
 * it again as long as a rank captures that call or has a stream that waits.  If a rank can't hand
 * calls over, this is not a failure. */
ct_status handover_begin(struct call *c, struct handover *handover, int always);
/* Called when the group ends.  Returns 1 if a stream may still reach the flags, so the flags and
 * the memory that is mapped for the stream's work stay.  Returns 0 if the caller must free the
 * flags with handover_end(). */
int handover_stays(ct_group *group, struct handover *handover);
void handover_end(ct_group *group, struct handover *handover);

/* Comes first, in the caller's thread: one stream at a time uses the flags. */
ct_status handover_turn(const struct call *c);
/* Says whether calls before were handed over in another stream than this one.  The group's first
 * call is over. */
int handover_is_in_another(const ct_group *group, const void *stream);
/* handover_open() and handover_close() enclose a leader's work, once all ranks have agreed on the
 * call.  A rank that is not a leader has no work.  Once a part of the call is in the stream, the
 * call must be closed, even if its work could not be enqueued.  Unless the call is in a graph, a
 * thread of the group waits for the call, and releases the stream if the group breaks. */
ct_status handover_open(struct call *c, const struct leaders *l);
ct_status handover_close(struct call *c, const struct leaders *l, ct_status status);
/* Gives this leader's CALLED_OFF; NULL: this rank is not a leader, or the group has one rank. */
const _Atomic uint32_t *handover_called_off(const ct_group *group);
/* After a failure of the call: makes its capture void.  Outside a capture a thread of the group
 * releases its stream. */
void handover_fail(struct call *c);

#endif
