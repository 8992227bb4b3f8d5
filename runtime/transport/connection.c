/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - the connection to a peer: made, written to, read, and closed.
 *
 * Frames to a peer wait in one queue until there is a connection; as much of the queue leaves in
 * one write as the link takes.  A pair of ranks has one connection, so frames arrive in the order
 * in which they were queued, and an acknowledgement rides on the next frame of the other
 * direction.  The rank that sends first opens the connection; if both do at once, wireup.c decides
 * which one is used.
 *
 * A rank closes its connections when it ends or leaves the mesh, never one alone.  A connection
 * that the peer opened carries frames only once wireup.c has it on this side; one that this rank
 * opened may carry some a moment before.  So a peer is gone when its connection has ended, or when
 * it is known to be dead, no connection of it waits to be taken and none is being made: then this
 * rank has read all that it sent. */
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "runtime/net/secure_channel.h"
#include "runtime/net/socket.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define PARTS_AT_ONCE 64 /* two of each message; it costs stack, and the kernel looks at each */
#define LARGE_WRITE (256u << 10) /* bytes of one write */
/* bytes that are read from one stream, so that no other starves */
#define BYTES_PER_LOOK (1u << 20)
#define LOOK_FOR_LOSS_MS 1000
#define OPENING_MS 1000 /* how long to wait for a connection to a peer that has ended */

/* ---- Streams -------------------------------------------------------------------- */

static void stream_watch(struct mesh *mesh, struct stream *stream, int add)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = stream };

    if (mesh->transport->wires[stream->peer].is_full)
        event.events |= EPOLLOUT;
    epoll_ctl(mesh->waiter.epoll_fd, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, stream->link->fd, &event);
}

static struct stream *stream_open(struct mesh *mesh, struct link *link, int peer)
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
    mesh->transport->wires[peer].stream = stream;
    return stream;
}

static void stream_close(struct mesh *mesh, struct stream *stream, const char *why)
{
    struct transport *t = mesh->transport;
    struct wire *wire = &t->wires[stream->peer];

    stream->closed = 1; /* freed by progress(), which may be walking the list */
    t->closed++;
    if (stream->link->fd >= 0)
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    t->handlers.on_closed(mesh, stream, why);
    wire->stream = NULL;
    wire->ended = 1;
    peer_unreachable(mesh, stream->peer, why);
    if (wire->ended_ms == 0) {
        wire->ended_ms = clock_ms();
        snprintf(wire->why, sizeof wire->why, "%s", why);
        t->ended++;
    }
}

/* ---- Making connections --------------------------------------------------------- */

/* The peer connected again, because our welcome on the first connection did not arrive; so the
 * peer has sent nothing on that one.  If we have, that is lost.  0: it is. */
static int replace_connection(struct mesh *mesh, struct stream *stream)
{
    if (stream->link->used) {
        stream_close(mesh, stream, "its connection broke while it was made");
        return 0;
    }
    stream->closed = 1;
    mesh->transport->closed++;
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    return 1;
}

static void link_not_made(struct mesh *mesh, int peer, const char *why)
{
    mesh->transport->wires[peer].opening = 0;
    peer_unreachable(mesh, peer, why);
    peer_gone(mesh, peer, why);
}

/* Our own attempt to make a connection may have failed before; nothing was lost by that. */
static void link_made(struct mesh *mesh, int peer, struct link *link)
{
    struct wire *wire = &mesh->transport->wires[peer];

    wire->opening = 0;
    if (wire->ended || (wire->stream && !replace_connection(mesh, wire->stream))) {
        link->ops->close(link); /* the peer sees its end */
        return;
    }
    wire->is_full = 0;
    if (!stream_open(mesh, link, peer)) {
        link->ops->close(link);
        link_not_made(mesh, peer, "no memory for a connection");
        return;
    }
    wire->link = link;
    wire->gone = wire->unreachable = 0;
}

