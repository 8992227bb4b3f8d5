/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - moving bytes: streams in, queues out, connections accepted.
 *
 * progress() looks once at everything that could move and returns; it never
 * blocks, but for opening a connection to a peer that listens.  A stream whose
 * link breaks is closed; the last one of a peer closes the peer. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/messages.h"
#include "runtime/news.h"

#define CONNECT_MS 10000 /* for a host that does not even refuse */
#define REACH_MS 50      /* to ask a question: nobody shall wait long for that */
#define CROSSING_MS 100
#define BYTES_PER_LOOK (1u << 20) /* from one stream, so that no other starves */

/* ---- Out ----------------------------------------------------------------- */

static void watch(struct mesh *mesh, struct stream *stream, int add, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = stream };

    epoll_ctl(mesh->waiter.epoll_fd, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, stream->link->fd, &event);
}

static struct stream *stream_open(struct mesh *mesh, struct link *link, int peer)
{
    struct stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->link = link;
    stream->peer = peer;
    stream->next = mesh->messages->streams;
    mesh->messages->streams = stream;
    if (link->fd >= 0) {
        watch(mesh, stream, 1, EPOLLIN);
        atomic_store(&mesh->waiter.sockets, 1);
    }
    if (peer >= 0)
        mesh->messages->wires[peer].streams++;
    return stream;
}

static ct_status open_link(struct mesh *mesh, int peer, int patience_ms)
{
    struct wire *wire = &mesh->messages->wires[peer];
    ct_status status = CT_ERR_UNSUPPORTED;

    for (int i = 0; link_kinds[i]; i++) {
        if (mesh->only_link && strcmp(mesh->only_link, link_kinds[i]->name))
            continue;
        if (!link_kinds[i]->can_reach(mesh, peer))
            continue;
        status = link_kinds[i]->open(mesh, peer, deadline_after(patience_ms), &wire->out);
        if (status != CT_OK)
            return status;
        if (!stream_open(mesh, wire->out, peer)) {
            wire->out->ops->close(wire->out);
            wire->out = NULL;
            return ct_fail(CT_ERR_NOMEM, "no memory for a link to rank %d", peer);
        }
        return CT_OK;
    }
    return ct_fail(status, "there is no link to it");
}

static void set_blocked(struct mesh *mesh, struct wire *wire, int blocked)
{
    if (wire->blocked == blocked || wire->out->fd < 0)
        return;
    wire->blocked = blocked;
    for (struct stream *stream = mesh->messages->streams; stream; stream = stream->next)
        if (stream->link == wire->out)
            watch(mesh, stream, 0, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* 1: all written; 0: the link is full; -1: it broke. */
static int write_one(struct link *link, struct outgoing *out)
{
    const size_t head = sizeof out->frame;

    while (out->written < head + out->bytes) {
        const size_t in_head = out->written < head ? out->written : head;
        const size_t in_payload = out->written - in_head;
        const struct iovec parts[2] = {
            { (char *)&out->frame + in_head, head - in_head },
            { (void *)((uintptr_t)out->payload + in_payload), out->bytes - in_payload },
        };
        const int skip = in_head == head;
        const ssize_t n = link->ops->write(link, parts + skip, (out->bytes > 0 ? 2 : 1) - skip);

        if (n <= 0)
            return (int)n;
        out->written += (size_t)n;
    }
    return 1;
}

void outgoing_free(struct messages *m, struct outgoing *out)
{
    m->background -= out->background;
    free(out);
}

static void written(struct mesh *mesh, struct outgoing *out)
{
    if (!out->request)
        outgoing_free(mesh->messages, out);
    else if (out->frame.kind != FRAME_OFFER) /* an offered one waits to be accepted */
        request_finish(mesh, out->request, CT_OK, "");
}

static void flush(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->messages->wires[peer];
    int wrote = 1;

    while (wire->first && !wire->broken && wrote > 0) {
        struct outgoing *out = wire->first;

        wrote = write_one(wire->out, out);
        if (wrote > 0) {
            wire->first = out->next;
            written(mesh, out);
        }
    }
    if (wrote < 0)
        peer_broken(mesh, peer, ct_last_error());
    else if (wire->out)
        set_blocked(mesh, wire, wire->first != NULL);
}

void send_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct wire *wire = &mesh->messages->wires[peer];

    out->next = NULL;
    if (wire->first)
        wire->last->next = out;
    else
        wire->first = out;
    wire->last = out;
    if (!wire->broken && !wire->out && open_link(mesh, peer, CONNECT_MS) != CT_OK)
        peer_broken(mesh, peer, ct_last_error());
    else if (wire->broken)
        peer_broken(mesh, peer, wire->why);
    else
        flush(mesh, peer);
}

int reach(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->messages->wires[peer];

    if (wire->broken || wire->gone)
        return 0;
    return wire->out || open_link(mesh, peer, REACH_MS) == CT_OK;
}

void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct messages *m = mesh->messages;

    out->background = 1;
    m->background++;
    send_out(mesh, peer, out);
    if (m->background > 0 && atomic_load(&m->waiting) == 0)
        background_needed(mesh);
}

