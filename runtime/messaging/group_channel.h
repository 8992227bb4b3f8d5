/* SPDX-License-Identifier: Apache-2.0 */
/* group_channel.h - a group as messaging sees it: its members, and whether it has failed.
 *
 * A rank on which a group fails sends a FAILURE frame to each member to which it has a connection,
 * and each of them does the same, once.  So the failure floods along the connections that the
 * group's calls have used: a rank that waits for a message learns of it from the rank that it waits
 * for, or from one that is nearer.  No connection is opened for it.
 *
 * If the failed call is the one that made another group, that group fails too, since some member
 * has not made it. */
#ifndef RUNTIME_MESSAGING_GROUP_CHANNEL_H
#define RUNTIME_MESSAGING_GROUP_CHANNEL_H

#include "runtime/messaging/call_probe.h"
#include "runtime/messaging/messages.h"

/* The channel of the root group, with which the mesh ends; all other groups are made from it. */
#define FIRST_CHANNEL 2

/* The failure of a group, as ranks pass it on to each other.  A mismatch is a mismatch on all
 * ranks. Any other failure of one rank is CT_ERR_PEER on the others, who quote its sentence. */
#define FAILURE_WORDS 512 /* with the 0 at the end */

struct group_failure {
    uint64_t from_call; /* this call and all later ones fail; earlier ones can still succeed */
    int32_t status;     /* on the rank that failed first */
    int32_t rank;       /* which rank that is, in the mesh */
    struct blame blame; /* because of which rank; passed on unchanged.  BLAME_NONE: by itself */
    char words[FAILURE_WORDS];
};

/* A failure of this rank, in the words of ct_last_error(). */
struct group_failure failure_here(const struct mesh *mesh, ct_status status, uint64_t from_call);

/* The status that calls of this rank return; failure_quote() also sets ct_last_error(). */
ct_status failure_status(const struct mesh *mesh, const struct group_failure *failure);
ct_status failure_quote(const struct mesh *mesh, const struct group_failure *failure);
/* The blame with which this rank's calls fail. */
struct blame failure_blame(const struct mesh *mesh, const struct group_failure *failure);

struct channel {
    struct channel *next;
    struct channel *next_alike; /* with the same place in channels_by_id */
    uint64_t id;                /* even: of collectives; id + 1: of point-to-point */
    const int *ranks;           /* members, in the mesh */
    int size;
    uint64_t parent, born_in; /* the channel and call by which its group was made; or 0 */
    uint64_t first_call;      /* number of the group's first */
    /* It failed on another rank.  Called under the transport's lock: it may neither wait nor send.
     */
    void (*on_failure)(void *owner, const struct group_failure *failure);
    void *owner;
    int has_failed; /* and the other members were told */
    struct group_failure failure;
    struct recent_calls calls;
    _Atomic uint64_t last_call; /* its number */
    struct probe *probes;       /* of calls that this rank has yet to make */
    /* Not 0 if there may be unexpected messages of calls with a root. */
    _Atomic int unexpected;
    unsigned char *left; /* [size] 1: the member sent a goodbye; NULL: none did */
};

/* The memory is the caller's until it is closed.  A failure that came before is reported at once.
 */
void channel_open(struct mesh *mesh, struct channel *channel);
void channel_close(struct mesh *mesh, struct channel *channel); /* forgets its messages too */

/* Gives up all requests of the channel.  goodbye.c */
void channel_give_up(struct mesh *mesh, const struct channel *channel);

/* Sends a goodbye to the members, before channel_close().  goodbye.c */
void channel_goodbye(struct mesh *mesh, const struct channel *channel);

/* It failed on this rank: the members are told.  ct_last_error() stays as it was. */
void channel_fail(struct mesh *mesh, struct channel *channel, const struct group_failure *failure);

/* Under the lock: for arrivals.c and call_probe.c. */
struct unexpected;
struct messages;
struct channel *channel_find(const struct messages *m, uint64_t id);
/* It failed on some rank: its owner and the other members are told. */
void channel_fail_told(struct mesh *mesh, struct channel *channel,
                       const struct group_failure *failure);
void failure_arrived(struct mesh *mesh, struct unexpected *message); /* owns the message */
/* A frame of a group that has failed here: its sender is told. */
void answer_with_failure(struct mesh *mesh, const struct frame *frame, int from);

#endif
