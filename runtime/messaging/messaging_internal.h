/* SPDX-License-Identifier: Apache-2.0 */
/* messaging_internal.h - the state that the files of runtime/messaging share.  transport->lock
 * guards all of it. */
#ifndef RUNTIME_MESSAGING_MESSAGING_INTERNAL_H
#define RUNTIME_MESSAGING_MESSAGING_INTERNAL_H

#include "runtime/messaging/messages.h"
#include "runtime/transport/transport.h"

#define CLOSED 64             /* destroyed groups of which frames may still come */
#define CHANNEL_PLACES 256    /* a job may have thousands of groups */
#define LOOKS_FOR_NEWCOMERS 2 /* of progress(): a new connection; what was sent on it */

/* A message that no receive has taken: an eager one with its bytes, or an RTS.  FRAME_DATA: its
 * receive was given up after the CTS, so its bytes are still to come, in whole or in part. */
struct unexpected {
    struct unexpected *next;
    struct frame frame;
    int from;
    size_t cost;            /* the eager credit that its sender used for it; 0: none */
    struct request *sender; /* a send to ourselves, waiting to be received */
    unsigned char data[];
};

struct channel; /* group_channel.h */

/* A goodbye of a group that this rank has yet to make. */
struct early_goodbye {
    uint64_t channel;
    int peer;
};

struct messages {
    struct request *posted; /* receives without a message, oldest first */
    struct request *active; /* receives being filled, sends not yet gone */
    struct request *copies; /* that a device copies; removed by the thread that has copies_lock */
    struct unexpected *unexpected, **unexpected_end;
    struct channel *channels; /* of the groups there are */
    struct channel *channels_by_id[CHANNEL_PLACES];
    int failed_channels;
    int left_channels;       /* that a member has left */
    uint64_t closed[CLOSED]; /* the last groups that were destroyed here */
    unsigned closings;
    struct early_goodbye early[CLOSED]; /* the last ones */
    unsigned earlies;
    uint32_t goodbyes_seen;  /* of all ranks of the host, in their logs */
    uint32_t *goodbyes_read; /* of each; NULL: none was ever seen */
    _Atomic int probes;      /* kept for calls to come */
    uint64_t next_id;
    /* The thread that moves background requests while nobody waits. */
    pthread_t thread;
    void *(*thread_main)(void *mesh);
    int has_thread, stop;
    /* What the progress thread is needed for: requests in the background, frames that no request
     * owns, failed groups.  A thread that leaves request_wait() reads it without the lock. */
    _Atomic int background;
    _Atomic int waiting;           /* threads in request_wait() */
    _Atomic uint64_t probe_looked; /* a probe looked at its peer, by the coarse clock */
    _Atomic uint64_t glanced;      /* messages_glance() looked, by the coarse clock */
    _Atomic int copies_pending;
    pthread_mutex_t copies_lock; /* of the thread that moves `copies`; taken before `lock` */
    pthread_cond_t needed;
};

/* All of what follows runs under the lock, and each file uses only what stands above it; request.c,
 * goodbye.c and device_rendezvous.c use each other. */

/* tag_match.c */
size_t place_of_id(uint64_t id); /* in channels_by_id */
void note_closing(struct messages *m, uint64_t channel);
int was_closed(const struct messages *m, uint64_t channel); /* not long ago */
void list_add(struct request **list, struct request *request);
void list_add_by_id(struct request **list, struct request *request);
void list_remove(struct request *request);
struct request *send_by_id(const struct messages *m, uint64_t id, int to);
/* The receive that has sent a CTS for a message, or into which it is written. */
struct request *receive_by_message(const struct messages *m, uint64_t id, int from);
struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from);
struct unexpected *take_unexpected(struct messages *m, const struct request *receive);
/* 1: a message is there, and the probe is done. */
int probe_unexpected(struct mesh *mesh, struct request *probe);
void keep(struct mesh *mesh, struct unexpected *message);
/* It stands among the other messages of its sender in the order in which they were sent. */
void keep_in_order(struct mesh *mesh, struct unexpected *message);
/* The stream that brings its bytes now; NULL: none does. */
struct frame_stream *stream_into(const struct mesh *mesh, const struct unexpected *message);
void unexpected_free(struct mesh *mesh, struct unexpected *message);   /* in no list any more */
void unexpected_remove(struct mesh *mesh, struct unexpected *message); /* and frees it */
void forget_sender(struct mesh *mesh, const struct request *send);     /* one to ourselves */

/* control_frame.c */
void progress_thread_wake(struct mesh *mesh);
/* No request owns the frame: if it can't be written now, the progress thread sends it. */
void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out);
/* The same, of a frame without payload. */
void send_control(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id);
void send_credit(struct mesh *mesh, int peer);

/* The eager credit that a message uses. */
static inline size_t eager_cost(size_t bytes)
{
    return bytes + sizeof(struct unexpected);
}

static inline void eager_credited(struct endpoint *endpoint, uint64_t bytes)
{
    endpoint->uncredited -= bytes < endpoint->uncredited ? (size_t)bytes : endpoint->uncredited;
}

/* An eager message of this peer is kept no more. */
static inline void eager_consumed(struct mesh *mesh, int peer, size_t cost)
{
    struct endpoint *endpoint = &mesh->transport->endpoints[peer];

    endpoint->consumed += cost;
    if (endpoint->consumed >= CREDIT_STEP)
        send_credit(mesh, peer);
}

/* request.c */
void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason);
void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs);
/* "rank 3 (pid 7 on a) is gone: why", or better, where its death is known. */
void peer_gone_words(struct mesh *mesh, int peer, const char *why, char *text, size_t size);
/* Do both sides make the same call?  If not, both fail. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from);
/* device_rts_limits: bits of device_rendezvous.h. */
void send_cts(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
              int device_rts_limits);
/* Also of a send that was written in part. */
void request_give_up(struct mesh *mesh, struct request *request, ct_status status,
                     const char *reason);
/* The sender gave the message up: the receive that had met it waits for the next one. */
void message_cancelled(struct mesh *mesh, uint64_t id, int from);
/* The message that it had met was cancelled: it takes the next one, or is posted where it was. */
void receive_again(struct mesh *mesh, struct request *receive);
/* A receive that had met a message is given up: the message is kept for the next receive. */
void put_back(struct mesh *mesh, struct request *receive, enum frame_kind kind);

/* goodbye.c */
void goodbye_arrived(struct mesh *mesh, const struct frame *frame, int from);
void goodbyes_came_early(struct messages *messages, struct channel *channel); /* it was made now */
void look_for_goodbye(struct mesh *mesh, struct request *request);            /* which begins */
void take_new_goodbyes(struct mesh *mesh);
/* Of ranks of this host without a connection. */
static inline void take_goodbyes(struct mesh *mesh)
{
    if (mesh->node.base
        && atomic_load_explicit(&mesh->node.head->goodbyes, memory_order_relaxed)
               != mesh->messages->goodbyes_seen)
        take_new_goodbyes(mesh);
}
/* 1: the frame is of a group that this rank has destroyed, and its sender was sent a goodbye. */
int answer_with_goodbye(struct mesh *mesh, const struct frame *frame, int from);

/* arrivals.c: as of struct transport_handlers */
int message_arrived(struct mesh *mesh, struct frame_stream *stream);
void message_landed(struct mesh *mesh, struct frame_stream *stream);

/* progress_thread.c, without the lock */
void *progress_thread_main(void *mesh);
void progress_thread_stop(struct mesh *mesh);

#endif
