/* SPDX-License-Identifier: Apache-2.0 */
/* group_channel.h - a group as its messages see it: who is in it, and whether it is broken.
 *
 * When it breaks on one rank, that rank tells the members it has an open wire to
 * (FRAME_BREAK), and each of them tells on, once.  So the news floods along the wires
 * that the group's calls have used: whoever waits for a message of the group hears it from
 * the one it waits for, or from somebody nearer.  No connection is opened for it.
 *
 * Broken in the call that made another group it breaks that one too: somebody did not make it. */
#ifndef RUNTIME_MESSAGING_GROUP_CHANNEL_H
#define RUNTIME_MESSAGING_GROUP_CHANNEL_H

#include "runtime/messaging/call_probe.h"
#include "runtime/messaging/failure_record.h"
#include "runtime/messaging/protocol.h"

/* Of the group that a mesh is made for, and ends with; all others are made from it. */
#define FIRST_CHANNEL 2

struct channel {
    struct channel *next;
    struct channel *next_alike; /* with the same place in channels_by_id */
    uint64_t id;                /* even: of collectives; id + 1: of point-to-point */
    const int *ranks;           /* members, in the mesh */
    int size;
    uint64_t parent, born_in; /* the channel and call by which its group was made; or 0 */
    uint64_t first_call;      /* number of the group's first */
    /* It broke on another rank.  Called under the messages' lock: it may neither wait nor send. */
    void (*on_failure)(void *owner, const struct group_failure *failure);
    void *owner;
    int has_failed; /* and the other members were told */
    struct group_failure failure;
    struct recent_calls calls;
    _Atomic uint64_t last_call; /* its number */
    struct question *questions; /* about later ones */
    unsigned char *left;        /* [size] who has destroyed it; NULL: nobody has */
};

/* The memory is the caller's until it is closed.  A failure that came before is reported at once.
 */
void channel_open(struct mesh *mesh, struct channel *channel);
void channel_close(struct mesh *mesh, struct channel *channel); /* forgets its messages too */

/* Of its messages that are under way nothing is left when this returns.  group_leave.c */
void channel_give_up(struct mesh *mesh, const struct channel *channel);

/* It is about to be closed: the others need not wait for this rank in it any more.  group_leave.c
 */
void channel_leave(struct mesh *mesh, const struct channel *channel);

/* It broke here.  The current sentence stays. */
void channel_fail(struct mesh *mesh, struct channel *channel, const struct group_failure *failure);

/* Under the lock: for protocol.c and call_probe.c. */
struct unexpected;
struct messages;
struct channel *channel_find(const struct messages *m, uint64_t id);
/* It is broken, by this rank or another: its owner hears it, and the others. */
void channel_fail_told(struct mesh *mesh, struct channel *channel,
                       const struct group_failure *failure);
void failure_arrived(struct mesh *mesh, struct unexpected *message); /* takes it over */
/* A message for a group that is broken here: its sender does not know yet. */
void answer_with_failure(struct mesh *mesh, const struct frame *frame, int from);

#endif
