/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - frames to and from the peers of a mesh, over connections that come and go.
 *
 *   send_queue.c       what waits to be written to a peer, and the write
 *   receive.c          what comes from it, a frame's head and then its payload
 *   connection.c       a connection's life, and when its end means that the peer is gone
 *   connection_pair.c  the two connections of a pair, and the order of what comes on both
 *   progress.c         one look at all of them
 *
 * What a frame says, the layer above knows (runtime/messaging): it registers its handlers when the
 * mesh is made, as a user of UCX registers active-message handlers.  transport->lock is the lock of
 * both layers: all functions here are called with it, and so are the handlers. */
#ifndef RUNTIME_TRANSPORT_TRANSPORT_H
#define RUNTIME_TRANSPORT_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

#define NO_FRAME "it sent bytes that are no message"

struct unexpected; /* messaging_internal.h */

/* Bytes from one peer: a frame, then its payload, again and again. */
struct stream {
    struct stream *next;
    struct link *link;
    int peer;
    struct frame head;
    size_t head_got;
    size_t left;         /* of the payload: on_header() says how much comes */
    unsigned char *into; /* and where it goes; NULL: nowhere */
    int closed;
    int held;  /* the turn of its frame has not come (connection_pair.c) */
    int muted; /* and epoll tells of its end only, meanwhile */
    int ended; /* which it has told: it would tell whoever sleeps again and again */
    /* The handlers' own. */
    struct request *request;       /* whose payload it is, or */
    struct unexpected *unexpected; /* where it is kept */
};

/* The connections to one peer, and what waits for them. */
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
    int streams;      /* open ones it may talk to us on */
    int64_t ended_ms; /* when the last of them closed; 0: judged, or none did */
    int gone;         /* nothing will come from it any more */
    int broken;       /* nothing can be sent to it any more */
    int left;         /* it reads nothing any more: it has destroyed the mesh's first group */
    int gathered;     /* has something that is to be written when all are started */
    /* The handlers' own. */
    size_t unasked;       /* sent so, and it has not said that a receive took them: bytes */
    size_t taken;         /* of what it sent so, and was not told of */
    int64_t word_by;      /* ctrun may tell of its death until then; 0: it was not missed yet */
    int no_loans;         /* what it has said of them: bits of device_rendezvous.h */
    uint64_t loans_ended; /* that it told of */
    char why[160];
};

struct transport_handlers {
    /* The head of a frame has come.  Sets stream->left and ->into, which are 0 and NULL, if a
     * payload follows.  -1: it is no frame of theirs, and the connection ends. */
    int (*on_header)(struct mesh *mesh, struct stream *stream);
    /* All of a frame has come, though it have no payload. */
    void (*on_payload)(struct mesh *mesh, struct stream *stream);
    /* A connection ended, and what had come of a frame is all that will. */
    void (*on_closed)(struct mesh *mesh, struct stream *stream, const char *why);
    /* All of a frame was written.  It is theirs again. */
    void (*on_sent)(struct mesh *mesh, struct outgoing *out);
    /* Nothing can be sent to a peer any more (wire->why): the queue, which they take, nor anything
     * that waits for an answer before it is queued. */
    void (*on_send_failed)(struct mesh *mesh, int peer);
    /* Nothing will come from a peer any more (wire->why). */
    void (*on_peer_gone)(struct mesh *mesh, int peer);
    /* This process can't accept connections: what waits for peers without one fails. */
    void (*on_no_connections)(struct mesh *mesh, const char *why);
    /* Is a large message on its way to us? */
    int (*expects_much)(const struct mesh *mesh);
};

struct transport {
    pthread_mutex_t lock;               /* over all of this, and the handlers' state */
    struct transport_handlers handlers; /* here, since each frame calls some */
    struct wire *wires;                 /* [mesh->size] */
    struct stream *streams;
    unsigned looks; /* of progress_for() */
    /* Bytes went in or out, so often; a waiting thread reads it without the lock. */
    _Atomic unsigned moves;
    int gathering;              /* frames are queued together: nothing is written yet */
    int64_t looked_for_loss_ms; /* of connections' hosts, last */
    int ended;                  /* wires to be judged */
};

static inline void transport_moved(struct transport *t)
{
    const unsigned moves = atomic_load_explicit(&t->moves, memory_order_relaxed);

    atomic_store_explicit(&t->moves, moves + 1, memory_order_relaxed); /* one writer: the lock's */
}

/* progress.c, without the lock: streams of the ranks we share memory with.  Owed in both cases. */
ct_status transport_open(struct mesh *mesh, const struct transport_handlers *handlers);
void transport_close(struct mesh *mesh); /* NULL is fine; the queues are empty */

void progress(struct mesh *mesh);
/* The same for who looks again and again until something comes from one peer (CT_ANY_SOURCE: from
 * any) that has to do with a message of so many bytes: all else is looked at now and then. */
void progress_for(struct mesh *mesh, int peer, size_t bytes);

/* send_queue.c */
ct_status peer_connect(struct mesh *mesh, int peer);
void send_out(struct mesh *mesh, int peer, struct outgoing *out);
/* 1: there is a wire to it, perhaps a new one. */
int reach(struct mesh *mesh, int peer);
/* Opens a connection to a peer that we have not sent to yet, so that each side notices when the
 * other's process ends. */
void connect_for_liveness(struct mesh *mesh, int peer);
void flush_to(struct mesh *mesh, int peer);
void flush_gathered(struct mesh *mesh, int peer); /* if anything was */

/* receive.c */
void read_stream(struct mesh *mesh, struct stream *stream);
void take_arrivals(struct mesh *mesh); /* connections that were made, or can't be */

/* connection_pair.c */
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

/* connection.c */
struct stream *stream_open(struct mesh *mesh, struct link *link, int peer);
void stream_watch(struct mesh *mesh, struct stream *stream, int add); /* or anew */
void stream_close(struct mesh *mesh, struct stream *stream, const char *why);
void bury_streams(struct mesh *mesh); /* those that are closed */
void judge_ended(struct mesh *mesh);  /* wires without a stream: are their peers gone? */
/* Connections to hosts that answer nothing any more end; looked at once a second. */
void end_lost_connections(struct mesh *mesh);
void peer_gone(struct mesh *mesh, int peer, const char *why);   /* nothing comes from it */
void peer_broken(struct mesh *mesh, int peer, const char *why); /* nothing can be sent to it */
/* Was something written, or is it still to be, that its peer may yet take? */
int is_on_its_way(struct mesh *mesh);

#endif
