/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - sends frames to the peers of a mesh and receives frames, over connections that are
 * made when needed and may break.
 *
 *   endpoint.c    queues and writes the frames to a peer, reads frames from its connections, and
 *                 detects that the peer is gone
 *   wireup.c      makes connections over sockets, in a separate thread
 *   progress.c    does one pass over all connections
 *
 * The layer above (runtime/messaging) interprets the frames.  It registers handlers when the mesh
 * is created, as a user of UCX registers active-message handlers.  transport->lock protects the two
 * layers.  Callers hold the lock for all functions here, and the handlers are called with the lock
 * held. */
#ifndef RUNTIME_TRANSPORT_TRANSPORT_H
#define RUNTIME_TRANSPORT_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

#define NO_FRAME "it sent bytes that are not a message"

struct unexpected; /* messaging_internal.h */

/* The receiving side of a connection, which brings one frame after another, each a header and then
 * a payload. */
struct frame_stream {
    struct frame_stream *next;
    struct link *link;
    int peer;
    struct frame head;
    size_t head_got;
    size_t left;         /* bytes of the payload that are still to come; set by on_header() */
    unsigned char *into; /* destination of the payload; NULL if the payload is dropped */
    int closed;
    int held;  /* true while the stream's frame waits for an earlier frame on another connection */
    int muted; /* true while epoll reports only the end of the held stream */
    int ended; /* true if epoll has reported the end; the socket was then removed from epoll, since
                * it would wake sleeping threads repeatedly */
    /* Only the handlers use the next two fields, of which one is set while a payload comes. */
    struct request *request;       /* the receive that gets the payload */
    struct unexpected *unexpected; /* the unexpected message that keeps the payload */
};

/* The directions in which frames can pass between this rank and a peer. */
enum endpoint_state {
    ENDPOINT_OPEN,     /* frames in both directions, over connections that are made when needed */
    ENDPOINT_DRAINING, /* nothing can be sent; frames that the peer has sent may still come */
    ENDPOINT_GONE      /* nothing can be sent, and nothing will come */
};

/* The state of the connection that this rank opens to a peer. */
enum own_connection { OWN_NOT_TRIED, OWN_OPENING, OWN_TRIED /* made, failed or ended */ };

/* This rank's end of the communication with a peer.  Only endpoint_change_state() sets `state`. */
struct endpoint {
    enum endpoint_state state;
    char why[160]; /* the reason why the state is not ENDPOINT_OPEN */

    /* Connections.  A link is NULL if there is no such connection. */
    enum own_connection own_connection;
    struct link *own;          /* the connection that this rank opened */
    struct link *accepted;     /* the connection that the peer opened */
    struct link *out;          /* the connection for small frames */
    struct link *begun_on;     /* the connection on which the first frame of the queue was begun */
    struct link *full;         /* the connection whose socket takes no more bytes now */
    struct frame_stream *ring; /* the stream in shared memory; NULL if none was opened */
    int streams;               /* number of open streams */
    int held;                  /* number of held streams */
    int ended_one;             /* true if a stream of the peer has ended */
    /* time when the last stream closed; 0 if none did, or if check_ended_peers() has checked it */
    int64_t ended_ms;

    /* The queue of frames to the peer. */
    struct outgoing *first, *last;
    struct endpoint *next_pending; /* in transport->pending, the list of endpoints with a queue */
    int is_pending;
    int gathered;            /* true while the queue waits for all requests of a batch to start */
    uint32_t sent, received; /* numbers of whole frames written to and received from the peer */

    /* What the peer has reported. */
    int heard; /* true if the peer has written to its ring to this rank */
    int left;  /* true if the peer has destroyed the root group and so reads nothing more */

    /* Only the handlers use the next fields. */
    size_t uncredited; /* bytes of eager messages for which the peer has not returned credit */
    size_t consumed;   /* bytes of eager messages for which this rank must return credit */
    /* time limit for a notice of the peer's death; 0 if no call has waited for the notice yet */
    int64_t notice_due;
    int device_rts_limits;   /* from the peer's CTS: bits of device_rendezvous.h */
    uint64_t device_cancels; /* number of DEVICE_CANCEL frames received */
};

/* True if there is a connection or if this rank is opening one. */
static inline int endpoint_is_connected(const struct endpoint *endpoint)
{
    return endpoint->out || endpoint->own_connection == OWN_OPENING;
}

struct transport_handlers {
    /* Called when the header of a frame has come.  If a payload follows, the handler sets
     * stream->left and stream->into, which are 0 and NULL before.  The handler returns -1 if the
     * header is not valid; then the connection is closed. */
    int (*on_header)(struct mesh *mesh, struct frame_stream *stream);
    /* Called when a whole frame has come, with or without a payload. */
    void (*on_payload)(struct mesh *mesh, struct frame_stream *stream);
    /* Called when a connection ended.  The rest of a frame that has come in part is lost. */
    void (*on_closed)(struct mesh *mesh, struct frame_stream *stream, const char *why);
    /* Called when a whole frame was written.  The handlers own `out` again. */
    void (*on_sent)(struct mesh *mesh, struct outgoing *out);
    /* Called when nothing can be sent to a peer any more, for the reason in endpoint->why.  The
     * handler removes the queued frames, and fails requests that wait for the peer's answer before
     * they queue a frame. */
    void (*on_send_failed)(struct mesh *mesh, int peer);
    /* Called when nothing will come from a peer any more, for the reason in endpoint->why. */
    void (*on_peer_gone)(struct mesh *mesh, int peer);
    /* Called when this process can't accept connections.  The handler fails receives from peers
     * that have no connection to this rank. */
    void (*on_no_connections)(struct mesh *mesh, const char *why);
    /* Returns 1 if this rank is receiving a large message. */
    int (*expects_much)(const struct mesh *mesh);
};

