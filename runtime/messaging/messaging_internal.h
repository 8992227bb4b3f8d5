/* SPDX-License-Identifier: Apache-2.0 */
/* messaging_internal.h - what the files of messages share, for them and for those that look at a
 * group's messages: request.c (starting, giving up) and request_wait.c; protocol.c (what arrives),
 * tag_match.c and completion.c; and those of runtime/transport/ that move the bytes: send_queue.c,
 * receive.c, connection.c and connection_pair.c, and progress.c (all of them). */
#ifndef RUNTIME_MESSAGING_MESSAGING_INTERNAL_H
#define RUNTIME_MESSAGING_MESSAGING_INTERNAL_H

#include "runtime/messaging/protocol.h"

#define FRAME_MAGIC 0x74636672u
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
    size_t got;
    size_t unasked;         /* what the peer counts for it; 0: nothing */
    struct request *sender; /* a send to ourselves, waiting to be received */
    unsigned char data[];
};

/* Bytes from one peer: a frame, then its payload, again and again. */
struct stream {
    struct stream *next;
    struct link *link;
    int peer;
    struct frame head;
    size_t head_got;
    size_t left;                   /* of the payload */
    unsigned char *into;           /* where it goes; NULL: nowhere */
    struct request *request;       /* whose it is, or */
    struct unexpected *unexpected; /* where it is kept */
    int closed;
    int held;  /* the turn of its frame has not come (connection_pair.c) */
    int muted; /* and epoll tells of its end only, meanwhile */
    int ended; /* which it has told: it would tell whoever sleeps again and again */
};

/* What there is of one peer beside struct peer. */
struct wire {
    struct link *own;      /* that we opened; NULL: none */
    struct link *theirs;   /* that the peer opened */
    struct link *out;      /* the one of them that small frames go on */
    struct link *begun_on; /* where the first of the queue has begun to be written */
    struct link *full;     /* waiting for its socket to take more */
    uint32_t said, landed; /* whole frames that went there and came */
    int opening;           /* `own` is being made */
    int own_tried;         /* it was begun to be */
    int ended_one;         /* a stream of its has ended */
    int held;              /* streams that are */
    struct outgoing *first, *last;
    size_t unasked;       /* sent so, and it has not said that a receive took them: bytes */
    size_t taken;         /* of what it sent so, and was not told of */
    int streams;          /* open ones it may talk to us on */
    int64_t ended_ms;     /* when the last of them closed; 0: judged, or none did */
    int gone;             /* nothing will come from it any more */
    int left;             /* it has destroyed the mesh's first group: it reads nothing any more */
    int64_t word_by;      /* ctrun may tell of its death until then; 0: it was not missed yet */
    int broken;           /* nothing can be sent to it any more */
    int gathered;         /* has something that is to be written when all are started */
    int no_loans;         /* what it has said of them: bits of device_rendezvous.h */
    uint64_t loans_ended; /* that it told of */
    char why[160];
};

struct channel; /* group_channel.h */

/* Who has left a group that is not made here yet. */
struct early_leaver {
    uint64_t channel;
    int peer;
};

