/* SPDX-License-Identifier: Apache-2.0 */
/* second_link.c - the two connections of a pair, and the order of what comes on both.
 *
 * What is small goes on one connection, both ways: then an acknowledgement rides on the next
 * message of the other way, where with a connection for each way the kernel sends it by itself,
 * and a small message there and back takes half as long again.  What is large goes on a connection
 * for each way, since a socket that gives and takes at the same time does each slower
 * (docs/algorithms.md).
 *
 * Whoever has something to say first opens one.  If both sides do so at the same moment, the lower
 * rank's is the one for what is small.  Who opened none opens its second when it first has
 * something large.  It speaks on that once the other has said that it holds both (TWO): until then,
 * and a firewall or a want of descriptors may keep it from that for ever, all goes on the one there
 * is.
 *
 * Frames are numbered as they are written.  Who reads one whose turn has not come holds that
 * connection until it has. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/messages.h"

/* What fits one segment with its head; more is acknowledged at once, whatever goes back. */
#define SMALL_BYTES 1300

/* An acceptance goes where no other large one comes meanwhile. */
static int is_large(const struct outgoing *out)
{
    return out->frame.bytes > SMALL_BYTES || out->frame.kind == FRAME_ACCEPT;
}

struct link *link_for(const struct wire *wire, const struct outgoing *out)
{
    if (out->written > 0)
        return wire->begun_on;
    return wire->large && wire->both && is_large(out) ? wire->large : wire->out;
}

const struct link *link_from(const struct wire *wire, size_t bytes)
{
    return wire->theirs && bytes > SMALL_BYTES ? wire->theirs : wire->out;
}

/* ---- Getting it ------------------------------------------------------------ */

static void say_none(int peer, const char *why)
{
    log_line(LOG_INFO, "no second connection to rank %d, so what is large shares the first: %s",
             peer, why);
}

/* Nobody's call fails for it, so that the caller's sentence stays. */
static struct link *open_second(struct mesh *mesh, int peer)
{
    const struct link_ops *ops = mesh->messages->wires[peer].out->ops;
    struct link *link = NULL;
    char sentence[1024];

    snprintf(sentence, sizeof sentence, "%s", ct_last_error());
    if (ops->open(mesh, peer, &link) == CT_OK) {
        link->second = 1;
        return link;
    }
    say_none(peer, ct_last_error());
    ct_fail(CT_OK, "%s", sentence);
    return NULL;
}

void second_link_wanted(struct mesh *mesh, int peer, const struct outgoing *out)
{
    struct wire *wire = &mesh->messages->wires[peer];
    struct stream *stream;

    if (wire->second_tried || wire->broken || !wire->out || !wire->out->accepted || !is_large(out))
        return;
    wire->second_tried = 1;
    if (!wire->out->ops->can_reach(mesh, peer) || !(wire->large = open_second(mesh, peer)))
        return;
    if (!(stream = stream_open(mesh, wire->large, peer))) {
        wire->large->ops->close(wire->large);
        wire->large = NULL;
    }
}

void second_link_moves(struct mesh *mesh, struct stream *stream)
{
    struct link *link = stream->link;

    if (stream->peer < 0 || link != mesh->messages->wires[stream->peer].large || !link->connecting)
        return;
    link->ops->write(link, NULL, 0);
    if (!link->connecting)
        stream_watch(mesh, stream, 0);
}

static void say_two(struct mesh *mesh, int peer)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out)
        return; /* the peer goes on with one */
    out->frame = (struct frame){ .magic = FRAME_MAGIC, .kind = FRAME_TWO };
    send_out_alone(mesh, peer, out);
}

/* The peer's first, and we had none; or both opened one at the same moment; or its second. */
void second_link_accepted(struct mesh *mesh, struct stream *stream)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];
    struct link *link = stream->link;

    wire->theirs = link;
    if (!wire->out) {
        wire->out = link;
        say_here(mesh, stream->peer);
        return;
    }
    if (!link->second && mesh->rank > stream->peer && !wire->out->accepted && wire->out->fd >= 0) {
        wire->large = wire->out;
        wire->out = link;
        wire->second_tried = 1;
    }
    if (link->second || mesh->rank < stream->peer)
        say_two(mesh, stream->peer);
}

int second_link_was_spare(struct wire *wire, const struct stream *stream)
{
    struct link *link = stream->link;

    if (link != wire->large || wire->both || (!link->second && !link->connecting))
        return 0;
    wire->large = NULL;
    say_none(stream->peer, link->why);
    return 1;
}

/* ---- The order ------------------------------------------------------------- */

int its_turn(struct mesh *mesh, struct stream *stream)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];
    const int32_t ahead = (int32_t)(stream->head.frame.turn - wire->landed);

    if (ahead == 0)
        return 1;
    if (ahead < 0 || wire->ended_one) {
        stream_close(mesh, stream,
                     ahead < 0 ? "it sent bytes that are no message"
                               : "what it said on another connection is lost");
        return 0;
    }
    stream->held = 1;
    wire->held++;
    return 0;
}

/* One of the peer's, behind `after`; NULL: from the first one on. */
static struct stream *held_of(const struct mesh *mesh, int peer, const struct stream *after)
{
    struct stream *s = after ? after->next : mesh->messages->streams;

    while (s && (s->peer != peer || !s->held || s->closed))
        s = s->next;
    return s;
}

struct stream *next_in_turn(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->messages->wires[peer];
    struct stream *held = wire->held > 0 ? held_of(mesh, peer, NULL) : NULL;

    while (held && held->head.frame.turn != wire->landed)
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

/* Its end can't be read, and what it waits for may lie with our listener, or not come. */
void look_at_held(struct mesh *mesh, struct stream *stream, uint32_t events)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];

    if (!stream->muted) {
        stream->muted = 1;
        stream_watch(mesh, stream, 0);
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0)
        return;
    stream->ended = 1;
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    if (wire->held < wire->streams || wire->ended_ms > 0)
        return;
    snprintf(wire->why, sizeof wire->why, "it closed its connection");
    wire->ended_ms = clock_ms();
    mesh->messages->ended++;
}