static void take_connection(struct mesh *mesh, const struct arrival *arrival)
{
    struct link *link = link_tcp_over(arrival->fd, arrival->channel);

    if (link) {
        link_made(mesh, arrival->peer, link);
        return;
    }
    secure_channel_destroy(arrival->channel);
    descriptor_close(arrival->fd); /* the peer sees its end */
    link_not_made(mesh, arrival->peer, "no memory for a connection");
}

void take_arrivals(struct mesh *mesh)
{
    struct arrival arrival;
    char why[160];

    if (!mesh->wireup)
        return;
    while (wireup_take(mesh->wireup, &arrival)) {
        if (arrival.fd >= 0)
            take_connection(mesh, &arrival);
        else
            link_not_made(mesh, arrival.peer, arrival.why);
    }
    if (wireup_is_full(mesh->wireup, why, sizeof why))
        mesh->transport->handlers.on_no_connections(mesh, why);
}

ct_status peer_connect(struct mesh *mesh, int peer)
{
    struct link *link;
    ct_status status = CT_ERR_UNSUPPORTED;

    for (int i = 0; link_kinds[i]; i++) {
        if (mesh->only_link && strcmp(mesh->only_link, link_kinds[i]->name))
            continue;
        if (!link_kinds[i]->can_reach(mesh, peer))
            continue;
        status = link_kinds[i]->open(mesh, peer, &link);
        if (status != CT_OK)
            return status;
        mesh->transport->wires[peer].opening = 1;
        if (link)
            link_made(mesh, peer, link);
        return CT_OK;
    }
    return ct_fail(status, "there is no link to it");
}

int ensure_connection(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];

    if (wire->unreachable || wire->gone)
        return 0;
    return wire->link || wire->opening || peer_connect(mesh, peer) == CT_OK;
}

void connect_for_liveness(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->link && !wire->opening && !wire->unreachable && !wire->gone
        && peer_connect(mesh, peer) != CT_OK)
        link_not_made(mesh, peer, ct_last_error());
}

/* ---- Sending -------------------------------------------------------------------- */

/* While the socket is full, a thread that sleeps wakes when it takes more bytes. */
static void watch_room(struct mesh *mesh, struct wire *wire, int is_full)
{
    is_full = is_full && wire->link->fd >= 0;
    if (is_full == wire->is_full)
        return;
    wire->is_full = is_full;
    if (wire->stream)
        stream_watch(mesh, wire->stream, 0);
}

/* The parts of queued frames, as many as fit; returns their number. */
static int parts_of(const struct wire *wire, struct iovec *parts)
{
    int count = 0;

    for (struct outgoing *out = wire->first; out && count < PARTS_AT_ONCE - 1; out = out->next) {
        const size_t head = sizeof out->frame;
        const size_t in_head = out->written < head ? out->written : head;
        const size_t in_payload = out->written - in_head;

        if (in_head < head)
            parts[count++] = (struct iovec){ (char *)&out->frame + in_head, head - in_head };
        if (in_payload < out->bytes)
            parts[count++] = (struct iovec){ (void *)((uintptr_t)out->payload + in_payload),
                                             out->bytes - in_payload };
    }
    return count;
}

/* The link took so many bytes of the queue. */
static void advance_queue(struct mesh *mesh, struct wire *wire, size_t bytes)
{
    while (bytes > 0) {
        struct outgoing *out = wire->first;
        const size_t left = sizeof out->frame + out->bytes - out->written;

        if (bytes < left) {
            out->written += bytes;
            return;
        }
        bytes -= left;
        out->written += left;
        wire->first = out->next;
        mesh->transport->handlers.on_sent(mesh, out);
    }
}

/* Writes as much as the link takes.  But while a large message comes over a socket, it does one
 * large write, and the rest at the next look: if both ranks fill their sockets before they read,
 * the bytes wait in the kernel until no cache has them, and that is slower.  The socket still
 * has room then, so a thread that sleeps until it has wakes at once.  On an encrypted link, whose
 * peer may take bytes as fast as this rank encrypts them, it always does so, or no deadline would
 * be seen. */
