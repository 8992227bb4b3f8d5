/* SPDX-License-Identifier: Apache-2.0 */
/* connection_pair.c - the two connections of a pair, and the order of what comes on both.
 *
 * Small frames go on one connection, both ways: then an acknowledgement rides on the next frame of
 * the other way, where with a connection for each way the kernel sends it by itself, and a small
 * message there and back takes half as long again.  Large frames go on a connection for each way,
 * since a socket that gives and takes at the same time does each slower (docs/algorithms.md).
 *
 * The rank that sends first opens one.  If both ranks open one at the same moment, the lower rank's
 * is for small frames.  The rank that opened none opens its own when it first has a large frame;
 * until that is made, and a firewall or a want of descriptors may keep it from that for ever, all
 * goes on the one there is.
 *
 * Frames are numbered as they are written.  A connection on which a frame comes before its turn is
 * held until the turn has come. */
#include <stdio.h>
#include <sys/epoll.h>

#include "runtime/transport/transport.h"
#include "runtime/util/log.h"

/* What fits one segment with its head; more is acknowledged at once, whatever goes back. */
#define SMALL_BYTES 1300

static int is_large(const struct outgoing *out)
{
    return out->frame.bytes > SMALL_BYTES || out->is_large;
}

struct link *link_for(const struct wire *wire, const struct outgoing *out)
{
    if (out->written > 0)
        return wire->begun_on;
    return wire->own && is_large(out) ? wire->own : wire->out;
}

const struct link *link_from(const struct wire *wire, size_t bytes)
{
    return wire->theirs && bytes > SMALL_BYTES ? wire->theirs : wire->out;
}

/* ---- Getting them ---------------------------------------------------------- */

static void say_none(int peer, const char *why)
{
    log_line(LOG_INFO, "no second connection to rank %d, so what is large shares the first: %s",
             peer, why);
}

/* No call fails for it, so the caller's sentence stays. */
void second_lane_wanted(struct mesh *mesh, int peer, const struct outgoing *out)
{
    struct wire *wire = &mesh->transport->wires[peer];
    struct link *none;
    char sentence[1024];

    if (wire->own_tried || wire->unreachable || !wire->theirs || !is_large(out)
        || !wire->theirs->ops->can_reach(mesh, peer))
        return;
    wire->own_tried = 1;
    snprintf(sentence, sizeof sentence, "%s", ct_last_error());
    wire->opening = wire->theirs->ops->open(mesh, peer, &none) == CT_OK;
    if (wire->opening)
        return;
    say_none(peer, ct_last_error());
    ct_fail(CT_OK, "%s", sentence);
}

static int is_unused(const struct wire *wire, const struct stream *stream)
{
    return wire->said == 0 && wire->landed == 0 && !wire->begun_on && stream->head_got == 0
           && stream->left == 0 && !stream->held;
}

/* The peer connected again: it never had our welcome on the first one, so it said nothing there. If
 * we did, that is lost. */
static void replace(struct mesh *mesh, int peer, const struct link *link)
{
    struct wire *wire = &mesh->transport->wires[peer];
    struct stream *stream = mesh->transport->streams;

    while (stream && (stream->link != link || stream->closed))
        stream = stream->next;
    if (!stream)
        return;
    if (!is_unused(wire, stream)) {
        stream_close(mesh, stream, "its connection broke while it was made");
        return;
    }
    stream->closed = 1;
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, link->fd, NULL);
    wire->streams--;
}

void link_made(struct mesh *mesh, int peer, struct link *link)
{
    struct wire *wire = &mesh->transport->wires[peer];

    if (!link->accepted)
        wire->opening = 0;
    if (!stream_open(mesh, link, peer)) {
        link->ops->close(link);
        link_not_made(mesh, peer, "no memory for a connection");
        return;
    }
    if (link->accepted && wire->theirs)
        replace(mesh, peer, wire->theirs);
    *(link->accepted ? &wire->theirs : &wire->own) = link;
    wire->out = !wire->own          ? wire->theirs
                : !wire->theirs     ? wire->own
                : mesh->rank < peer ? wire->own
                                    : wire->theirs;
    wire->gone = 0;
    if (wire->unreachable && !wire->ended_one && wire->said == 0)
        wire->unreachable = 0; /* our own could not be made, and nothing was lost by that */
}

void link_not_made(struct mesh *mesh, int peer, const char *why)
{
    struct wire *wire = &mesh->transport->wires[peer];

    wire->opening = 0;
    if (wire->streams > 0) {
        say_none(peer, why);
        close_held_for_ever(mesh, peer);
        return;
    }
    if (wire->ended_one)
        why = wire->why; /* that of the connection which it had */
    peer_unreachable(mesh, peer, why);
    peer_gone(mesh, peer, why);
}

/* ---- The order ------------------------------------------------------------- */

int is_in_turn(struct mesh *mesh, struct stream *stream)
{
    struct wire *wire = &mesh->transport->wires[stream->peer];
    const int32_t ahead = (int32_t)(stream->head.turn - wire->landed);

    if (ahead == 0)
        return 1;
    if (ahead < 0 || wire->ended_one) {
        stream_close(mesh, stream,
                     ahead < 0 ? NO_FRAME : "what it said on another connection is lost");
        return 0;
    }
    stream->held = 1;
    wire->held++;
    return 0;
}

/* One of the peer's, behind `after`; NULL: from the first one on. */
static struct stream *held_of(const struct mesh *mesh, int peer, const struct stream *after)
{
    struct stream *s = after ? after->next : mesh->transport->streams;

    while (s && (s->peer != peer || !s->held || s->closed))
        s = s->next;
    return s;
}

struct stream *next_in_turn(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];
    struct stream *held = wire->held > 0 ? held_of(mesh, peer, NULL) : NULL;

    while (held && held->head.turn != wire->landed)
        held = held_of(mesh, peer, held);
    if (!held)
        return NULL;
    wire->held--;
    held->held = 0;
    if (held->muted) {
        const int is_out = held->ended;

        held->muted = held->ended = 0;
        stream_watch(mesh, held, is_out);
    }
    return held;
}

/* What they have is behind words that won't come. */
void close_held(struct mesh *mesh, int peer, const char *why)
{
    struct stream *held;

    while ((held = held_of(mesh, peer, NULL)))
        stream_close(mesh, held, why);
}

/* All that the peer has are held, one of them has ended, and no other one is being made. */
void close_held_for_ever(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];
    const struct stream *held = NULL;

    if (wire->held == 0 || wire->held < wire->streams || wire->opening)
        return;
    do
        held = held_of(mesh, peer, held);
    while (held && !held->ended);
    if (held)
        close_held(mesh, peer, "it closed its connection");
}

/* Its end can't be read.  What it waits for may lie in a connection that was not taken yet, or not
 * come. */
void look_at_held(struct mesh *mesh, struct stream *stream, uint32_t events)
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
