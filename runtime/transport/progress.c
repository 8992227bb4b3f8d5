/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - one look at everything that could move: streams, queues, new connections.
 *
 * progress() never blocks.  A stream whose link breaks is closed.  When the last stream of a
 * peer is closed, the peer is gone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/transport/transport.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/forks.h"

#define LOOKS_AT_ONE 4 /* the last of them looks at all sockets */

/* 1: there are new connections, on which bytes may have come already */
static int look_at_sockets(struct mesh *mesh)
{
    struct epoll_event events[16];
    const int n = epoll_wait(mesh->waiter.epoll_fd, events, 16, 0);
    int some_came = 0;

    for (int i = 0; i < n; i++) {
        struct frame_stream *stream = events[i].data.ptr;

        if (events[i].data.ptr == (void *)&mesh->waiter)
            continue; /* the wake socket: waiter.c empties it */
        if (events[i].data.ptr == (void *)&mesh->control)
            continue; /* the waiting thread reads the notices */
        if (waiter_saw_end(&mesh->waiter, events[i].data.ptr))
            continue; /* the waiting thread checks whether it was its peer */
        if (events[i].data.ptr == (void *)&mesh->wireup) {
            take_arrivals(mesh);
            some_came = 1;
            continue;
        }
        if (!stream->closed && stream->held)
            look_at_held(mesh, stream, events[i].events);
        else if (!stream->closed && (events[i].events & ~(uint32_t)EPOLLOUT))
            read_stream(mesh, stream);
    }
    return some_came;
}

/* The rank has written to its ring.  The first time we open our end: then what it wrote before its
 * end can be read even if its process is gone. */
static void look_at_marked(struct mesh *mesh, int local)
{
    const int peer = mesh->node.ranks[local];
    struct endpoint *endpoint = endpoint_of(mesh, peer);

    endpoint->heard = 1;
    if (!endpoint->ring && !endpoint->ended_one && peer_connect(mesh, peer) != CT_OK) {
        peer_unreachable(mesh, peer, ct_last_error());
        peer_gone(mesh, peer, ct_last_error());
    }
    if (endpoint->ring && !endpoint->ring->closed && read_stream(mesh, endpoint->ring))
        node_mark(&mesh->node, local, mesh->node.rank); /* for the next look */
}

static void look_at_marks(struct mesh *mesh)
{
    _Atomic uint64_t *const marks = mesh->node.marks;

    for (int i = 0; i < node_mark_words(&mesh->node); i++) {
        uint64_t bits = atomic_load_explicit(&marks[i], memory_order_relaxed);

        if (bits == 0)
            continue;
        for (bits = atomic_exchange(&marks[i], 0); bits; bits &= bits - 1)
            look_at_marked(mesh, i * 64 + __builtin_ctzll(bits));
    }
}

/* What came in shared memory, where any did. */
static void look_at_rings(struct mesh *mesh)
{
    if (!mesh->node.base)
        return;
    look_at_marks(mesh);
    if (mesh->node.size > RINGS_POLLED)
        return;
    for (struct frame_stream *stream = mesh->transport->streams; stream; stream = stream->next)
        if (!stream->closed && stream->link->fd < 0)
            read_stream(mesh, stream);
}

/* all: looks at all sockets.  Else at the link `one` alone, if there is one: a read that finds
 * nothing costs as much as epoll_wait(), and one that finds bytes has read them. */
static void look_at_links(struct mesh *mesh, const struct link *one, int all)
{
    struct transport *t = mesh->transport;

    look_at_rings(mesh);
    if (one && !all && one->fd >= 0)
        for (struct frame_stream *stream = t->streams; stream; stream = stream->next)
            if (!stream->closed && stream->link == one)
                read_stream(mesh, stream);
    if (all && atomic_load_explicit(&mesh->waiter.sockets, memory_order_relaxed)
        && look_at_sockets(mesh))
        look_at_sockets(mesh);
    if (t->ended > 0)
        check_ended_peers(mesh); /* it may find connections */
    if (t->pending)
        flush_pending(mesh);
    if (t->closed > 0)
        free_closed_streams(mesh);
}

void progress(struct mesh *mesh)
{
    look_at_links(mesh, NULL, 1);
}

void progress_for(struct mesh *mesh, int peer, size_t bytes)
{
    struct transport *t = mesh->transport;
    const int all =
        peer < 0 || !t->endpoints[peer].out || t->looks++ % LOOKS_AT_ONE == LOOKS_AT_ONE - 1;

    look_at_links(mesh, all ? NULL : link_from(&t->endpoints[peer], bytes), all);
}

static ct_status transport_set_up(struct mesh *mesh)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &mesh->waiter };

    mesh->waiter.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (mesh->waiter.epoll_fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
    descriptor_own(mesh->waiter.epoll_fd);
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, mesh->waiter.wake_fd, &event);
    if (mesh->control.event_fd >= 0) {
        struct epoll_event notices = { .events = EPOLLIN | EPOLLET, .data.ptr = &mesh->control };

        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, mesh->control.event_fd, &notices);
    }
    mesh->waiter.watched = mesh->node.size;
    if (node_watch_processes(&mesh->node, mesh->waiter.epoll_fd) > 0)
        mesh->waiter.ended = mesh->node.ended;
    event.data.ptr = &mesh->wireup;
    if (mesh->wireup) {
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, wireup_fd(mesh->wireup), &event);
        atomic_store(&mesh->waiter.sockets, 1);
    }
    return CT_OK;
}

ct_status transport_open(struct mesh *mesh, const struct transport_handlers *handlers)
{
    struct transport *t = calloc(1, sizeof *t);

    if (!t || !(t->endpoints = calloc((size_t)mesh->size, sizeof *t->endpoints))) {
        free(t);
        return ct_fail(CT_ERR_NOMEM, "no memory for messages of %d ranks", mesh->size);
    }
    pthread_mutex_init(&t->lock, NULL);
    t->handlers = *handlers;
    mesh->transport = t;
    return transport_set_up(mesh);
}

void transport_close(struct mesh *mesh)
{
    struct transport *t = mesh->transport;

    if (!t)
        return;
    for (struct frame_stream *stream = t->streams; stream; stream = stream->next)
        stream->closed = 1;
    free_closed_streams(mesh);
    if (mesh->waiter.epoll_fd >= 0)
        descriptor_close(mesh->waiter.epoll_fd);
    pthread_mutex_destroy(&t->lock);
    free(t->endpoints);
    free(t);
    mesh->transport = NULL;
}
