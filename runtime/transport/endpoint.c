/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - makes the connections to a peer, writes and reads frames on them, and closes them.
 *
 * Frames to a peer wait in one queue until there is a connection.  One write takes as much of the
 * queue as the link accepts.
 *
 * Over sockets a pair of ranks has up to two connections.  Small frames use one connection in both
 * directions, so that an acknowledgement travels with the next frame of the other direction.  With
 * a connection for each direction the kernel would send each acknowledgement separately, and a
 * small message there and back would take 1.5 times as long.  Large frames use a connection for
 * each direction, since a socket that sends and receives at the same time does both more slowly
 * (docs/algorithms.md).
 *
 * The rank that sends first opens a connection.  If both ranks open one at the same moment, small
 * frames use the lower rank's.  A rank that has only accepted a connection opens its own for its
 * first large frame.  Until that connection is made, all frames use the first one.  A firewall or a
 * lack of descriptors may prevent the second connection for ever.  The sender numbers its frames as
 * it writes them.  If a frame comes before an earlier one, which then comes on the other
 * connection, the reader stops reading its connection until the earlier frames have come: the
 * stream is held.
 *
 * A rank closes all its connections together, when it ends or leaves the mesh.  A connection that
 * the peer opened carries frames only after wireup.c has reported it to this rank.  A connection
 * that this rank opened may carry frames a moment before that.  So a peer is gone when all its
 * connections have ended, wireup.c has reported every connection, and this rank is opening none. By
 * then this rank has read all that the peer sent. */
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

/* The largest small frame.  It fits one TCP segment together with its header.  The receiver's
 * kernel acknowledges a larger frame at once, even if the receiver is about to send a frame back.
 */
#define SMALL_BYTES 1300
/* Most parts of one write.  A frame has at most two.  The array is on the stack, and the kernel
 * looks at each part, so there are not more. */
#define PARTS_AT_ONCE 64
#define LARGE_WRITE (256u << 10) /* bytes of one write */
/* Bytes that are read from one stream before the other streams get their turn. */
#define BYTES_PER_LOOK (1u << 20)
#define LOOK_FOR_LOSS_MS 1000 /* pause between two checks for lost hosts */
#define OPENING_MS 1000       /* longest wait for a connection to a peer that has ended */

/* ---- State -------------------------------------------------------------------------- */

/* Changes the state and, if `why` is not NULL, the reason. */
static void endpoint_change_state(struct endpoint *endpoint, enum endpoint_state state,
                                  const char *why)
{
    if (state == endpoint->state)
        return;
    endpoint->state = state;
    if (why && why != endpoint->why)
        snprintf(endpoint->why, sizeof endpoint->why, "%s", why);
}

void peer_unreachable(struct mesh *mesh, int peer, const char *why)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (endpoint->state == ENDPOINT_OPEN)
        endpoint_change_state(endpoint, ENDPOINT_DRAINING, why);
    mesh->transport->handlers.on_send_failed(mesh, peer);
}

void peer_gone(struct mesh *mesh, int peer, const char *why)
{
    endpoint_change_state(endpoint_of(mesh, peer), ENDPOINT_GONE, why);
    mesh->transport->handlers.on_peer_gone(mesh, peer);
}

/* Lets frames come over a new connection.  Frames can be sent, too, if none was lost before,
 * because only this rank's own attempt to connect had failed. */
static void endpoint_reopen(struct endpoint *endpoint)
{
    const int lost_none = !endpoint->ended_one && endpoint->sent == 0;

    if (endpoint->state != ENDPOINT_OPEN)
        endpoint_change_state(endpoint, lost_none ? ENDPOINT_OPEN : ENDPOINT_DRAINING, NULL);
}

/* ---- Streams -------------------------------------------------------------------- */

static void stream_watch(struct mesh *mesh, struct frame_stream *stream, int add)
{
    const struct link *link = stream->link;
    const struct endpoint *endpoint = endpoint_of(mesh, stream->peer);
    struct epoll_event event = { .events = stream->muted ? EPOLLRDHUP : EPOLLIN,
                                 .data.ptr = stream };

    if (endpoint->full == link)
        event.events |= EPOLLOUT;
    epoll_ctl(mesh->waiter.epoll_fd, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, stream->link->fd, &event);
}