/* ---- In ------------------------------------------------------------------ */

static void stream_close(struct mesh *mesh, struct stream *stream, const char *why)
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
    if (stream->request)
        request_finish(mesh, stream->request, CT_ERR_PEER, why);
    wire->streams--;
    if (wire->out == stream->link)
        peer_broken(mesh, stream->peer, why);
    if (wire->streams == 0) {
        wire->ended_ms = clock_ms();
        snprintf(wire->why, sizeof wire->why, "%s", why);
        m->ended++;
    }
}

/* Both sides may have opened a connection at the same moment.  The one on which
 * a peer said its last words may then still lie with the listener when the other
 * ends, so a peer is gone only when none has come for a while, or none can come. */
static int none_can_come(struct mesh *mesh, int peer)
{
    struct pollfd waiting = { .fd = mesh->listener, .events = POLLIN };
    const int local = mesh->peers[peer].local;

    return (mesh_death(mesh, peer) || (local >= 0 && node_peer_gone(&mesh->node, local)))
           && mesh->messages->strangers == 0 && poll(&waiting, 1, 0) == 0;
}

static void judge_ended(struct mesh *mesh)
{
    for (int peer = 0; peer < mesh->size; peer++) {
        struct wire *wire = &mesh->messages->wires[peer];

        if (wire->ended_ms == 0
            || (clock_ms() - wire->ended_ms < CROSSING_MS && !none_can_come(mesh, peer)))
            continue;
        wire->ended_ms = 0;
        mesh->messages->ended--;
        peer_gone(mesh, peer, wire->why);
    }
}

/* A connection said who it is.  A wrong token is somebody else's, not an error of the job's. */
static void greet(struct mesh *mesh, struct stream *stream)
{
    const struct hello *hello = &stream->head.hello;
    struct wire *wire;

    if (hello->magic != HELLO_MAGIC || hello->to != mesh->rank || hello->from < 0
        || hello->from >= mesh->size || hello->from == mesh->rank
        || memcmp(hello->token, mesh->token, sizeof mesh->token)) {
        log_line(LOG_WARN, "a stranger connected to port of rank %d and was sent away", mesh->rank);
        stream_close(mesh, stream, "a stranger");
        return;
    }
    mesh->messages->strangers--;
    stream->peer = hello->from;
    stream->head_got = 0;
    wire = &mesh->messages->wires[stream->peer];
    wire->streams++;
    wire->gone = 0;
    if (wire->ended_ms > 0)
        mesh->messages->ended--;
    wire->ended_ms = 0;
    if (!wire->out)
        wire->out = stream->link;
}

/* A receiver keeps as much of an eager message as an eager one can have: with a larger one its
 * receive would succeed and have nothing. */
static int is_message(const struct frame *frame)
{
    return frame->magic == FRAME_MAGIC
           && (frame->bytes <= EAGER_BYTES
               || (frame->kind != FRAME_EAGER && frame->kind != FRAME_BREAK));
}

/* 1: something moved. */
static int read_head(struct mesh *mesh, struct stream *stream)
{
    const size_t want = stream->peer < 0 ? sizeof stream->head.hello : sizeof stream->head.frame;
    const ssize_t n = stream->link->ops->read(
        stream->link, (char *)&stream->head + stream->head_got, want - stream->head_got);

    if (n < 0) {
        stream_close(mesh, stream, ct_last_error());
        return 0;
    }
    stream->head_got += (size_t)n;
    if (stream->head_got < want)
        return n > 0;
    if (stream->peer < 0) {
        greet(mesh, stream);
        return !stream->closed;
    }
    stream->head_got = 0;
    if (!is_message(&stream->head.frame)) {
        stream_close(mesh, stream, "it sent bytes that are no message");
        return 0;
    }
    stream->left = 0;
    message_arrived(mesh, stream);
    if (stream->left == 0)
        message_landed(mesh, stream);
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
        stream_close(mesh, stream, ct_last_error());
        return 0;
    }
    stream->left -= (size_t)n;
    if (stream->into)
        stream->into += n;
    if (stream->unexpected)
        stream->unexpected->got += (size_t)n;
    if (stream->left == 0)
        message_landed(mesh, stream);
    return (int)(n > 0 ? n : 0);
}

static void read_stream(struct mesh *mesh, struct stream *stream)
{
    size_t moved = 0;
    int n = 1;

    while (n > 0 && !stream->closed && moved < BYTES_PER_LOOK) {
        n = stream->left > 0 ? read_payload(mesh, stream) : read_head(mesh, stream);
        moved += (size_t)(n > 0 ? n : 0);
    }
}

