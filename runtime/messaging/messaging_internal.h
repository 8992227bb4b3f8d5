/* SPDX-License-Identifier: Apache-2.0 */
/* messaging_internal.h - the state and the functions that the files of runtime/messaging share.
 * transport->lock guards the state. */
#ifndef RUNTIME_MESSAGING_MESSAGING_INTERNAL_H
#define RUNTIME_MESSAGING_MESSAGING_INTERNAL_H

#include "runtime/messaging/messages.h"
#include "runtime/transport/transport.h"

/* A rank remembers so many destroyed groups, since frames of these groups may still arrive. */
#define CLOSED 64
/* The number of hash buckets for groups.  A job may have thousands of groups. */
#define CHANNEL_PLACES 256
/* A frame on a new connection needs so many calls of progress().  The first accepts the connection,
 * the second reads the frame. */
#define LOOKS_FOR_NEWCOMERS 2

/* A message that no receive has taken.  frame.kind is FRAME_EAGER if the bytes are here.  It is
 * FRAME_RTS or FRAME_DEVICE_RTS while the sender has the bytes.  FRAME_DATA means that the receive
 * was given up after its CTS, so some or all of the bytes are still to come.  A FAILURE frame of a
 * group that this rank has not created yet is kept here too. */
struct unexpected {
    struct unexpected *next;
    struct frame frame;
    int from;
    /* Eager credit in bytes that the sender used for this message; 0 if it used none. */
    size_t cost;
    struct request *sender; /* the send, if this rank sent the message to itself; else NULL */
    unsigned char data[];
};

struct channel; /* group_channel.h */

/* A goodbye that arrived before this rank created the group. */
struct early_goodbye {
    uint64_t channel;
    int peer;
};

struct messages {
    struct request *posted; /* posted receives that wait for a message, oldest first */
    struct request *active; /* sends, and matched receives, that are not done yet */
    /* Requests that a device copies.  Only the thread that has copies_lock removes a request. */
    struct request *copies;
    struct unexpected *unexpected, **unexpected_end;
    struct channel *channels; /* all channels of this rank */
    struct channel *channels_by_id[CHANNEL_PLACES];
    int failed_channels;
    int left_channels;       /* number of channels that at least one other member has left */
    uint64_t closed[CLOSED]; /* the groups that this rank destroyed last */
    unsigned closings;
    struct early_goodbye early[CLOSED]; /* the latest early goodbyes */
    unsigned earlies;
    uint32_t goodbyes_seen; /* node_head.goodbyes when this rank last read the logs */
    /* [node.size] How many entries of each rank's goodbye log this rank has read.  NULL before the
     * first goodbye on this host. */
    uint32_t *goodbyes_read;
    _Atomic int probes; /* number of kept call probes (call_probe.h) */
    uint64_t next_id;
    /* The progress thread, which moves background requests while no other thread waits. */
    pthread_t thread;
    void *(*thread_main)(void *mesh);
    enum progress_thread_state { THREAD_NONE, THREAD_IDLE, THREAD_AWAKE } thread_state;
    int stop;
    /* How many things need the progress thread: background requests, frames that no request owns
     * and failed groups.  A thread that leaves request_wait() reads the count without the lock. */
    _Atomic int background;
    _Atomic int waiting;           /* number of threads that wait for a request */
    _Atomic unsigned waits;        /* changes whenever a thread begins to wait */
    _Atomic uint64_t probe_looked; /* coarse clock (ns) when ct_iprobe() last checked a peer */
    _Atomic uint64_t glanced;      /* coarse clock (ns) when messages_glance() last looked */
    _Atomic int copies_pending;
    /* Held by the thread that moves `copies`.  Taken before transport->lock. */
    pthread_mutex_t copies_lock;
    pthread_cond_t needed;
};

/* All functions below run under transport->lock, except those of progress_thread.c.  Each file uses
 * only functions that are declared above its own.  As an exception, request.c, goodbye.c and
 * device_rendezvous.c use each other. */

/* defined in tag_match.c */
/* Returns the index of a channel's id in channels_by_id. */
size_t place_of_id(uint64_t id);
void note_closing(struct messages *m, uint64_t channel);
/* Returns 1 if this rank destroyed the group and still remembers that. */
int was_closed(const struct messages *m, uint64_t channel);
void list_add(struct request **list, struct request *request);
void list_add_by_id(struct request **list, struct request *request);
void list_remove(struct request *request);
struct request *send_by_id(const struct messages *m, uint64_t id, int to);
/* Returns the active receive that was matched to the message with this id of this peer, or NULL. */
struct request *receive_by_message(const struct messages *m, uint64_t id, int from);
struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from);
struct unexpected *take_unexpected(struct messages *m, const struct request *receive);
/* Returns 1 and ends the probe if an unexpected message matches.  Otherwise returns 0. */
int probe_unexpected(struct mesh *mesh, struct request *probe);
void keep(struct mesh *mesh, struct unexpected *message);
/* Inserts a message into the list, so that messages of one sender stay in the order of their sends.
 */