static struct frame_stream *stream_open(struct mesh *mesh, struct link *link, int peer)
{
    struct frame_stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->link = link;
    stream->peer = peer;
    stream->next = mesh->transport->streams;
    mesh->transport->streams = stream;
    if (link->fd >= 0) {
        stream_watch(mesh, stream, 1);
        atomic_store(&mesh->waiter.sockets, 1);
    } else {
        endpoint_of(mesh, peer)->ring = stream;
    }
    endpoint_of(mesh, peer)->streams++;
    return stream;
}

static void close_held(struct mesh *mesh, int peer, const char *why);

static void stream_close(struct mesh *mesh, struct frame_stream *stream, const char *why)
{
    struct transport *t = mesh->transport;
    struct endpoint *endpoint = &t->endpoints[stream->peer];

    /* A loop over the list may run now, so progress() frees the stream later. */
    stream->closed = 1;
    t->closed++;
    if (stream->link->fd >= 0)
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    t->handlers.on_closed(mesh, stream, why);
    endpoint->streams--;
    endpoint->held -= stream->held;
    stream->held = 0;
    endpoint->ended_one = 1;
    peer_unreachable(mesh, stream->peer, why);
    if (endpoint->streams == 0 && endpoint->ended_ms == 0) {
        endpoint->ended_ms = clock_ms();
        snprintf(endpoint->why, sizeof endpoint->why, "%s", why);
        t->ended++;
    }
    close_held(mesh, stream->peer, why);
}

/* ---- Lanes ---------------------------------------------------------------------- */

static int is_large(const struct outgoing *out)
{
    return out->frame.bytes > SMALL_BYTES || out->is_large;
}

static struct link *link_for(const struct endpoint *endpoint, const struct outgoing *out)
{
    if (out->written > 0)
        return endpoint->begun_on;
    return endpoint->own && is_large(out) ? endpoint->own : endpoint->out;
}

const struct link *link_from(const struct endpoint *endpoint, size_t bytes)
{
    return endpoint->accepted && bytes > SMALL_BYTES ? endpoint->accepted : endpoint->out;
}

/* ---- The order of frames on both lanes ------------------------------------------ */

static int is_in_turn(struct mesh *mesh, struct frame_stream *stream)
{
    struct endpoint *endpoint = endpoint_of(mesh, stream->peer);
    const int32_t ahead = (int32_t)(stream->head.turn - endpoint->received);

    if (ahead == 0)
        return 1;
    if (ahead < 0 || endpoint->ended_one) {
        stream_close(mesh, stream,
                     ahead < 0 ? NO_FRAME : "what it said on another connection is lost");
        return 0;
    }
    stream->held = 1;
    endpoint->held++;
    return 0;
}

/* Returns the peer's next held stream after `after`, or the first if `after` is NULL.  Returns NULL
 * if there are no more. */
static struct frame_stream *held_of(const struct mesh *mesh, int peer,
                                    const struct frame_stream *after)
{
    struct frame_stream *s = after ? after->next : mesh->transport->streams;

    while (s && (s->peer != peer || !s->held || s->closed))
        s = s->next;
    return s;
}

static struct frame_stream *next_in_turn(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct frame_stream *held = endpoint->held > 0 ? held_of(mesh, peer, NULL) : NULL;

    while (held && held->head.turn != endpoint->received)
        held = held_of(mesh, peer, held);
    if (!held)
        return NULL;
    endpoint->held--;
    held->held = 0;
    if (held->muted) {
        const int is_out = held->ended;

        held->muted = held->ended = 0;
        stream_watch(mesh, held, is_out);
    }
    return held;
}

/* Closes the peer's held streams, since frames before theirs were lost. */
static void close_held(struct mesh *mesh, int peer, const char *why)
{
    struct frame_stream *held;

    while ((held = held_of(mesh, peer, NULL)))
        stream_close(mesh, held, why);
}

/* Closes the peer's held streams if the frames before theirs can't come any more.  That is so if
 * all streams of the peer are held, one of them has ended, and this rank is opening no connection.
 */
