/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - frames to and from the peers of a mesh, over connections that come and go.
 *
 *   endpoint.c  the queue of frames to a peer, its connections and lanes, what comes on them,
 *                 and when their end means that the peer is gone
 *   wireup.c      makes connections over sockets, in a thread of its own
 *   progress.c    one look at all connections
 *
 * The layer above (runtime/messaging) knows what a frame means: it registers its handlers when the
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

/* The receiving side of a connection: a frame's header, then its payload, again and again. */
struct frame_stream {
    struct frame_stream *next;
    struct link *link;
    int peer;
    struct frame head;
    size_t head_got;
    size_t left;         /* bytes of the payload that are still to come; set by on_header() */
    unsigned char *into; /* where they go; NULL: they are dropped */
    int closed;
    int held;  /* its frame waits for an earlier one on the other lane */
    int muted; /* while it is held, epoll reports only its end */
    int ended; /* epoll has reported its end: it would wake sleeping threads again and again */
    /* The handlers' own. */
    struct request *request;       /* the payload is this receive's, or */
    struct unexpected *unexpected; /* is kept here */
};

/* The link to one peer: its connections, and the frames that wait for them. */
struct endpoint {
    struct link *own;        /* the connection that this rank opened; NULL: none */
    struct link *accepted;   /* the one that the peer opened */
    struct link *out;        /* the one on which small frames go */
    struct link *begun_on;   /* the one on which the first frame of the queue is written in part */
    struct link *full;       /* the one whose socket takes no more bytes for now */
    uint32_t sent, received; /* how many whole frames were written to it, and have come from it */
    int opening;             /* `own` is being opened */
    int own_tried;           /* opening `own` was tried */
    int ended_one;           /* one of its streams has ended */
    int held;                /* how many of its streams are held */
    struct frame_stream *ring; /* the one in shared memory; NULL: none was opened */
    int heard;                 /* the peer has written to its ring to us */
    struct outgoing *first, *last;
    struct endpoint *next_pending; /* in transport->pending, where endpoints with a queue stand */
    int is_pending;
    int streams;      /* how many are open */
    int64_t ended_ms; /* when the last of them closed; 0: checked since, or none did */
    int gone;         /* nothing will come from the peer any more */
    int unreachable;  /* nothing can be sent to the peer any more */
    int left;         /* the peer has destroyed the root group: it reads nothing any more */
    int gathered;     /* the queue is written when all requests of a batch are started */
    /* The handlers' own. */
    size_t uncredited; /* bytes of eager messages that the peer has not credited back */
    size_t consumed;   /* bytes of its eager messages that this rank has yet to credit back */
    /* until when a death notice of it may still come; 0: it was not missed yet */
    int64_t notice_due;
    int device_rts_limits;   /* what the peer's CTS said: bits of device_rendezvous.h */
    uint64_t device_cancels; /* how many DEVICE_CANCEL frames have come */
    char why[160];
};

struct transport_handlers {
    /* The header of a frame has come.  Sets stream->left and ->into, which are 0 and NULL, if a
     * payload follows.  -1: the header is not valid, and the connection is closed. */
    int (*on_header)(struct mesh *mesh, struct frame_stream *stream);
    /* All of a frame has come, also if it has no payload. */
    void (*on_payload)(struct mesh *mesh, struct frame_stream *stream);
    /* A connection ended, perhaps within a frame, whose rest will not come. */
    void (*on_closed)(struct mesh *mesh, struct frame_stream *stream, const char *why);
    /* All of a frame was written.  It is the handlers' again. */
    void (*on_sent)(struct mesh *mesh, struct outgoing *out);
    /* Nothing can be sent to a peer any more (endpoint->why).  The handler takes the queue, and
     * fails what waits for an answer of the peer before it is queued. */
    void (*on_send_failed)(struct mesh *mesh, int peer);
    /* Nothing will come from a peer any more (endpoint->why). */
    void (*on_peer_gone)(struct mesh *mesh, int peer);
    /* This process can't accept connections: receives from peers without one fail. */
    void (*on_no_connections)(struct mesh *mesh, const char *why);
    /* Is a large message on its way to us? */
    int (*expects_much)(const struct mesh *mesh);
};

