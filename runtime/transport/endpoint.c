/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - the connection to a peer: made, written to, read, and closed.
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

#define NO_FRAME "it sent bytes that are no message"
#define PARTS_AT_ONCE 64 /* two of each message; it costs stack, and the kernel looks at each */
#define LARGE_WRITE (256u << 10) /* bytes of one write */
/* bytes that are read from one connection, so that no other starves */
#define BYTES_PER_LOOK (1u << 20)
#define LOOK_FOR_LOSS_MS 1000
#define OPENING_MS 1000 /* how long to wait for a connection to a peer that has ended */

/* ---- States --------------------------------------------------------------------- */

#define TO(state) (1u << ENDPOINT_##state)

/* What may follow each state. */
static const uint8_t endpoint_moves[] = {
    [ENDPOINT_CLOSED] = TO(CONNECTING) | TO(CONNECTED) | TO(DRAINING) | TO(FAILED),
    [ENDPOINT_CONNECTING] = TO(CONNECTED) | TO(DRAINING) | TO(FAILED),
    [ENDPOINT_CONNECTED] = TO(DRAINING) | TO(ENDED) | TO(GONE),
    [ENDPOINT_DRAINING] = TO(CONNECTED) | TO(ENDED) | TO(FAILED) | TO(GONE),
    [ENDPOINT_ENDED] = TO(GONE),
    [ENDPOINT_FAILED] = TO(CONNECTED),
    [ENDPOINT_GONE] = 0,
};

static void endpoint_watch(struct mesh *mesh, struct endpoint *endpoint, int operation)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = endpoint };

    if (endpoint->is_full)
        event.events |= EPOLLOUT;
    epoll_ctl(mesh->waiter.epoll_fd, operation, endpoint->link->fd, &event);
}

static void endpoint_open_link(struct mesh *mesh, struct endpoint *endpoint, struct link *link)
{
    endpoint->link = link;
    endpoint->is_full = 0;
    endpoint->next_open = mesh->transport->open;
    mesh->transport->open = endpoint;
    if (link->fd < 0)
        return;
    endpoint_watch(mesh, endpoint, EPOLL_CTL_ADD);
    atomic_store(&mesh->waiter.sockets, 1);
}

/* Removed from epoll first: a child of fork() may hold the connection open. */
static void endpoint_close_link(struct mesh *mesh, struct endpoint *endpoint)
{
    struct endpoint **place = &mesh->transport->open;

    while (*place != endpoint)
        place = &(*place)->next_open;
    *place = endpoint->next_open;
    if (endpoint->link->fd >= 0)
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, endpoint->link->fd, NULL);
    endpoint->link->ops->close(endpoint->link);
    endpoint->link = NULL;
}

void drop_connections(struct mesh *mesh)
{
    while (mesh->transport->open)
        endpoint_close_link(mesh, mesh->transport->open);
}

/* check_ended_peers() looks at it from then on. */
static void endpoint_check_at(struct mesh *mesh, struct endpoint *endpoint, int64_t due)
{
    mesh->transport->ended += endpoint->gone_due == 0;
    endpoint->gone_due = due;
}

/* 0: that state can't follow.  why NULL: the reason stays as it is. */
static int endpoint_change_state(struct mesh *mesh, struct endpoint *endpoint,
                                 enum endpoint_state state, const char *why)
{
    const struct transport_handlers *handlers = &mesh->transport->handlers;
    const int could_send = endpoint_can_send(endpoint);

    if (!(endpoint_moves[endpoint->state] >> state & 1))
        return 0;
    if (why && why != endpoint->why)
        snprintf(endpoint->why, sizeof endpoint->why, "%s", why);
    endpoint->state = state;
    if (state == ENDPOINT_ENDED) {
        handlers->on_closed(mesh, endpoint);
        endpoint_close_link(mesh, endpoint);
        endpoint_check_at(mesh, endpoint, clock_ms());
    }
    if (could_send && !endpoint_can_send(endpoint))
        handlers->on_send_failed(mesh, endpoint->peer);
    if (endpoint_is_gone(endpoint))
        handlers->on_peer_gone(mesh, endpoint->peer);
    return 1;
}

/* The connection has ended. */
static void endpoint_end(struct mesh *mesh, struct endpoint *endpoint, const char *why)
{
    if (endpoint_change_state(mesh, endpoint, ENDPOINT_ENDED, why))
        return;
    mesh->transport->handlers.on_closed(mesh, endpoint); /* the peer counted as gone before */
    endpoint_close_link(mesh, endpoint);
}