static void close_held_for_ever(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);
    const struct frame_stream *held = NULL;

    if (endpoint->held == 0 || endpoint->held < endpoint->streams
        || endpoint->own_connection == OWN_OPENING)
        return;
    do
        held = held_of(mesh, peer, held);
    while (held && !held->ended);
    if (held)
        close_held(mesh, peer, "it closed its connection");
}

/* Handles an event of a held stream, whose bytes and end are not read now.  The earlier frame may
 * be in a connection that wireup.c has made but this rank has not taken, or may still be on its
 * way. */
void look_at_held(struct mesh *mesh, struct frame_stream *stream, uint32_t events)
{
    if (!stream->muted) {
        stream->muted = 1;
        stream_watch(mesh, stream, 0);
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0)
        return;
    stream->ended = 1;
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    take_arrivals(mesh);
    close_held_for_ever(mesh, stream->peer);
}

/* ---- Making connections --------------------------------------------------------- */

static int is_unused(const struct endpoint *endpoint, const struct frame_stream *stream)
{
    return endpoint->sent == 0 && endpoint->received == 0 && !endpoint->begun_on
           && stream->head_got == 0 && stream->left == 0 && !stream->held;
}

/* Drops the peer's first connection after the peer has connected again.  The peer does that if this
 * rank's last proof did not arrive on the first connection, so it has sent no frame there.  Frames
 * that this rank has sent there are lost; then the stream is closed as broken. */
static void replace_connection(struct mesh *mesh, int peer, const struct link *link)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct frame_stream *stream = mesh->transport->streams;

    while (stream && (stream->link != link || stream->closed))
        stream = stream->next;
    if (!stream)
        return;
    if (!is_unused(endpoint, stream)) {
        stream_close(mesh, stream, "its connection broke while it was made");
        return;
    }
    stream->closed = 1;
    mesh->transport->closed++;
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, link->fd, NULL);
    endpoint->streams--;
}

static void log_no_second_lane(int peer, const char *why)
{
    log_line(LOG_INFO, "no second connection to rank %d, so large messages share the first: %s",
             peer, why);
}

static void own_connection_tried(struct endpoint *endpoint)
{
    if (endpoint->own_connection == OWN_OPENING)
        endpoint->own_connection = OWN_TRIED;
}

static void link_not_made(struct mesh *mesh, int peer, const char *why)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    own_connection_tried(endpoint);
    if (endpoint->streams > 0) {
        log_no_second_lane(peer, why);
        close_held_for_ever(mesh, peer);
        return;
    }
    if (endpoint->ended_one)
        why = endpoint->why; /* the reason why the earlier connection ended */
    peer_unreachable(mesh, peer, why);
    peer_gone(mesh, peer, why);
}

static void link_made(struct mesh *mesh, int peer, struct link *link)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (!link->accepted)
        own_connection_tried(endpoint);
    if (!stream_open(mesh, link, peer)) {
        link->ops->close(link);
        link_not_made(mesh, peer, "no memory for a connection");
        return;
    }
    if (link->accepted && endpoint->accepted)
        replace_connection(mesh, peer, endpoint->accepted);
    *(link->accepted ? &endpoint->accepted : &endpoint->own) = link;
    endpoint->out = !endpoint->own        ? endpoint->accepted
                    : !endpoint->accepted ? endpoint->own
                    : mesh->rank < peer   ? endpoint->own
                                          : endpoint->accepted;
    endpoint_reopen(endpoint);
}

static void take_connection(struct mesh *mesh, const struct arrival *arrival)
{
    struct link *link = link_tcp_over(arrival->fd, arrival->channel, arrival->accepted);

    if (link) {
        link_made(mesh, arrival->peer, link);
        return;
    }
    secure_channel_destroy(arrival->channel);
    descriptor_close(arrival->fd); /* the peer, if it opened the connection, sees the end */
    if (!arrival->accepted)
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
        endpoint_of(mesh, peer)->own_connection = OWN_OPENING;
        if (link)
            link_made(mesh, peer, link);
        return CT_OK;
    }
    return ct_fail(status, "there is no link to it");
}

int ensure_connection(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);

    return endpoint->state == ENDPOINT_OPEN
           && (endpoint_is_connected(endpoint) || peer_connect(mesh, peer) == CT_OK);
}