struct transport {
    pthread_mutex_t lock;               /* over all of this, and the handlers' state */
    struct transport_handlers handlers; /* a copy: each frame calls some */
    struct endpoint *endpoints;         /* [mesh->size] */
    struct frame_stream *streams;
    int closed;               /* how many of these are closed and not yet freed */
    struct endpoint *pending; /* a look writes the queues of these */
    unsigned looks;           /* of progress_for() */
    /* How often bytes went in or out; a waiting thread reads it without the lock. */
    _Atomic unsigned moves;
    int gathering;              /* a batch is started: frames are queued and not yet written */
    int64_t looked_for_loss_ms; /* when end_lost_connections() last looked */
    int ended;                  /* endpoints for check_ended_peers() */
};

static inline void transport_moved(struct transport *t)
{
    const unsigned moves = atomic_load_explicit(&t->moves, memory_order_relaxed);

    atomic_store_explicit(&t->moves, moves + 1, memory_order_relaxed); /* only with the lock */
}

/* progress.c, without the lock.  transport_close() is owed even if it fails. */
ct_status transport_open(struct mesh *mesh, const struct transport_handlers *handlers);
void transport_close(struct mesh *mesh); /* NULL is fine; the queues are empty */

void progress(struct mesh *mesh);
/* The same for a thread that calls it in a loop until a message of so many bytes moves to or from
 * one peer (CT_ANY_SOURCE: any): it looks at the other connections only now and then. */
void progress_for(struct mesh *mesh, int peer, size_t bytes);

/* ---- endpoint.c ----------------------------------------------------------- */

/* Opens a connection to the peer, or begins to; link_kinds[] says in which order links are tried.
 */
ct_status peer_connect(struct mesh *mesh, int peer);
void take_arrivals(struct mesh *mesh); /* connections that wireup made, or could not */
/* 1: there is a connection to the peer, perhaps a new one. */
int ensure_connection(struct mesh *mesh, int peer);
/* Does the peer share memory with this rank, so that a connection to it costs nothing? */
static inline int is_neighbour(const struct mesh *mesh, int peer)
{
    return mesh->node.base && mesh->peers[peer].local >= 0 && peer != mesh->rank;
}
/* Opens a connection to a peer that we have not sent to yet, so that each side notices when the
 * other's process ends. */
void connect_for_liveness(struct mesh *mesh, int peer);

/* Queues a frame, and writes what the link takes. */
void send_out(struct mesh *mesh, int peer, struct outgoing *out);
/* The same for a frame that the peer waits for, and whose place among the others does not matter:
 * it goes before those that were not begun. */
void send_answer_out(struct mesh *mesh, int peer, struct outgoing *out);
/* Queues a frame that is written when this look has read what has come. */
void send_out_later(struct mesh *mesh, int peer, struct outgoing *out);
void flush_to(struct mesh *mesh, int peer);
void flush_pending(struct mesh *mesh);            /* the queues of all peers */
void flush_gathered(struct mesh *mesh, int peer); /* the queue of a batch, if there is one */
/* Is there a frame that a peer may still read: queued, or in the kernel's send buffer? */
int is_on_its_way(struct mesh *mesh);

/* 1: it stopped although more may be there. */
int read_stream(struct mesh *mesh, struct frame_stream *stream);
/* epoll reports events of a held stream. */
void look_at_held(struct mesh *mesh, struct frame_stream *stream, uint32_t events);
/* The connection on which a message of so many bytes most likely comes. */
const struct link *link_from(const struct endpoint *endpoint, size_t bytes);

void free_closed_streams(struct mesh *mesh);
void check_ended_peers(struct mesh *mesh); /* is the peer of a endpoint without streams gone? */
/* Ends connections to hosts that answer no more; it looks once a second. */
void end_lost_connections(struct mesh *mesh);
void peer_gone(struct mesh *mesh, int peer, const char *why); /* nothing comes from it any more */
void peer_unreachable(struct mesh *mesh, int peer, const char *why); /* nothing can be sent to it */

#endif