void keep_in_order(struct mesh *mesh, struct unexpected *message);
/* Returns the stream on which the message's bytes are arriving; NULL if none are arriving now. */
struct frame_stream *stream_into(const struct mesh *mesh, const struct unexpected *message);
/* Frees a message that is in no list any more. */
void unexpected_free(struct mesh *mesh, struct unexpected *message);
/* Removes the message from the list of unexpected messages and frees it. */
void unexpected_remove(struct mesh *mesh, struct unexpected *message);
/* Removes the unexpected message of a send from this rank to itself. */
void forget_sender(struct mesh *mesh, const struct request *send);

/* defined in control_frame.c */
/* Starts the progress thread, or wakes it if it is idle. */
void progress_thread_wake(struct mesh *mesh);
/* Sends a frame that no request owns.  The progress thread sends the frame later if the link can't
 * take it now. */
void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out);
/* Sends a frame without payload that no request owns. */
void send_control(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id);
void send_credit(struct mesh *mesh, int peer);

/* Returns the eager credit in bytes that a message uses. */
static inline size_t eager_cost(size_t bytes)
{
    return bytes + sizeof(struct unexpected);
}

static inline void eager_credited(struct endpoint *endpoint, uint64_t bytes)
{
    endpoint->uncredited -= bytes < endpoint->uncredited ? (size_t)bytes : endpoint->uncredited;
}

/* Notes that this rank no longer keeps an eager message of the peer.  Returns credit to the peer in
 * steps of CREDIT_STEP bytes. */
static inline void eager_consumed(struct mesh *mesh, int peer, size_t cost)
{
    struct endpoint *endpoint = &mesh->transport->endpoints[peer];

    endpoint->consumed += cost;
    if (endpoint->consumed >= CREDIT_STEP)
        send_credit(mesh, peer);
}

/* defined in request.c */
void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason);
void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs);
/* Writes "rank 3 (pid 7 on a) is gone: why".  If ctrun has reported how the peer died, writes that
 * instead. */
void peer_gone_words(struct mesh *mesh, int peer, const char *why, char *text, size_t size);
/* Returns 1 if the receive and the frame belong to the same call.  Otherwise both sides fail, and
 * the function returns 0. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from);
/* Sends a CTS for the message in `frame`.  device_rts_limits has bits of device_rendezvous.h. */
void send_cts(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
              int device_rts_limits);
/* Cancels a request that is not done, even a send that is partly written.  If a device is copying
 * for the request, the request ends later, and device_copy_finish() waits for that. */
void request_give_up(struct mesh *mesh, struct request *request, ct_status status,
                     const char *reason);
/* Handles the sender's cancel of a message.  A receive that was matched to the message waits for
 * the next message. */
void message_cancelled(struct mesh *mesh, uint64_t id, int from);
/* Matches a receive again after its message was cancelled.  The receive takes the next message, or
 * is posted at its old position. */
void receive_again(struct mesh *mesh, struct request *receive);
/* Keeps the message of a matched receive that is given up.  The next receive gets the message. */
void put_back(struct mesh *mesh, struct request *receive, enum frame_kind kind);

/* defined in goodbye.c */
void goodbye_arrived(struct mesh *mesh, const struct frame *frame, int from);
/* Records the goodbyes that arrived before this rank created the channel. */
void goodbyes_came_early(struct messages *messages, struct channel *channel);
/* Fails a request that starts after its peer has destroyed the group. */
void look_for_goodbye(struct mesh *mesh, struct request *request);
void take_new_goodbyes(struct mesh *mesh);
/* Reads new goodbyes in the shared memory of this host.  Ranks without a connection to this rank
 * write their goodbyes there. */
static inline void take_goodbyes(struct mesh *mesh)
{
    if (mesh->node.base
        && atomic_load_explicit(&mesh->node.head->goodbyes, memory_order_relaxed)
               != mesh->messages->goodbyes_seen)
        take_new_goodbyes(mesh);
}
/* If this rank has destroyed the frame's group, sends a goodbye to the frame's sender and returns
 * 1.  Otherwise returns 0. */
int answer_with_goodbye(struct mesh *mesh, const struct frame *frame, int from);

/* defined in arrivals.c: the handlers on_header and on_payload of struct transport_handlers */
int message_arrived(struct mesh *mesh, struct frame_stream *stream);
void message_landed(struct mesh *mesh, struct frame_stream *stream);

/* defined in progress_thread.c: called without the lock */
void *progress_thread_main(void *mesh);
void progress_thread_stop(struct mesh *mesh);

#endif
