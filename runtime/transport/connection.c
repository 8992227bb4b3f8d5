/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - the life of a connection: opened, closed, buried; and when its end means that
 * the peer is gone.
 *
 * A rank closes its connections when it ends or leaves the mesh, never one alone.  A peer sends on
 * a connection that it opened once wireup.c has it here, and on one that we open perhaps a moment
 * before wireup.c has it.  So a peer is gone when all its connections have ended, none is left to
 * be taken and none is being made: then all it sent was read. */
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "runtime/net/socket.h"
#include "runtime/transport/transport.h"
#include "runtime/util/clock.h"

#define LOOK_FOR_LOSS_MS 1000
#define OPENING_MS 1000 /* of a connection to a peer that has ended */

void stream_watch(struct mesh *mesh, struct stream *stream, int add)
{
    const struct link *link = stream->link;
    const struct wire *wire = &mesh->transport->wires[stream->peer];
    struct epoll_event event = { .events = stream->muted ? EPOLLRDHUP : EPOLLIN,
                                 .data.ptr = stream };

    if (wire->full == link)
        event.events |= EPOLLOUT;
    epoll_ctl(mesh->waiter.epoll_fd, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, stream->link->fd, &event);
}

struct stream *stream_open(struct mesh *mesh, struct link *link, int peer)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->link = link;
    stream->peer = peer;
    stream->next = mesh->transport->streams;
    mesh->transport->streams = stream;
    if (link->fd >= 0) {
        stream_watch(mesh, stream, 1);
        atomic_store(&mesh->waiter.sockets, 1);
    }
    mesh->transport->wires[peer].streams++;
    return stream;
}

void stream_close(struct mesh *mesh, struct stream *stream, const char *why)
{
    struct transport *t = mesh->transport;
    struct wire *wire = &t->wires[stream->peer];

    stream->closed = 1; /* freed by progress(), which may be walking the list */
    if (stream->link->fd >= 0)
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    t->handlers.on_closed(mesh, stream, why);
    wire->streams--;
    wire->held -= stream->held;
    stream->held = 0;
    wire->ended_one = 1;
    peer_unreachable(mesh, stream->peer, why);
    if (wire->streams == 0 && wire->ended_ms == 0) {
        wire->ended_ms = clock_ms();
        snprintf(wire->why, sizeof wire->why, "%s", why);
        t->ended++;
    }
    close_held(mesh, stream->peer, why);
}

void peer_gone(struct mesh *mesh, int peer, const char *why)
{
    struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->gone && why != wire->why)
        snprintf(wire->why, sizeof wire->why, "%s", why);
    wire->gone = 1;
    mesh->transport->handlers.on_peer_gone(mesh, peer);
}

void peer_unreachable(struct mesh *mesh, int peer, const char *why)
{
    struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->unreachable && why != wire->why)
        snprintf(wire->why, sizeof wire->why, "%s", why);
    wire->unreachable = 1;
    mesh->transport->handlers.on_send_failed(mesh, peer);
}

static int is_known_dead(struct mesh *mesh, int peer)
{
    const int local = mesh->peers[peer].local;

    return mesh_death(mesh, peer) || (local >= 0 && node_peer_gone(&mesh->node, local));
}

/* Our own connection, and last words on it.  That attempt ends soon when its peer has ended, unless
 * another process has the port by now. */
static int may_still_come(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];

    return wire->opening
           && (clock_ms() - wire->ended_ms < OPENING_MS || !is_known_dead(mesh, peer));
}

void check_ended_peers(struct mesh *mesh)
{
    take_arrivals(mesh); /* what a peer said before its end may lie in another connection */
    for (int peer = 0; peer < mesh->size; peer++) {
        struct wire *wire = &mesh->transport->wires[peer];

        if (wire->ended_ms == 0 || (wire->streams == 0 && may_still_come(mesh, peer)))
            continue;
        wire->ended_ms = 0;
        mesh->transport->ended--;
        if (wire->streams == 0)
            peer_gone(mesh, peer, wire->why);
    }
}

void end_lost_connections(struct mesh *mesh)
{
    struct transport *t = mesh->transport;
    const int64_t now = clock_ms();

    if (now - t->looked_for_loss_ms < LOOK_FOR_LOSS_MS)
        return;
    t->looked_for_loss_ms = now;
    for (struct stream *stream = t->streams; stream; stream = stream->next)
        if (stream->link->fd >= 0 && !stream->closed && socket_host_is_lost(stream->link->fd))
            stream_close(mesh, stream, LINK_HOST_IS_LOST);
}

static void forget_link(struct wire *wire, const struct link *link)
{
    struct link **const places[] = { &wire->out, &wire->own, &wire->begun_on, &wire->full,
                                     &wire->theirs };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (*places[i] == link)
            *places[i] = NULL;
}

/* Nobody holds a closed stream any more: not the walk, not epoll's last answer. */
void free_closed_streams(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    for (struct stream **link = &t->streams; *link;) {
        struct stream *stream = *link;

        if (!stream->closed) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        forget_link(&t->wires[stream->peer], stream->link);
        stream->link->ops->close(stream->link);
        free(stream);
    }
}

/* To a peer that is there, and reads: a host that is lost never takes it, nor does a rank that has
 * left or whose process ended. */
int is_on_its_way(struct mesh *mesh)
{
    const struct transport *t = mesh->transport;
    int unsent;

    for (int peer = 0; peer < mesh->size; peer++) {
        const struct wire *wire = &t->wires[peer];

        if (wire->first && !wire->unreachable && !wire->left) {
            if (!is_known_dead(mesh, peer))
                return 1;
            peer_unreachable(mesh, peer, "its process ended");
        }
    }
    for (const struct stream *s = t->streams; s; s = s->next)
        if (s->link->fd >= 0 && !s->closed && !t->wires[s->peer].unreachable
            && ioctl(s->link->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
            return 1;
    return 0;
}
