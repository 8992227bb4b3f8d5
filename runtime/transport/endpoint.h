/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - what a rank has of one peer: its connection, and the frames that wait for it.
 *
 * Whether frames can go and come is one state.  endpoint_change_state() alone changes it; the table
 * beside it says which state may follow which.  It closes the connection, and calls the handlers
 * that fail what waits. */
#ifndef RUNTIME_TRANSPORT_ENDPOINT_H
#define RUNTIME_TRANSPORT_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

struct unexpected; /* messaging_internal.h */

/* Up to ENDPOINT_CONNECTED frames can be sent, or queued until there is a connection.  From
 * ENDPOINT_FAILED on the peer counts as gone. */
enum endpoint_state {
    ENDPOINT_CLOSED,     /* there is no connection, and this rank opens none */
    ENDPOINT_CONNECTING, /* this rank opens one */
    ENDPOINT_CONNECTED,
    /* Nothing can be sent any more.  What the peer has sent is still read, from its connection or
     * from one that is yet to be taken. */
    ENDPOINT_DRAINING,
    ENDPOINT_ENDED, /* the connection has ended; when this look is over, the peer is gone */
    /* No connection could be made, or the peer's process has ended without one.  If the peer opens
     * one after all, it is used: nothing was lost. */
    ENDPOINT_FAILED,
    ENDPOINT_GONE /* for good; a connection that is still there is read until it ends */
};

struct endpoint {
    enum endpoint_state state;
    int peer;
    struct link *link;          /* NULL: there is none, or it was closed */
    struct endpoint *next_open; /* in transport->open, if it has a link */
    /* When check_ended_peers() takes the peer for gone; 0: it need not look. */
    int64_t gone_due;

    /* Sending. */
    struct outgoing *first, *last;
    struct endpoint *next_pending; /* in transport->pending, where those with a queue stand */
    uint8_t is_pending;
    uint8_t is_full;  /* the socket takes no more bytes for now */
    uint8_t gathered; /* the queue is written when all requests of a batch are started */

    /* Receiving: a frame's header, then its payload. */
    uint8_t has_written; /* the peer has written to its ring to us */
    struct frame head;
    size_t head_got;
    size_t payload_left; /* bytes of the payload that are still to come; set by on_header() */
    unsigned char *into; /* where they go; NULL: they are dropped */

    /* The handlers' own. */
    struct request *request;       /* the payload is this receive's, or */
    struct unexpected *unexpected; /* is kept here */
    uint8_t has_left;  /* the peer has destroyed the root group: it reads nothing any more */
    size_t uncredited; /* bytes of eager messages that the peer has not credited back */
    size_t consumed;   /* bytes of its eager messages that this rank has yet to credit back */
    /* until when a death notice of it may still come; 0: it was not missed yet */
    int64_t notice_due;
    int device_rts_limits;   /* what the peer's CTS said: bits of device_rendezvous.h */
    uint64_t device_cancels; /* how many DEVICE_CANCEL frames have come */

    char why[200]; /* why nothing can be sent, or nothing comes */
};

static inline int endpoint_can_send(const struct endpoint *endpoint)
{
    return endpoint->state <= ENDPOINT_CONNECTED;
}

static inline int endpoint_is_gone(const struct endpoint *endpoint)
{
    return endpoint->state >= ENDPOINT_FAILED;
}

/* Opens a connection to the peer, or begins to; link_kinds[] says in which order links are tried.
 */
ct_status peer_connect(struct mesh *mesh, int peer);
void take_arrivals(struct mesh *mesh); /* connections that wireup made, or could not make */
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

/* Reads what has come on its connection.  1: it stopped although more may be there. */
int read_link(struct mesh *mesh, struct endpoint *endpoint);

void check_ended_peers(struct mesh *mesh); /* is a peer gone whose connection has ended? */
/* Ends connections to hosts that answer no more; it looks once a second. */
void end_lost_connections(struct mesh *mesh);
/* Nothing can be sent to it; what it has sent is still read. */
void peer_unreachable(struct mesh *mesh, int peer, const char *why);
/* Its process has ended: the same, and it is gone when all that it sent was read. */
void peer_ended(struct mesh *mesh, int peer, const char *why);
/* Nothing can be sent to it, and nothing comes from it any more. */
void peer_gone(struct mesh *mesh, int peer, const char *why);
void drop_connections(struct mesh *mesh); /* with the mesh; no handler is called */

#endif