void connect_for_liveness(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (endpoint->state == ENDPOINT_OPEN && !endpoint_is_connected(endpoint)
        && peer_connect(mesh, peer) != CT_OK)
        link_not_made(mesh, peer, ct_last_error());
}

/* Opens this rank's own connection for the first large frame.  If that fails, the frame uses the
 * other connection, so no call fails, and ct_last_error() stays as it was. */
static void second_lane_wanted(struct mesh *mesh, int peer, const struct outgoing *out)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct link *none;
    char sentence[1024];

    if (endpoint->own_connection != OWN_NOT_TRIED || endpoint->state != ENDPOINT_OPEN
        || !endpoint->accepted || !is_large(out) || !endpoint->accepted->ops->can_reach(mesh, peer))
        return;
    snprintf(sentence, sizeof sentence, "%s", ct_last_error());
    endpoint->own_connection = OWN_OPENING;
    if (endpoint->accepted->ops->open(mesh, peer, &none) == CT_OK)
        return;
    own_connection_tried(endpoint);
    log_no_second_lane(peer, ct_last_error());
    ct_fail(CT_OK, "%s", sentence);
}

/* ---- Sending -------------------------------------------------------------------- */

/* Makes epoll report when the socket of `full` takes more bytes, so that a sleeping thread wakes
 * then.  If `full` is NULL, epoll reports that for no socket of the endpoint. */
static void watch_room(struct mesh *mesh, struct endpoint *endpoint, struct link *full)
{
    struct link *const before = endpoint->full;

    if (full && full->fd < 0)
        full = NULL;
    if (full == before)
        return;
    endpoint->full = full;
    for (struct frame_stream *stream = mesh->transport->streams; stream; stream = stream->next)
        if (stream->link == full || stream->link == before)
            stream_watch(mesh, stream, 0);
}

/* Fills `parts` with the first frames of the queue that go on this link.  Returns the number of
 * parts. */
static int parts_of(const struct endpoint *endpoint, struct link *link, struct iovec *parts)
{
    uint32_t turn = endpoint->sent;
    size_t bytes = 0;
    int count = 0;

    for (struct outgoing *out = endpoint->first;
         out && count < PARTS_AT_ONCE - 1 && link_for(endpoint, out) == link; out = out->next) {
        const size_t head = sizeof out->frame;
        const size_t in_head = out->written < head ? out->written : head;
        const size_t in_payload = out->written - in_head;

        bytes += head + out->bytes - out->written;
        if (out->written == 0 && head + out->bytes <= WHOLE_FRAME && link->ops->has_room
            && !link->ops->has_room(link, bytes))
            break;
        out->frame.turn = turn++;
        if (in_head < head)
            parts[count++] = (struct iovec){ (char *)&out->frame + in_head, head - in_head };
        if (in_payload < out->bytes)
            parts[count++] = (struct iovec){ (void *)((uintptr_t)out->payload + in_payload),
                                             out->bytes - in_payload };
    }
    return count;
}

/* Removes from the queue the bytes that the link has taken. */
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
        endpoint->sent++;
        mesh->transport->handlers.on_sent(mesh, out);
    }
}

/* Writes as much of the queue as the link takes.
 *
 * While a large message comes to this rank over a socket, flush_to() does only one large write, and
 * the next call of progress() goes on with the queue.  If both ranks filled their sockets before
 * they read, the bytes would wait in the kernel until no cache holds them, which is slower.  The
 * socket still has room after that write, so a thread that sleeps until it has room wakes at once.
 *
 * On an encrypted link flush_to() always does only one large write.  The peer may take bytes as
 * fast as this rank encrypts them, and then the loop would never end, and miss its deadline. */
void flush_to(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct iovec parts[PARTS_AT_ONCE];
    ssize_t taken = 1;

    endpoint->gathered = 0;

    while (endpoint->first && endpoint->out && endpoint->state == ENDPOINT_OPEN && taken > 0) {
        endpoint->begun_on = link_for(endpoint, endpoint->first);
        taken = endpoint->begun_on->ops->write(endpoint->begun_on, parts,
                                               parts_of(endpoint, endpoint->begun_on, parts));
        if (taken > 0) {
            transport_moved(mesh->transport);
            advance_queue(mesh, endpoint, (size_t)taken);
            if (taken > LARGE_WRITE && endpoint->first && endpoint->begun_on->fd >= 0
                && (endpoint->begun_on->ops->encrypts
                    || mesh->transport->handlers.expects_much(mesh)))
                break;
        }
    }
    if (taken < 0)
        peer_unreachable(mesh, peer, endpoint->begun_on->why);
    else if (endpoint->out)
        watch_room(mesh, endpoint, endpoint->first ? link_for(endpoint, endpoint->first) : NULL);
}

