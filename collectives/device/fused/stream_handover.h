/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.h - a fused call in the ranks' streams: which wait for each other by words in
 * host memory, so that no host waits for a device (stream_handover.c). */
#ifndef COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H
#define COLLECTIVES_DEVICE_FUSED_STREAM_HANDOVER_H

#include <stdint.h>

#include "collectives/core/call.h"
#include "collectives/device/staged/staging_memory.h"

struct leaders;

/* What a group has for it. */
struct handover {
    struct host_memory memory; /* our part: the words that our stream waits for, and its leader's */
    char *parts;               /* all ranks', one behind the other, as this process sees them */
    struct place pinned;       /* who knows all of them */
    int tried;                 /* by all */
    int on;                    /* every rank has them; the same on all */
    int always;                /* not only for graphs: CT_HANDOVER=stream on all ranks */
    int used;                  /* by a call */
    int waited_for;            /* by a stream, still, though its call was given up: they stay */
    int captured;              /* a call is in a graph, which may be launched at any time */
    void *worked; /* of several leaders: the mark behind this one's work for the call */
    void *stream; /* of the last call that is in no graph */
};

/* All ranks, in the group's first call, and again while one of them captures its own, or has a
 * stream that stands still; that it can't be is no failure. */
ct_status handover_begin(struct call *c, struct handover *handover, int always);
/* stream_handover_end.c.  At the group's end: what a stream may still come to, and what is mapped
 * for it, can't be taken from under it.  Where nothing stays, end() gives all back. */
int handover_stays(ct_group *group, const struct handover *handover);
void handover_end(ct_group *group, struct handover *handover);

/* First of all, in the caller's thread: the words are those of one stream at a time. */
void handover_turn(const struct call *c);
/* A leader's part of the call, in its stream: take(), what it has to do, give(). */
ct_status handover_take(struct call *c, const struct leaders *l);
ct_status handover_give(struct call *c, const struct leaders *l);
/* Every rank's, when all leaders have enqueued theirs: what comes later in its stream comes after
 * the call.  A thread of the group's waits for it, and lets the stream go on if the group breaks;
 * not in a graph. */
ct_status handover_follow(struct call *c, const struct leaders *l);
/* A word between a rank and a leader: 1 or 0.  The rank is ready; the leader has done it; and
 * between the leader and itself: it shall do nothing any more. */
enum { READY, OVER, CALLED_OFF, KINDS };
_Atomic uint32_t *handover_word(const ct_group *group, int rank, int leader, int kind);

/* stream_handover_watch.c: until the stream has passed what was enqueued for the call. */
ct_status handover_watch(const struct call *c);
/* Whether this leader's work is called off; NULL: it is none, or the group has one rank. */
const _Atomic uint32_t *handover_called_off(const ct_group *group);
/* Of all leaders: the group is broken. */
void handover_call_off(const ct_group *group);
/* What this rank's stream waits for as a leader (READY), or as a rank (OVER). */
void handover_let_go(const ct_group *group, int kind);

/* The call has failed: what this rank's stream waits for comes, when the group is broken. */
void handover_fail(struct call *c);

#endif
