/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - the life of a connection: opened, closed, buried; and when its end means that
 * the peer is gone. */
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "runtime/clock.h"
#include "runtime/messages.h"
#include "runtime/news.h"

#define CROSSING_MS 100
#define OUTSIDE_MS 10000 /* who has no descriptor left lets nobody in */
#define SEE_OFF_MS 10000 /* a peer may be busy for long; then its kernel has the most of it */

void stream_watch(struct mesh *mesh, struct stream *stream, int add)
{
    const struct link *link = stream->link;
    const struct wire *wire = stream->peer >= 0 ? &mesh->messages->wires[stream->peer] : NULL;
    struct epoll_event event = { .events = stream->muted ? EPOLLRDHUP : EPOLLIN,
                                 .data.ptr = stream };

    if (wire && (wire->full == link || (wire->large == link && link->connecting)))
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
    stream->next = mesh->messages->streams;
    mesh->messages->streams = stream;
    if (link->fd >= 0) {
        stream_watch(mesh, stream, 1);
        atomic_store(&mesh->waiter.sockets, 1);
    }
    if (peer >= 0)
        mesh->messages->wires[peer].streams++;
    return stream;
}

void stream_close(struct mesh *mesh, struct stream *stream, const char *why)
{
    struct messages *m = mesh->messages;
    struct wire *wire = stream->peer >= 0 ? &m->wires[stream->peer] : NULL;

    stream->closed = 1; /* freed by progress(), which may be walking the list */
    if (stream->link->fd >= 0)
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_DEL, stream->link->fd, NULL);
    if (!wire) {
        m->strangers--;
        return;
    }
    if (stream->request) { /* it had come in part */
        char reason[240];

        peer_gone_words(mesh, stream->peer, why, reason, sizeof reason);
        request_finish(mesh, stream->request, CT_ERR_PEER, reason);
    }
    wire->streams--;
    wire->held -= stream->held;
    stream->held = 0;
    if (second_link_was_spare(wire, stream))
        return;
    wire->ended_one = 1;
    if (wire->out == stream->link || wire->large == stream->link)
        peer_broken(mesh, stream->peer, why);
    if (wire->streams == 0 && wire->ended_ms == 0) {
        wire->ended_ms = clock_ms();
        snprintf(wire->why, sizeof wire->why, "%s", why);
        m->ended++;
    }
    close_held(mesh, stream->peer, why);
}

static int is_readable(int fd)
{
    struct pollfd it = { .fd = fd, .events = POLLIN };

    return poll(&it, 1, 0) > 0;
}

/* At the listener, or with a hello that was not read yet. */
static int somebody_stands_outside(const struct mesh *mesh)
{
    int one = is_readable(mesh->listener);

    for (const struct stream *s = mesh->messages->streams; s && !one; s = s->next)
        one = s->peer < 0 && !s->closed && is_readable(s->link->fd);
    return one;
}

static int is_known_dead(struct mesh *mesh, int peer)
{
    const int local = mesh->peers[peer].local;

    return mesh_death(mesh, peer) || (local >= 0 && node_peer_gone(&mesh->node, local));
}

/* Both sides may have opened a connection at the same moment.  The one on which a peer said its
 * last words may then still lie with the listener when the other ends.  So a peer that we have
 * never heard is gone only when none lies there, however late we look, and none has come for a
 * while, or none can come. */
static int may_still_come(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->messages->wires[peer];
    const int64_t ago = clock_ms() - wire->ended_ms;

    if (wire->heard)
        return 0;
    return (ago < OUTSIDE_MS && somebody_stands_outside(mesh))
           || (ago < CROSSING_MS && (mesh->messages->strangers > 0 || !is_known_dead(mesh, peer)));
}

void judge_ended(struct mesh *mesh)
{
    for (int peer = 0; peer < mesh->size; peer++) {
        struct wire *wire = &mesh->messages->wires[peer];

        if (wire->ended_ms == 0 || may_still_come(mesh, peer))
            continue;
        wire->ended_ms = 0;
        mesh->messages->ended--;
        peer_gone(mesh, peer, wire->why);
    }
}

static void forget_link(struct wire *wire, const struct link *link)
{
    struct link **const places[] = { &wire->out, &wire->large, &wire->begun_on, &wire->full,
                                     &wire->theirs };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (*places[i] == link)
            *places[i] = NULL;
}

/* Nobody holds a closed stream any more: not the walk, not epoll's last answer. */
void bury_streams(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    for (struct stream **link = &m->streams; *link;) {
        struct stream *stream = *link;

        if (!stream->closed) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        if (stream->peer >= 0)
            forget_link(&m->wires[stream->peer], stream->link);
        stream->link->ops->close(stream->link);
        free(stream->unexpected);
        free(stream);
    }
}

/* To a peer that is there: a host that is lost never takes it. */
static int is_on_its_way(const struct mesh *mesh)
{
    const struct messages *m = mesh->messages;
    int unsent;

    for (int peer = 0; peer < mesh->size; peer++)
        if (m->wires[peer].first && m->wires[peer].out && !m->wires[peer].broken)
            return 1;
    for (const struct stream *s = m->streams; s; s = s->next)
        if (s->link->fd >= 0 && !s->closed && s->peer >= 0 && !m->wires[s->peer].broken
            && ioctl(s->link->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
            return 1;
    return 0;
}

/* Who closes a socket in which bytes lie unread, or to which some come later (a question), resets
 * it: then what its kernel has not yet delivered is lost, and the peer misses words that were
 * said.  What has arrived stays readable. */
void see_off(struct mesh *mesh)
{
    const int64_t deadline = deadline_after(SEE_OFF_MS);

    pthread_mutex_lock(&mesh->messages->lock);
    progress(mesh);
    while (is_on_its_way(mesh) && clock_ms() < deadline) {
        poll(NULL, 0, 1);
        progress(mesh);
    }
    pthread_mutex_unlock(&mesh->messages->lock);
}