void flush_gathered(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (!endpoint->gathered)
        return;
    endpoint->gathered = 0;
    flush_to(mesh, peer);
}

static void connection_add_pending(struct transport *t, struct endpoint *endpoint)
{
    if (endpoint->is_pending)
        return;
    endpoint->is_pending = 1;
    endpoint->next_pending = t->pending;
    t->pending = endpoint;
}

/* Writes the queues of all peers.  A write may end requests, which may queue frames for other
 * peers. Their endpoints are added at the front of the list, and the next call writes their queues.
 */
void flush_pending(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    for (struct endpoint *endpoint = t->pending; endpoint; endpoint = endpoint->next_pending)
        if (endpoint->first)
            flush_to(mesh, (int)(endpoint - t->endpoints));
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

/* Sends the frame `out`, which is in the queue, or leaves it there until the link takes it. */
static void send_queued(struct mesh *mesh, int peer, const struct outgoing *out)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    connection_add_pending(mesh->transport, endpoint);
    second_lane_wanted(mesh, peer, out);
    if (endpoint->state != ENDPOINT_OPEN)
        peer_unreachable(mesh, peer, endpoint->why);
    else if (!endpoint_is_connected(endpoint) && peer_connect(mesh, peer) != CT_OK)
        peer_unreachable(mesh, peer, ct_last_error());
    else if (mesh->transport->gathering)
        endpoint->gathered = 1;
    else
        flush_to(mesh, peer);
}

/* Writes a frame without queueing it, if the queue is empty and the link is shared memory, which
 * takes most frames whole.  Returns 1 if the whole frame was written.  Returns 0 if the caller must
 * queue the frame; out->written tells how much of it was written. */
static int write_at_once(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct transport *t = mesh->transport;
    struct endpoint *endpoint = &t->endpoints[peer];
    struct iovec parts[2] = { { &out->frame, sizeof out->frame },
                              { (void *)(uintptr_t)out->payload, out->bytes } };
    ssize_t taken;

    if (endpoint->first || !endpoint->out || endpoint->out->fd >= 0
        || endpoint->state != ENDPOINT_OPEN || t->gathering)
        return 0;
    out->frame.turn = endpoint->sent;
    taken = endpoint->out->ops->write(endpoint->out, parts, out->bytes > 0 ? 2 : 1);
    if (taken <= 0)
        return 0;
    transport_moved(t);
    out->written = (size_t)taken;
    endpoint->begun_on = endpoint->out;
    if (out->written < sizeof out->frame + out->bytes)
        return 0;
    endpoint->sent++;
    t->handlers.on_sent(mesh, out);
    return 1;
}

void send_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    if (write_at_once(mesh, peer, out))
        return;
    queue_last(endpoint_of(mesh, peer), out);
    send_queued(mesh, peer, out);
}

void send_answer_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    queue_first(endpoint_of(mesh, peer), out);
    send_queued(mesh, peer, out);
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

static void take_frame(struct mesh *mesh, struct frame_stream *stream);

/* Ends a frame that has come as a whole.  Then reads a stream that was held for this frame. */
static void frame_done(struct mesh *mesh, struct frame_stream *stream)
{
    const int peer = stream->peer;
    struct frame_stream *next;

    mesh->transport->handlers.on_payload(mesh, stream);
    endpoint_of(mesh, peer)->received++;
    if ((next = next_in_turn(mesh, peer))) {
        take_frame(mesh, next);
        read_stream(mesh, next);
    }
}

static void take_frame(struct mesh *mesh, struct frame_stream *stream)
{
    stream->left = 0;
    stream->into = NULL;
    if (mesh->transport->handlers.on_header(mesh, stream) < 0)
        stream_close(mesh, stream, NO_FRAME);
    else if (stream->left == 0)
        frame_done(mesh, stream);
}

