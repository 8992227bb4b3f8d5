/* SPDX-License-Identifier: Apache-2.0 */
/* group_channel.h - a group as messaging sees it: its members, and whether it has failed.
 *
 * A rank on which a group fails sends a FAILURE frame to each member to which it has a connection.
 * Each of these members does the same, once.  So the failure spreads along the connections that the
 * group's calls have used.  A rank that waits for a message learns of the failure from the rank
 * that it waits for, or earlier from another rank.  No socket is opened for a FAILURE frame.
 *
 * If the failed call is the call that creates another group, that group fails too, since some
 * member has not created it. */
#ifndef RUNTIME_MESSAGING_GROUP_CHANNEL_H
#define RUNTIME_MESSAGING_GROUP_CHANNEL_H

#include "runtime/messaging/call_probe.h"
#include "runtime/messaging/messages.h"

/* The channel of the root group.  All other groups are created from the root group, and the mesh
 * ends with it. */
#define FIRST_CHANNEL 2

/* The failure of a group, as ranks pass it on to each other.  If the first failed rank returned
 * CT_ERR_MISMATCH, all ranks return CT_ERR_MISMATCH.  After any other failure of one rank, the
 * other ranks return CT_ERR_PEER and quote the words of the failed rank. */
#define FAILURE_WORDS 512 /* in bytes, with the final 0 */

struct group_failure {
    uint64_t from_call; /* the first call that fails; earlier calls can still succeed */
    int32_t status;     /* the status on the rank that failed first */
    int32_t rank;       /* the rank in the mesh that failed first */
    /* The rank that caused the failure, passed on unchanged.  BLAME_NONE if the rank that failed
     * first caused it itself. */
    struct blame blame;
    char words[FAILURE_WORDS];
};

/* Returns a failure of this rank with the words of ct_last_error(). */
struct group_failure failure_here(const struct mesh *mesh, ct_status status, uint64_t from_call);

/* Returns the status with which this rank's calls fail.  failure_quote() sets ct_last_error() too.
 */
ct_status failure_status(const struct mesh *mesh, const struct group_failure *failure);
ct_status failure_quote(const struct mesh *mesh, const struct group_failure *failure);
/* Returns the blame with which this rank's calls fail. */
struct blame failure_blame(const struct mesh *mesh, const struct group_failure *failure);

struct channel {
    struct channel *next;
    struct channel *next_alike; /* the next channel in the same bucket of channels_by_id */
    uint64_t id;                /* even for collectives; id + 1 is for point-to-point messages */
    const int *ranks;           /* the members' ranks in the mesh */
    int size;
    uint64_t parent, born_in; /* the channel and call that created this group; or 0 */
    uint64_t first_call;      /* number of the first call of the group */
    /* Called when messaging learns that the group has failed.  It runs under the transport's lock,
     * so it may neither wait nor send. */
    void (*on_failure)(void *owner, const struct group_failure *failure);
    void *owner;
    int has_failed; /* 1 if the group has failed and the members were told */
    struct group_failure failure;
    struct recent_calls calls;
    _Atomic uint64_t last_call; /* number of this rank's latest call */
    struct probe *probes;       /* kept probes of calls that this rank has not made yet */
    /* Not 0 if there may be unexpected messages of calls with a root. */
    _Atomic int unexpected;
    unsigned char *left; /* [size] 1 if the member sent a goodbye; NULL if no member did */
};

/* Adds a channel.  The caller owns the memory, and keeps it until channel_close().  If a failure of
 * the group has come before, on_failure() is called at once. */
void channel_open(struct mesh *mesh, struct channel *channel);
/* Removes the channel, and frees the messages of the channel that no receive has taken. */
void channel_close(struct mesh *mesh, struct channel *channel);

/* Cancels all requests of the channel.  It is defined in goodbye.c. */
void channel_give_up(struct mesh *mesh, const struct channel *channel);

/* Sends a goodbye to the members, before channel_close().  It is defined in goodbye.c. */
void channel_goodbye(struct mesh *mesh, const struct channel *channel);

/* Tells the members that the group has failed on this rank.  ct_last_error() is not changed. */
void channel_fail(struct mesh *mesh, struct channel *channel, const struct group_failure *failure);

/* The functions below run under transport->lock, for arrivals.c and call_probe.c. */
struct unexpected;
struct messages;
struct channel *channel_find(const struct messages *m, uint64_t id);
/* Tells the channel's owner and the other members that the group has failed here or elsewhere. */
void channel_fail_told(struct mesh *mesh, struct channel *channel,
                       const struct group_failure *failure);
/* Handles a FAILURE frame.  The function owns `message` from then on. */
void failure_arrived(struct mesh *mesh, struct unexpected *message);
/* If the frame's group has failed on this rank, sends the failure to the frame's sender. */
void answer_with_failure(struct mesh *mesh, const struct frame *frame, int from);

#endif
