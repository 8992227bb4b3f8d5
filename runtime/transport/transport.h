/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - frames to and from the peers of a mesh, over connections that come and go.
 *
 *   endpoint.c  the queue of frames to a peer, its connection, what comes on it, and when its end
 *               means that the peer is gone
 *   wireup.c    makes connections over sockets, in a thread of its own
 *   progress.c  one look at all connections
 *
 * The layer above (runtime/messaging) knows what a frame means: it registers its handlers when the
 * mesh is made, as a user of UCX registers active-message handlers.  transport->lock is the lock of
 * both layers: all functions here are called with it, and so are the handlers. */
#ifndef RUNTIME_TRANSPORT_TRANSPORT_H
#define RUNTIME_TRANSPORT_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/endpoint.h"
#include "runtime/transport/mesh.h"

struct transport_handlers {
    /* The header of a frame has come.  Sets endpoint->payload_left and ->into, which are 0 and
     * NULL, if a payload follows.  -1: the header is not valid, and the connection is closed. */
    int (*on_header)(struct mesh *mesh, struct endpoint *endpoint);
    /* All of a frame has come, also if it has no payload. */
    void (*on_payload)(struct mesh *mesh, struct endpoint *endpoint);
    /* A connection ended, perhaps within a frame, whose rest will not come
     * (endpoint->why). */
    void (*on_closed)(struct mesh *mesh, struct endpoint *endpoint);
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
    struct endpoint *open;              /* those with a connection */
    struct endpoint *pending;           /* a look writes the queues of these */
    unsigned looks;                     /* of progress_for() */
    /* How often bytes went in or out; a waiting thread reads it without the lock. */
    _Atomic unsigned moves;
    int gathering;              /* a batch is started: frames are queued and not yet written */
    int64_t looked_for_loss_ms; /* when end_lost_connections() last looked */
    int ended;                  /* endpoints for check_ended_peers() */
};

static inline struct endpoint *endpoint_of(const struct mesh *mesh, int peer)
{
    return &mesh->transport->endpoints[peer];
}

static inline void transport_moved(struct transport *t)
{
    const unsigned moves = atomic_load_explicit(&t->moves, memory_order_relaxed);

    atomic_store_explicit(&t->moves, moves + 1, memory_order_relaxed); /* only with the lock */
}

/* progress.c, without the lock.  transport_close() is owed even if it fails. */
ct_status transport_open(struct mesh *mesh, const struct transport_handlers *handlers);
void transport_close(struct mesh *mesh); /* NULL is fine; the queues are empty */

void progress(struct mesh *mesh);
/* The same for a thread that calls it in a loop until a message moves to or from one peer
 * (CT_ANY_SOURCE: any): it looks at the other connections only now and then. */
void progress_for(struct mesh *mesh, int peer);

#endif