void flush_to(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];
    struct link *const link = wire->link;
    struct iovec parts[PARTS_AT_ONCE];
    ssize_t taken = 1;

    wire->gathered = 0;
    if (!link)
        return;
    while (wire->first && !wire->unreachable && taken > 0) {
        taken = link->ops->write(link, parts, parts_of(wire, parts));
        if (taken > 0) {
            link->used = 1;
            transport_moved(mesh->transport);
            advance_queue(mesh, wire, (size_t)taken);
            if (taken > LARGE_WRITE && wire->first && link->fd >= 0
                && (link->ops->encrypts || mesh->transport->handlers.expects_much(mesh)))
                break;
        }
    }
    if (taken < 0)
        peer_unreachable(mesh, peer, link->why);
    else
        watch_room(mesh, wire, wire->first != NULL);
}

void flush_gathered(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->gathered)
        return;
    wire->gathered = 0;
    flush_to(mesh, peer);
}

static void connection_add_pending(struct transport *t, struct wire *wire)
{
    if (wire->is_pending)
        return;
    wire->is_pending = 1;
    wire->next_pending = t->pending;
    t->pending = wire;
}

/* Writing may end requests, and so queue frames for other peers: their wires are added in front. */
void flush_pending(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    for (struct wire *wire = t->pending; wire; wire = wire->next_pending)
        if (wire->first)
            flush_to(mesh, (int)(wire - t->wires));
    for (struct wire **link = &t->pending; *link;) {
        struct wire *wire = *link;

        if (wire->first) {
            link = &wire->next_pending;
            continue;
        }
        wire->is_pending = 0;
        *link = wire->next_pending;
    }
}

static void queue_last(struct wire *wire, struct outgoing *out)
{
    out->next = NULL;
    if (wire->first)
        wire->last->next = out;
    else
        wire->first = out;
    wire->last = out;
}

static void queue_first(struct wire *wire, struct outgoing *out)
{
    struct outgoing **place = &wire->first;

    if (*place && (*place)->written > 0)
        place = &(*place)->next;
    out->next = *place;
    *place = out;
    if (!out->next)
        wire->last = out;
}

/* It is in the queue. */
static void send_queued(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];

    connection_add_pending(mesh->transport, wire);
    if (!wire->unreachable && !wire->link && !wire->opening && peer_connect(mesh, peer) != CT_OK)
        peer_unreachable(mesh, peer, ct_last_error());
    else if (wire->unreachable)
        peer_unreachable(mesh, peer, wire->why);
    else if (mesh->transport->gathering)
        wire->gathered = 1;
    else
        flush_to(mesh, peer);
}

/* Nothing waits before it, and the link is memory, which takes most frames whole.  0: what it did
 * not take is to be queued. */
static int write_at_once(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct transport *t = mesh->transport;
    struct wire *wire = &t->wires[peer];
    struct iovec parts[2] = { { &out->frame, sizeof out->frame },
                              { (void *)(uintptr_t)out->payload, out->bytes } };
    ssize_t taken;

    if (wire->first || !wire->link || wire->link->fd >= 0 || wire->unreachable || t->gathering)
        return 0;
    taken = wire->link->ops->write(wire->link, parts, out->bytes > 0 ? 2 : 1);
    if (taken <= 0)
        return 0;
    transport_moved(t);
    out->written = (size_t)taken;
    if (out->written < sizeof out->frame + out->bytes)
        return 0;
    t->handlers.on_sent(mesh, out);
    return 1;
}

void send_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    if (write_at_once(mesh, peer, out))
        return;
    queue_last(&mesh->transport->wires[peer], out);
    send_queued(mesh, peer);
}

void send_answer_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    queue_first(&mesh->transport->wires[peer], out);
    send_queued(mesh, peer);
}

void send_out_later(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct transport *t = mesh->transport;
    const int gathering = t->gathering;

    t->gathering = 1;
    send_out(mesh, peer, out);
    t->gathering = gathering;
}

/* ---- Receiving ------------------------------------------------------------------ */

static void take_frame(struct mesh *mesh, struct stream *stream)
{
    stream->left = 0;
    stream->into = NULL;
    if (mesh->transport->handlers.on_header(mesh, stream) < 0)
        stream_close(mesh, stream, NO_FRAME);
    else if (stream->left == 0)
        mesh->transport->handlers.on_payload(mesh, stream);
}

