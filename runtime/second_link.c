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
 * something large; until that is connected, which a firewall may keep it from for ever, all goes on
 * the one there is.
 *
 * Frames are numbered as they are written.  Who reads one whose turn has not come holds that
 * connection until it has. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

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
        return wire->at;
    return wire->large && !wire->large->connecting && is_large(out) ? wire->large : wire->out;
}

const struct link *link_from(const struct wire *wire, size_t bytes)
{
    return wire->theirs && bytes > SMALL_BYTES ? wire->theirs : wire->out;
}

/* ---- Getting it ------------------------------------------------------------ */

/* Else the peer, when the one that it knows ends, does not wait for what lies with its listener. */
static void say_two(struct mesh *mesh, int peer)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out)
        return;
    out->frame = (struct frame){ .magic = FRAME_MAGIC, .kind = FRAME_TWO };
    send_out_alone(mesh, peer, out);
}

void second_link_heard(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->messages->wires[peer];

    wire->awaited = !wire->theirs;
}

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
    if (ops->open(mesh, peer, &link) == CT_OK)
        return link;
    say_none(peer, ct_last_error());
    ct_fail(CT_OK, "%s", sentence);
    return NULL;
}

void second_link_wanted(struct mesh *mesh, int peer, const struct outgoing *out)
{
    struct wire *wire = &mesh->messages->wires[peer];
    struct stream *stream;
    struct link *link;

    if (wire->alone || !wire->out->accepted || !is_large(out))
        return;
    wire->alone = 1;
    if (!wire->out->ops->can_reach(mesh, peer) || !(link = open_second(mesh, peer)))
        return;
    link->second = 1;
    if (!(stream = stream_open(mesh, link, peer))) {
        link->ops->close(link);
        return;
    }
    wire->large = link;
    stream_watch(mesh, stream, 0, EPOLLIN | EPOLLOUT);
}

/* The first large message goes ahead on the other connection. */
void second_link_moves(struct mesh *mesh, struct stream *stream)
{
    struct link *link = stream->link;

    if (stream->peer < 0 || link != mesh->messages->wires[stream->peer].large || !link->connecting)
        return;
    link->ops->write(link, NULL, 0);
    if (link->connecting)
        return;
    stream_watch(mesh, stream, 0, EPOLLIN);
    say_two(mesh, stream->peer);
}

/* The peer's first, and we had none; or both opened one at the same moment; or its second. */
void second_link_accepted(struct mesh *mesh, struct stream *stream)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];

    wire->theirs = stream->link;
    wire->awaited = 0;
    if (!wire->out) {
        wire->out = stream->link;
        say_here(mesh, stream->peer);
    } else if (!stream->link->second && mesh->rank > stream->peer && !wire->out->accepted
               && wire->out->fd >= 0) {
        wire->large = wire->out;
        wire->out = stream->link;
        if (!wire->large->connecting)
            say_two(mesh, stream->peer);
    }
}

/* ---- The order ------------------------------------------------------------- */

int its_turn(struct mesh *mesh, struct stream *stream)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];

    if (stream->head.frame.turn == wire->landed)
        return 1;
    if (wire->ended_one) { /* and it was read to its end */
        stream_close(mesh, stream, "what it said on another connection is lost");
        return 0;
    }
    stream->held = 1;
    wire->held++;
    return 0;
}

static struct stream *held_of(const struct mesh *mesh, int peer)
{
    for (struct stream *s = mesh->messages->streams; s; s = s->next)
        if (s->peer == peer && s->held && !s->closed)
            return s;
    return NULL;
}

struct stream *next_in_turn(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->messages->wires[peer];
    struct stream *held = wire->held > 0 ? held_of(mesh, peer) : NULL;

    if (!held || held->head.frame.turn != wire->landed)
        return NULL;
    wire->held--;
    held->held = 0;
    if (held->muted)
        stream_watch(mesh, held, 0, wire->full == held->link ? EPOLLIN | EPOLLOUT : EPOLLIN);
    held->muted = 0;
    return held;
}

/* What it has is behind words that won't come. */
static void close_held(struct mesh *mesh, int peer, const char *why)
{
    struct stream *held = held_of(mesh, peer);

    mesh->messages->wires[peer].held = 0;
    if (held)
        stream_close(mesh, held, why);
}

/* The caller says what the end of any other one means. */
int second_link_ended(struct mesh *mesh, const struct stream *stream, const char *why)
{
    struct wire *wire = &mesh->messages->wires[stream->peer];
    const int was_spare = stream->link == wire->large && stream->link->connecting;

    if (was_spare) {
        wire->large = NULL;
        say_none(stream->peer, why);
        return 1;
    }
    wire->ended_one = 1;
    if (wire->held > 0)
        close_held(mesh, stream->peer, why);
    return 0;
}