/* Who connects and says nothing may not keep the others out.  The newest stand first. */
static void close_oldest_stranger(struct mesh *mesh)
{
    struct stream *oldest = NULL;

    for (struct stream *stream = mesh->messages->streams; stream; stream = stream->next)
        if (stream->peer < 0 && !stream->closed)
            oldest = stream;
    if (oldest)
        stream_close(mesh, oldest, "it said nothing");
}

static int accept_peer(struct mesh *mesh)
{
    struct link *link;
    const int fd = accept4(mesh->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return 0;
    if (mesh->messages->strangers >= STRANGERS)
        close_oldest_stranger(mesh);
    if (!(link = link_tcp_accepted(fd))) {
        close(fd);
        return 1;
    }
    if (!stream_open(mesh, link, -1))
        link->ops->close(link);
    else
        mesh->messages->strangers++;
    return 1;
}

static void accept_peers(struct mesh *mesh)
{
    for (int i = 0; i < STRANGERS && accept_peer(mesh); i++)
        ;
}

/* ---- All ----------------------------------------------------------------- */

static void look_at_sockets(struct mesh *mesh)
{
    struct epoll_event events[16];
    const int n = epoll_wait(mesh->waiter.epoll_fd, events, 16, 0);

    for (int i = 0; i < n; i++) {
        struct stream *stream = events[i].data.ptr;

        if (events[i].data.ptr == (void *)&mesh->waiter)
            continue; /* the eventfd: wait.c empties it */
        if (events[i].data.ptr == (void *)&mesh->control)
            continue; /* who waits looks for the news */
        if (waiter_saw_end(&mesh->waiter, events[i].data.ptr))
            continue; /* who waits looks whether it was its peer */
        if (events[i].data.ptr == (void *)&mesh->listener) {
            accept_peers(mesh);
            continue;
        }
        if (!stream->closed && (events[i].events & ~(uint32_t)EPOLLOUT))
            read_stream(mesh, stream);
    }
}

/* Nobody holds a closed stream any more: not the walk, not epoll's last answer. */
static void bury_streams(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    for (struct stream **link = &m->streams; *link;) {
        struct stream *stream = *link;

        if (!stream->closed) {
            link = &stream->next;
            continue;
        }
        *link = stream->next;
        if (stream->peer >= 0 && m->wires[stream->peer].out == stream->link)
            m->wires[stream->peer].out = NULL;
        stream->link->ops->close(stream->link);
        free(stream->unexpected);
        free(stream);
    }
}

void progress(struct mesh *mesh)
{
    struct messages *m = mesh->messages;
    int closed = 0;

    for (struct stream *stream = m->streams; stream; stream = stream->next)
        if (stream->link->fd < 0 && !stream->closed)
            read_stream(mesh, stream);
    if (atomic_load_explicit(&mesh->waiter.sockets, memory_order_relaxed))
        look_at_sockets(mesh);
    for (int peer = 0; peer < mesh->size; peer++)
        if (m->wires[peer].first)
            flush(mesh, peer);
    for (struct stream *stream = m->streams; stream; stream = stream->next)
        closed |= stream->closed;
    if (closed)
        bury_streams(mesh);
    if (m->ended > 0)
        judge_ended(mesh);
}

ct_status progress_setup(struct mesh *mesh)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &mesh->waiter };
    ct_status status = CT_OK;

    mesh->waiter.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (mesh->waiter.epoll_fd < 0)
        return ct_fail(CT_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
    epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, mesh->waiter.event_fd, &event);
    if (mesh->control.event_fd >= 0) {
        struct epoll_event news = { .events = EPOLLIN | EPOLLET, .data.ptr = &mesh->control };

        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, mesh->control.event_fd, &news);
    }
    mesh->waiter.watched = mesh->node.size;
    if (node_watch(&mesh->node, mesh->waiter.epoll_fd) > 0)
        mesh->waiter.ended = mesh->node.ended;
    event.data.ptr = &mesh->listener;
    if (mesh->listener >= 0) {
        epoll_ctl(mesh->waiter.epoll_fd, EPOLL_CTL_ADD, mesh->listener, &event);
        atomic_store(&mesh->waiter.sockets, 1);
    }
    for (int peer = 0; peer < mesh->size && status == CT_OK; peer++)
        if (mesh->node.base && peer != mesh->rank && mesh->peers[peer].local >= 0)
            status = open_link(mesh, peer, CONNECT_MS);
    return status;
}

void progress_done(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    for (struct stream *stream = m->streams; stream; stream = stream->next)
        stream->closed = 1;
    bury_streams(mesh);
    if (mesh->waiter.epoll_fd >= 0)
        close(mesh->waiter.epoll_fd);
}