/* Reads a part of a header.  Returns 1 if bytes came, 0 if not. */
static int read_head(struct mesh *mesh, struct frame_stream *stream)
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
    if (is_in_turn(mesh, stream))
        take_frame(mesh, stream);
    return 1;
}

static int read_payload(struct mesh *mesh, struct frame_stream *stream)
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
        frame_done(mesh, stream);
    return (int)(n > 0 ? n : 0);
}

int read_stream(struct mesh *mesh, struct frame_stream *stream)
{
    struct link *link = stream->link;
    size_t moved = 0;
    int n = 1;

    link->dry = 0;
    while (n > 0 && !stream->closed && !stream->held
           && (moved < BYTES_PER_LOOK || link->ahead > 0)) {
        n = stream->left > 0 ? read_payload(mesh, stream) : read_head(mesh, stream);
        moved += (size_t)(n > 0 ? n : 0);
    }
    if (moved > 0)
        transport_moved(mesh->transport);
    return n > 0 && !stream->closed;
}

/* ---- When a peer is gone -------------------------------------------------------- */

static int is_known_dead(struct mesh *mesh, int peer)
{
    const int local = mesh->peers[peer].local;

    return mesh_death(mesh, peer) || (local >= 0 && node_peer_gone(&mesh->node, local));
}

/* Returns 1 while frames of the peer may come on a connection that this rank is opening.  If the
 * peer has ended, the attempt fails soon, unless another process listens on the port by now. */
static int may_still_come(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);

    return endpoint->own_connection == OWN_OPENING
           && (clock_ms() - endpoint->ended_ms < OPENING_MS || !is_known_dead(mesh, peer));
}

void check_ended_peers(struct mesh *mesh)
{
    take_arrivals(mesh); /* the peer's last frames may be in a connection that was not taken yet */
    for (int peer = 0; peer < mesh->size; peer++) {
        struct endpoint *endpoint = endpoint_of(mesh, peer);

        if (endpoint->ended_ms == 0 || (endpoint->streams == 0 && may_still_come(mesh, peer)))
            continue;
        endpoint->ended_ms = 0;
        mesh->transport->ended--;
        if (endpoint->streams == 0)
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
    for (struct frame_stream *stream = t->streams; stream; stream = stream->next)
        if (stream->link->fd >= 0 && !stream->closed && socket_host_is_lost(stream->link->fd))
            stream_close(mesh, stream, LINK_HOST_IS_LOST);
}

static void forget_link(struct endpoint *endpoint, const struct link *link)
{
    struct link **const places[] = { &endpoint->out, &endpoint->own, &endpoint->begun_on,
                                     &endpoint->full, &endpoint->accepted };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (*places[i] == link)
            *places[i] = NULL;
}

/* Frees the closed streams.  The caller makes sure that no loop over the list runs and no result of
 * epoll_wait() is in use, since both could still point to a closed stream. */
void free_closed_streams(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    for (struct frame_stream **link = &t->streams; *link;) {
        struct frame_stream *stream = *link;

        if (!stream->closed) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        t->closed--;
        if (t->endpoints[stream->peer].ring == stream)
            t->endpoints[stream->peer].ring = NULL;
        forget_link(&t->endpoints[stream->peer], stream->link);
        stream->link->ops->close(stream->link);
        free(stream);
    }
}

/* Frames to a peer that is lost, has left or has ended do not count, since that peer reads nothing.
 */
int is_on_its_way(struct mesh *mesh)
{
    const struct transport *t = mesh->transport;
    int unsent;

    for (int peer = 0; peer < mesh->size; peer++) {
        const struct endpoint *endpoint = &t->endpoints[peer];

        if (endpoint->first && endpoint->state == ENDPOINT_OPEN && !endpoint->left) {
            if (!is_known_dead(mesh, peer))
                return 1;
            peer_unreachable(mesh, peer, "its process ended");
        }
    }
    for (const struct frame_stream *s = t->streams; s; s = s->next)
        if (s->link->fd >= 0 && !s->closed && t->endpoints[s->peer].state == ENDPOINT_OPEN
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