/* 1: something moved. */
static int read_head(struct mesh *mesh, struct stream *stream)
{
    const size_t want = sizeof stream->head;
    const ssize_t n = stream->link->ops->read(
        stream->link, (char *)&stream->head + stream->head_got, want - stream->head_got);

    if (n < 0) {
        stream_close(mesh, stream, stream->link->why);
        return 0;
    }
    stream->head_got += (size_t)n;
    if (stream->head_got < want)
        return n > 0;
    stream->head_got = 0;
    if (stream->head.magic != FRAME_MAGIC) {
        stream_close(mesh, stream, NO_FRAME);
        return 0;
    }
    stream->link->used = 1;
    take_frame(mesh, stream);
    return 1;
}

static int read_payload(struct mesh *mesh, struct stream *stream)
{
    unsigned char nowhere[4096];
    const size_t want = stream->into                    ? stream->left
                        : stream->left < sizeof nowhere ? stream->left
                                                        : sizeof nowhere;
    const ssize_t n =
        stream->link->ops->read(stream->link, stream->into ? stream->into : nowhere, want);

    if (n < 0) {
        stream_close(mesh, stream, stream->link->why);
        return 0;
    }
    stream->left -= (size_t)n;
    if (stream->into)
        stream->into += n;
    if (stream->left == 0)
        mesh->transport->handlers.on_payload(mesh, stream);
    return (int)(n > 0 ? n : 0);
}

int read_stream(struct mesh *mesh, struct stream *stream)
{
    struct link *link = stream->link;
    size_t moved = 0;
    int n = 1;

    link->dry = 0;
    while (n > 0 && !stream->closed && (moved < BYTES_PER_LOOK || link->ahead > 0)) {
        n = stream->left > 0 ? read_payload(mesh, stream) : read_head(mesh, stream);
        moved += (size_t)(n > 0 ? n : 0);
    }
    if (moved > 0)
        transport_moved(mesh->transport);
    return n > 0 && !stream->closed;
}

/* ---- When a peer is gone -------------------------------------------------------- */

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

/* Frames of a peer that has ended may still come on a connection that is being made.  That attempt
 * fails soon, unless another process has the peer's port by now. */
static int may_still_come(const struct wire *wire)
{
    return wire->opening && clock_ms() - wire->ended_ms < OPENING_MS;
}

void check_ended_peers(struct mesh *mesh)
{
    take_arrivals(mesh); /* what a peer sent before its end may lie in a new connection */
    for (int peer = 0; peer < mesh->size; peer++) {
        struct wire *wire = &mesh->transport->wires[peer];

        if (wire->ended_ms == 0 || (!wire->stream && may_still_come(wire)))
            continue;
        wire->ended_ms = 0;
        mesh->transport->ended--;
        if (!wire->stream)
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

/* Called when no loop over the list runs and no result of epoll_wait() is in use: neither can
 * point to a closed stream any more. */
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
        t->closed--;
        if (t->wires[stream->peer].link == stream->link)
            t->wires[stream->peer].link = NULL;
        stream->link->ops->close(stream->link);
        free(stream);
    }
}

/* Only to a peer that is there and reads: a host that is lost takes nothing, nor does a rank
 * that has left or whose process has ended. */
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

/* ---- A peer in messages --------------------------------------------------------- */

const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];

    snprintf(text, size, "rank %d (pid %d on %s)", peer, p->pid, mesh->hosts[p->node].name);
    return text;
}

const struct control_death *mesh_death(const struct mesh *mesh, int peer)
{
    const uint32_t number = atomic_load(&mesh->peers[peer].death);

    return number ? control_death(&mesh->control, number - 1) : NULL;
}

void mesh_death_words(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];
    char how[96];

    control_death_words(mesh_death(mesh, peer), how, sizeof how);
    snprintf(text, size, "rank %d (pid %d on %s) %s", peer, p->pid, mesh->hosts[p->node].name, how);
}