/* ---- Making connections --------------------------------------------------------- */

/* The peer connected again, because our welcome on the first connection did not arrive; so the
 * peer has sent nothing on that one.  If we have, that is lost.  0: it is. */
static int make_room_for_link(struct mesh *mesh, struct endpoint *endpoint)
{
    if (endpoint->link->used) {
        endpoint_end(mesh, endpoint, "its connection broke while it was made");
        return 0;
    }
    endpoint_close_link(mesh, endpoint);
    return 1;
}

/* Our own attempt to make a connection may have failed before; nothing was lost by that. */
static void link_made(struct mesh *mesh, int peer, struct link *link)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (endpoint->link ? make_room_for_link(mesh, endpoint)
                       : endpoint_change_state(mesh, endpoint, ENDPOINT_CONNECTED, NULL))
        endpoint_open_link(mesh, endpoint, link);
    else
        link->ops->close(link); /* the peer sees its end */
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
    peer_gone(mesh, arrival->peer, "no memory for a connection");
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
            peer_gone(mesh, arrival.peer, arrival.why);
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
        if (link)
            link_made(mesh, peer, link);
        else
            endpoint_change_state(mesh, endpoint_of(mesh, peer), ENDPOINT_CONNECTING, NULL);
        return CT_OK;
    }
    return ct_fail(status, "there is no link to it");
}

int ensure_connection(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);

    return endpoint_can_send(endpoint)
           && (endpoint->state != ENDPOINT_CLOSED || peer_connect(mesh, peer) == CT_OK);
}

void connect_for_liveness(struct mesh *mesh, int peer)
{
    if (endpoint_of(mesh, peer)->state == ENDPOINT_CLOSED && peer_connect(mesh, peer) != CT_OK)
        peer_gone(mesh, peer, ct_last_error());
}

/* ---- Sending -------------------------------------------------------------------- */

/* While the socket is full, a thread that sleeps wakes when it takes more bytes. */
static void watch_room(struct mesh *mesh, struct endpoint *endpoint, int is_full)
{
    is_full = is_full && endpoint->link->fd >= 0;
    if (is_full == endpoint->is_full)
        return;
    endpoint->is_full = (uint8_t)is_full;
    endpoint_watch(mesh, endpoint, EPOLL_CTL_MOD);
}

