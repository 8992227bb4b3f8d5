/* SPDX-License-Identifier: Apache-2.0 */
/* messaging_internal.h - what the files of messages share, for them and for those that look at a
 * group's messages: request.c (starting, giving up) and request_wait.c; protocol.c (what arrives),
 * tag_match.c and completion.c.  runtime/transport moves the bytes, and its lock is that of all
 * this. */
#ifndef RUNTIME_MESSAGING_MESSAGING_INTERNAL_H
#define RUNTIME_MESSAGING_MESSAGING_INTERNAL_H

#include "runtime/messaging/protocol.h"
#include "runtime/transport/transport.h"

#define CLOSED 64             /* groups of which late news may come */
#define CHANNEL_PLACES 256    /* a job may have thousands of groups */
#define LOOKS_FOR_NEWCOMERS 2 /* of progress(): a new connection; what was sent on it */

/* A message nobody asked for yet: its bytes, or the offer of them.  Or one that a receive was given
 * up on after it had been accepted (FRAME_DATA): its bytes are still to come, in whole or in part.
 */
struct unexpected {
    struct unexpected *next;
    struct frame frame;
    int from;
    size_t unasked;         /* what the peer counts for it; 0: nothing */
    struct request *sender; /* a send to ourselves, waiting to be received */
    unsigned char data[];
};

struct channel; /* group_channel.h */

/* Who has left a group that is not made here yet. */
struct early_leaver {
    uint64_t channel;
    int peer;
};

struct messages {
    struct request *posted;  /* receives without a message, oldest first */
    struct request *active;  /* receives being filled, sends not yet gone */
    struct request *errands; /* whose bytes a device copies; taken off by who holds errands_lock */
    struct unexpected *unexpected, **unexpected_end;
    struct channel *channels; /* of the groups there are */
    struct channel *channels_by_id[CHANNEL_PLACES];
    int failed_channels;
    int left_channels;       /* that a member has left */
    uint64_t closed[CLOSED]; /* the last groups that were destroyed here */
    unsigned closings;
    struct early_leaver early[CLOSED]; /* the last ones */
    unsigned earlies;
    _Atomic int questions; /* kept for calls to come */
    uint64_t next_id;
    /* The thread that moves background requests while nobody waits. */
    pthread_t thread;
    int has_thread, stop;
    /* Requests, frames of nobody's that others wait for, broken groups.  Who leaves request_wait()
     * reads it without the lock. */
    _Atomic int background;
    _Atomic int waiting;      /* threads in request_wait() */
    _Atomic uint64_t glanced; /* messages_glance() looked, by the coarse clock */
    _Atomic int errands_left;
    pthread_mutex_t errands_lock; /* of who moves them; taken before `lock` */
    pthread_cond_t needed;
};

/* protocol.c, under the lock */
/* Do both sides make the same call?  If not, both fail. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from);
/* no_loans: what this rank says of loans. */
void accept_offer(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
                  int no_loans);
/* As of struct transport_handlers. */
int message_arrived(struct mesh *mesh, struct stream *stream);
void message_landed(struct mesh *mesh, struct stream *stream);
/* A frame that no request owns: if it can't be written now, the progress thread sends it. */
void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out);
/* The same of a frame about a message, without payload. */
void send_word(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id);
/* Its sender gave it up: the receive that it had met waits for the next one. */
void message_cancelled(struct mesh *mesh, uint64_t id, int from);

/* tag_match.c, under the lock */
void list_add(struct request **list, struct request *request);
void list_add_by_id(struct request **list, struct request *request);
void list_remove(struct request *request);
struct request *send_by_id(const struct messages *m, uint64_t id, int to);
/* The receive that has accepted a message, or is being filled with it. */
struct request *receive_by_message(const struct messages *m, uint64_t id, int from);
int matches(const struct request *receive, uint64_t channel, int from, int tag);
struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from);
struct unexpected *take_unexpected(struct messages *m, const struct request *receive);
void keep(struct mesh *mesh, struct unexpected *message);
/* Among those of its sender it stands where it was sent. */
void keep_in_order(struct messages *m, struct unexpected *message);
/* The stream that brings its bytes now; NULL: none does. */
struct stream *stream_into(const struct mesh *mesh, const struct unexpected *message);
void unexpected_free(struct mesh *mesh, struct unexpected *message);   /* in no list any more */
void unexpected_remove(struct mesh *mesh, struct unexpected *message); /* and frees it */
void forget_sender(struct mesh *mesh, const struct request *send);     /* one to ourselves */

/* What a message counts that goes unasked. */
static inline size_t unasked_cost(size_t bytes)
{
    return bytes + sizeof(struct unexpected);
}

static inline void unasked_less(struct wire *wire, uint64_t bytes)
{
    wire->unasked -= bytes < wire->unasked ? (size_t)bytes : wire->unasked;
}

/* One of this peer that came so is kept no more. */
void say_taken(struct mesh *mesh, int peer);
static inline void unasked_taken(struct mesh *mesh, int peer, size_t cost)
{
    struct wire *wire = &mesh->transport->wires[peer];

    wire->taken += cost;
    if (wire->taken >= CREDIT_LEAST)
        say_taken(mesh, peer);
}

/* completion.c, under the lock */
void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason);
void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs);
/* "rank 3 (pid 7 on a) is gone: why", or better, where its death is known. */
void peer_gone_words(struct mesh *mesh, int peer, const char *why, char *text, size_t size);

/* request.c, under the lock: also of a send that has begun to be written */
void request_give_up(struct mesh *mesh, struct request *request, ct_status status,
                     const char *reason);
void request_cancel_locked(struct mesh *mesh, struct request *request);
/* The message that it had met was cancelled: it takes the next one, or is posted where it was. */
void receive_again(struct mesh *mesh, struct request *receive);
/* A receive that had met a message is given up: the message is kept for the next receive. */
void put_back(struct mesh *mesh, struct request *receive, enum frame_kind kind);

/* group_leave.c, under the lock */
void leave_arrived(struct mesh *mesh, const struct frame *frame, int from);
void leaves_came_early(struct messages *messages, struct channel *channel); /* it was made now */
void look_for_leaver(struct mesh *mesh, struct request *request);           /* one that begins */
void note_closing(struct messages *m, uint64_t channel);
int was_closed(const struct messages *m, uint64_t channel); /* not long ago */
/* Who sends or asks for a group that was destroyed here may not have heard of it; 1: it was. */
int answer_leaving(struct mesh *mesh, const struct frame *frame, int from);

/* progress_thread.c */
void background_needed(struct mesh *mesh);
void background_stop(struct mesh *mesh);

#endif