struct transport {
    pthread_mutex_t lock;               /* protects this struct and the handlers' state */
    struct transport_handlers handlers; /* a copy, which saves a pointer for each frame */
    struct endpoint *endpoints;         /* [mesh->size] */
    struct frame_stream *streams;
    int closed;               /* number of streams that are closed but not yet freed */
    struct endpoint *pending; /* list of the endpoints to which progress() writes */
    unsigned looks;           /* number of passes of progress_for() */
    /* Count of reads and writes that moved bytes.  Waiting threads read it without the lock. */
    _Atomic unsigned moves;
    int gathering;              /* true while frames are queued and not written at once */
    int64_t looked_for_loss_ms; /* time of the last check by end_lost_connections() */
    int ended;                  /* number of endpoints that check_ended_peers() must check */
};

static inline struct endpoint *endpoint_of(const struct mesh *mesh, int peer)
{
    return &mesh->transport->endpoints[peer];
}

static inline void transport_moved(struct transport *t)
{
    const unsigned moves = atomic_load_explicit(&t->moves, memory_order_relaxed);

    atomic_store_explicit(&t->moves, moves + 1, memory_order_relaxed); /* the caller has the lock */
}

/* transport_open() and transport_close() are in progress.c and are called without the lock.  The
 * caller must call transport_close() even if transport_open() fails. */
ct_status transport_open(struct mesh *mesh, const struct transport_handlers *handlers);
void transport_close(struct mesh *mesh); /* the queues must be empty */

/* Reads and writes what is possible now on all connections. */
void progress(struct mesh *mesh);
/* Does what progress() does, but most calls skip the sockets of other peers.  For a thread that
 * calls this function in a loop until a message of `bytes` bytes moves to or from `peer`, which may
 * be CT_ANY_SOURCE. */
void progress_for(struct mesh *mesh, int peer, size_t bytes);

/* ---- endpoint.c ----------------------------------------------------------- */

/* Opens a connection to the peer, or starts to, over the first usable link of link_kinds[]. */
ct_status peer_connect(struct mesh *mesh, int peer);
/* Takes the connections that wireup.c has made, and the errors of those that failed. */
void take_arrivals(struct mesh *mesh);
/* Returns 1 if there is a connection to the peer, or if one was opened or is being opened. */
int ensure_connection(struct mesh *mesh, int peer);
/* True if the peer shares memory with this rank, so that a connection to it costs nothing. */
static inline int is_neighbour(const struct mesh *mesh, int peer)
{
    return mesh->node.base && mesh->peers[peer].local >= 0 && peer != mesh->rank;
}
/* Opens a connection to a peer to which this rank has not sent yet, so that each of the two ranks
 * notices when the other rank's process ends. */
void connect_for_liveness(struct mesh *mesh, int peer);

/* Queues a frame, and writes as much of the queue as the link takes. */
void send_out(struct mesh *mesh, int peer, struct outgoing *out);
/* Queues a frame before all frames that are not begun, and writes as much of the queue as the link
 * takes.  For answers that the peer waits for and that may overtake other frames. */
void send_answer_out(struct mesh *mesh, int peer, struct outgoing *out);
/* Queues a frame.  The current or next progress() writes the frame after it has read the links. */
void send_out_later(struct mesh *mesh, int peer, struct outgoing *out);
/* flush_to() writes the queue of a peer, and flush_pending() the queues of all peers.
 * flush_gathered() writes the queue of a peer only if the queue waited for the end of a batch. */
void flush_to(struct mesh *mesh, int peer);
void flush_pending(struct mesh *mesh);
void flush_gathered(struct mesh *mesh, int peer);
/* Returns 1 if a frame that a peer may still read is queued or in the kernel's send buffer. */
int is_on_its_way(struct mesh *mesh);

/* Reads from a stream, up to a limit of bytes.  Returns 1 if more bytes may be there, else 0. */
int read_stream(struct mesh *mesh, struct frame_stream *stream);
/* Handles the epoll events of a held stream. */
void look_at_held(struct mesh *mesh, struct frame_stream *stream, uint32_t events);
/* Returns the connection on which a message of `bytes` bytes most likely comes. */
const struct link *link_from(const struct endpoint *endpoint, size_t bytes);

void free_closed_streams(struct mesh *mesh);
/* Checks for each endpoint that has lost its last stream whether the peer is gone. */
void check_ended_peers(struct mesh *mesh);
/* Closes connections to hosts that no longer answer.  Checks at most once a second. */
void end_lost_connections(struct mesh *mesh);
/* peer_unreachable() records that nothing can be sent to the peer any more.  peer_gone() records
 * that nothing will come from the peer either.  The two call the handlers even if the state was
 * recorded before, since frames and requests may have been queued meanwhile. */
void peer_unreachable(struct mesh *mesh, int peer, const char *why);
void peer_gone(struct mesh *mesh, int peer, const char *why);

#endif