/* The parts of queued frames, as many as fit; returns their number. */
static int parts_of(const struct endpoint *endpoint, struct iovec *parts)
{
    int count = 0;

    for (struct outgoing *out = endpoint->first; out && count < PARTS_AT_ONCE - 1;
         out = out->next) {
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
static void advance_queue(struct mesh *mesh, struct endpoint *endpoint, size_t bytes)
{
    while (bytes > 0) {
        struct outgoing *out = endpoint->first;
        const size_t left = sizeof out->frame + out->bytes - out->written;

        if (bytes < left) {
            out->written += bytes;
            return;
        }
        bytes -= left;
        out->written += left;
        endpoint->first = out->next;
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
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct link *const link = endpoint->link;
    struct iovec parts[PARTS_AT_ONCE];
    ssize_t taken = 1;

    endpoint->gathered = 0;
    if (endpoint->state != ENDPOINT_CONNECTED)
        return;
    while (endpoint->first && taken > 0) {
        taken = link->ops->write(link, parts, parts_of(endpoint, parts));
        if (taken > 0) {
            link->used = 1;
            transport_moved(mesh->transport);
            advance_queue(mesh, endpoint, (size_t)taken);
            if (taken > LARGE_WRITE && endpoint->first && link->fd >= 0
                && (link->ops->encrypts || mesh->transport->handlers.expects_much(mesh)))
                break;
        }
    }
    if (taken < 0)
        peer_unreachable(mesh, peer, link->why);
    else
        watch_room(mesh, endpoint, endpoint->first != NULL);
}

void flush_gathered(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (!endpoint->gathered)
        return;
    endpoint->gathered = 0;
    flush_to(mesh, peer);
}

static void endpoint_add_pending(struct transport *t, struct endpoint *endpoint)
{
    if (endpoint->is_pending)
        return;
    endpoint->is_pending = 1;
    endpoint->next_pending = t->pending;
    t->pending = endpoint;
}

/* Writing may end requests, and so queue frames for other peers: their endpoints are added in
 * front.
 */
void flush_pending(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    for (struct endpoint *endpoint = t->pending; endpoint; endpoint = endpoint->next_pending)
        if (endpoint->first)
            flush_to(mesh, endpoint->peer);
    for (struct endpoint **link = &t->pending; *link;) {
        struct endpoint *endpoint = *link;

        if (endpoint->first) {
            link = &endpoint->next_pending;
            continue;
        }
        endpoint->is_pending = 0;
        *link = endpoint->next_pending;
    }
}

static void queue_last(struct endpoint *endpoint, struct outgoing *out)
{
    out->next = NULL;
    if (endpoint->first)
        endpoint->last->next = out;
    else
        endpoint->first = out;
    endpoint->last = out;
}

static void queue_first(struct endpoint *endpoint, struct outgoing *out)
{
    struct outgoing **place = &endpoint->first;

    if (*place && (*place)->written > 0)
        place = &(*place)->next;
    out->next = *place;
    *place = out;
    if (!out->next)
        endpoint->last = out;
}

/* It is in the queue. */
static void send_queued(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    endpoint_add_pending(mesh->transport, endpoint);
    if (endpoint->state == ENDPOINT_CLOSED && peer_connect(mesh, peer) != CT_OK)
        peer_unreachable(mesh, peer, ct_last_error());
    else if (!endpoint_can_send(endpoint))
        peer_unreachable(mesh, peer, endpoint->why);
    else if (mesh->transport->gathering)
        endpoint->gathered = 1;
    else
        flush_to(mesh, peer);
}

/* Nothing waits before it, and the link is memory, which takes most frames whole.  0: what it did
 * not take is to be queued. */
static int write_at_once(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct transport *t = mesh->transport;
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct iovec parts[2] = { { &out->frame, sizeof out->frame },
                              { (void *)(uintptr_t)out->payload, out->bytes } };
    ssize_t taken;

    if (endpoint->state != ENDPOINT_CONNECTED || endpoint->first || endpoint->link->fd >= 0
        || t->gathering)
        return 0;
    taken = endpoint->link->ops->write(endpoint->link, parts, out->bytes > 0 ? 2 : 1);
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
    queue_last(endpoint_of(mesh, peer), out);
    send_queued(mesh, peer);
}

void send_answer_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    queue_first(endpoint_of(mesh, peer), out);
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

static void take_frame(struct mesh *mesh, struct endpoint *endpoint)
{
    endpoint->payload_left = 0;
    endpoint->into = NULL;
    if (mesh->transport->handlers.on_header(mesh, endpoint) < 0)
        endpoint_end(mesh, endpoint, NO_FRAME);
    else if (endpoint->payload_left == 0)
        mesh->transport->handlers.on_payload(mesh, endpoint);
}

/* 1: something moved. */
static int read_head(struct mesh *mesh, struct endpoint *endpoint)
{
    const size_t want = sizeof endpoint->head;
    const ssize_t n = endpoint->link->ops->read(
        endpoint->link, (char *)&endpoint->head + endpoint->head_got, want - endpoint->head_got);

    if (n < 0) {
        endpoint_end(mesh, endpoint, endpoint->link->why);
        return 0;
    }
    endpoint->head_got += (size_t)n;
    if (endpoint->head_got < want)
        return n > 0;
    endpoint->head_got = 0;
    if (endpoint->head.magic != FRAME_MAGIC) {
        endpoint_end(mesh, endpoint, NO_FRAME);
        return 0;
    }
    endpoint->link->used = 1;
    take_frame(mesh, endpoint);
    return 1;
}

static int read_payload(struct mesh *mesh, struct endpoint *endpoint)
{
    unsigned char nowhere[4096];
    const size_t want = endpoint->into                            ? endpoint->payload_left
                        : endpoint->payload_left < sizeof nowhere ? endpoint->payload_left
                                                                  : sizeof nowhere;
    const ssize_t n =
        endpoint->link->ops->read(endpoint->link, endpoint->into ? endpoint->into : nowhere, want);

    if (n < 0) {
        endpoint_end(mesh, endpoint, endpoint->link->why);
        return 0;
    }
    endpoint->payload_left -= (size_t)n;
    if (endpoint->into)
        endpoint->into += n;
    if (endpoint->payload_left == 0)
        mesh->transport->handlers.on_payload(mesh, endpoint);
    return (int)(n > 0 ? n : 0);
}

int read_link(struct mesh *mesh, struct endpoint *endpoint)
{
    struct link *const link = endpoint->link;
    size_t moved = 0;
    int n = 1;

    link->dry = 0;
    while (n > 0 && endpoint->link && (moved < BYTES_PER_LOOK || link->ahead > 0)) {
        n = endpoint->payload_left > 0 ? read_payload(mesh, endpoint) : read_head(mesh, endpoint);
        moved += (size_t)(n > 0 ? n : 0);
    }
    if (moved > 0)
        transport_moved(mesh->transport);
    return n > 0 && endpoint->link;
}

/* ---- When a peer is gone -------------------------------------------------------- */

void peer_gone(struct mesh *mesh, int peer, const char *why)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    const int had_connection = endpoint->link || endpoint->state == ENDPOINT_ENDED;

    if (!endpoint_change_state(mesh, endpoint, had_connection ? ENDPOINT_GONE : ENDPOINT_FAILED,
                               why))
        mesh->transport->handlers.on_peer_gone(mesh, peer); /* what was posted since */
}

void peer_unreachable(struct mesh *mesh, int peer, const char *why)
{
    if (!endpoint_change_state(mesh, endpoint_of(mesh, peer), ENDPOINT_DRAINING, why))
        mesh->transport->handlers.on_send_failed(mesh, peer); /* what was queued since */
}

/* If a connection is being made, frames may still come on it.  That attempt fails soon, unless
 * another process has the peer's port by now. */
void peer_ended(struct mesh *mesh, int peer, const char *why)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    const int opens = endpoint->state == ENDPOINT_CONNECTING;

    peer_unreachable(mesh, peer, why);
    if (endpoint->state == ENDPOINT_DRAINING && !endpoint->link && endpoint->gone_due == 0)
        endpoint_check_at(mesh, endpoint, clock_ms() + (opens ? OPENING_MS : 0));
}

static int is_known_dead(struct mesh *mesh, int peer)
{
    const int local = mesh->peers[peer].local;

    return mesh_death(mesh, peer) || (local >= 0 && node_peer_gone(&mesh->node, local));
}

void check_ended_peers(struct mesh *mesh)
{
    take_arrivals(mesh); /* what a peer sent before its end may lie in a new connection */
    for (int peer = 0; peer < mesh->size; peer++) {
        struct endpoint *endpoint = endpoint_of(mesh, peer);
        const int drains = endpoint->state == ENDPOINT_DRAINING && !endpoint->link;

        if (endpoint->gone_due == 0 || (drains && clock_ms() < endpoint->gone_due))
            continue;
        endpoint->gone_due = 0;
        mesh->transport->ended--;
        if (drains || endpoint->state == ENDPOINT_ENDED)
            peer_gone(mesh, peer, endpoint->why);
    }
}

void end_lost_connections(struct mesh *mesh)
{
    struct transport *t = mesh->transport;
    const int64_t now = clock_ms();

    if (now - t->looked_for_loss_ms < LOOK_FOR_LOSS_MS)
        return;
    t->looked_for_loss_ms = now;
    for (struct endpoint *endpoint = t->open, *next; endpoint; endpoint = next) {
        next = endpoint->next_open;
        if (endpoint->link->fd >= 0 && socket_host_is_lost(endpoint->link->fd))
            endpoint_end(mesh, endpoint, LINK_HOST_IS_LOST);
    }
}

/* Only to a peer that is there and reads: a host that is lost takes nothing, nor does a rank
 * that has left or whose process has ended. */
int is_on_its_way(struct mesh *mesh)
{
    const struct transport *t = mesh->transport;
    int unsent;

    for (int peer = 0; peer < mesh->size; peer++) {
        const struct endpoint *endpoint = endpoint_of(mesh, peer);

        if (endpoint->first && endpoint_can_send(endpoint) && !endpoint->has_left) {
            if (!is_known_dead(mesh, peer))
                return 1;
            peer_unreachable(mesh, peer, "its process ended");
        }
    }
    for (const struct endpoint *endpoint = t->open; endpoint; endpoint = endpoint->next_open)
        if (endpoint->link->fd >= 0 && endpoint->state == ENDPOINT_CONNECTED
            && ioctl(endpoint->link->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
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