struct messages {
    pthread_mutex_t lock; /* over all of this */
    struct wire *wires;   /* [mesh->size] */
    struct stream *streams;
    struct request *posted;  /* receives without a message, oldest first */
    struct request *active;  /* receives being filled, sends not yet gone */
    struct request *errands; /* whose bytes a device copies; taken off by who holds errands_lock */
    struct unexpected *unexpected, **unexpected_end;
    struct channel *channels; /* of the groups there are */
    struct channel *channels_by_id[CHANNEL_PLACES];
    int broken_channels;
    int left_channels;       /* that a member has left */
    uint64_t closed[CLOSED]; /* the last groups that were destroyed here */
    unsigned closings;
    struct early_leaver early[CLOSED]; /* the last ones */
    unsigned earlies;
    _Atomic int questions; /* kept for calls to come */
    uint64_t next_id;
    unsigned looks; /* of progress_for() */
    /* Bytes went in or out, so often; who waits reads it without the lock. */
    _Atomic unsigned moves;
    int gathering;              /* requests are being started together: nothing is written yet */
    int64_t looked_for_loss_ms; /* of connections' hosts, last */
    int ended;                  /* wires to be judged */
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

static inline void messages_moved(struct messages *m)
{
    const unsigned moves = atomic_load_explicit(&m->moves, memory_order_relaxed);

    atomic_store_explicit(&m->moves, moves + 1, memory_order_relaxed); /* one writer: the lock's */
}

/* protocol.c, under the lock */
/* Do both sides make the same call?  If not, both fail. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from);
/* no_loans: what this rank says of loans. */
void accept_offer(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
                  int no_loans);
void message_arrived(struct mesh *mesh, struct stream *stream); /* a whole frame's head */
void message_landed(struct mesh *mesh, struct stream *stream);  /* all its payload */
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
struct stream *stream_into(const struct messages *m, const struct unexpected *message);
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
    struct wire *wire = &mesh->messages->wires[peer];

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
void peer_gone(struct mesh *mesh, int peer, const char *why);   /* receives from it fail */
void peer_broken(struct mesh *mesh, int peer, const char *why); /* sends to it fail */

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

/* send_queue.c, under the lock */
ct_status peer_connect(struct mesh *mesh, int peer);
void send_out(struct mesh *mesh, int peer, struct outgoing *out);
/* 1: there is a wire to it, perhaps a new one. */
int reach(struct mesh *mesh, int peer);
/* Of nobody's who waits for it: if it can't be written now, the thread sees to it. */
void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out);
/* Opens a connection to a peer that we have not sent to yet, so that each side notices when the
 * other's process ends. */
void connect_for_liveness(struct mesh *mesh, int peer);
/* The same of a frame about a message, without payload. */
void send_word(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id);
void flush_to(struct mesh *mesh, int peer);
void flush_gathered(struct mesh *mesh, int peer); /* if anything was */
void outgoing_free(struct messages *m, struct outgoing *out);

/* receive.c, under the lock */
void read_stream(struct mesh *mesh, struct stream *stream);
void take_arrivals(struct mesh *mesh); /* connections that were made, or can't be */

/* connection_pair.c, under the lock */
/* Where it goes; of what has begun to be written, where that was. */
struct link *link_for(const struct wire *wire, const struct outgoing *out);
/* On which what has to do with a message of so many bytes comes, most likely. */
const struct link *link_from(const struct wire *wire, size_t bytes);
void second_link_wanted(struct mesh *mesh, int peer, const struct outgoing *out);
/* A connection to a peer is there: our own, or one that the peer opened. */
void link_made(struct mesh *mesh, int peer, struct link *link);
void link_not_made(struct mesh *mesh, int peer, const char *why);
/* Has the turn of this stream's frame come?  If not it is held. */
int its_turn(struct mesh *mesh, struct stream *stream);
/* One landed: whose turn is it now?  NULL: nobody is held for it. */
struct stream *next_in_turn(struct mesh *mesh, int peer);
void close_held(struct mesh *mesh, int peer, const char *why); /* another stream has ended */
void close_held_for_ever(struct mesh *mesh, int peer);
void look_at_held(struct mesh *mesh, struct stream *stream, uint32_t events);

/* connection.c, under the lock */
struct stream *stream_open(struct mesh *mesh, struct link *link, int peer);
void stream_watch(struct mesh *mesh, struct stream *stream, int add); /* or anew */
void stream_close(struct mesh *mesh, struct stream *stream, const char *why);
void bury_streams(struct mesh *mesh); /* those that are closed */
void judge_ended(struct mesh *mesh);  /* wires without a stream: are their peers gone? */
/* Connections to hosts that answer nothing any more end; looked at once a second. */
void end_lost_connections(struct mesh *mesh);
/* This process can't accept connections: receives from peers without one fail. */
void no_peer_can_come(struct mesh *mesh, const char *why);
void see_off(struct mesh *mesh); /* what was written has arrived when this returns, if it can */

/* progress.c, under the lock */
void progress(struct mesh *mesh);
/* The same for who looks again and again until something comes from one peer (CT_ANY_SOURCE: from
 * any) that has to do with a message of so many bytes: all else is looked at now and then. */
void progress_for(struct mesh *mesh, int peer, size_t bytes);
ct_status progress_setup(struct mesh *mesh); /* streams of the ranks we share memory with */
void progress_done(struct mesh *mesh);

/* progress_thread.c */
void background_needed(struct mesh *mesh);
void background_stop(struct mesh *mesh);

#endif
