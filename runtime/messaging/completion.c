/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - how requests end, and with the mesh all of them.
 *
 * A request ends well, or since the two sides make different calls (both learn which), or given up
 * by the rank that started it (request.c), or with its peer: when nothing can come from that any
 * more its receives fail (on_peer_gone), when nothing can be sent to it its sends do
 * (on_send_failed).  The wire keeps the reason for those that start later.  These and the other
 * handlers of the transport's events are here and in protocol.c.
 *
 * With the mesh the messages are made and torn down: what was sent is seen off first, and what
 * could not be written then ends as if the peer could not be reached.  All else here runs under
 * transport->lock. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"

#define SEE_OFF_MS 10000 /* a peer may be busy for long; then its kernel has the most of it */

void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason)
{
    struct messages *m = mesh->messages;

    list_remove(request);
    if (!request->is_send)
        for (struct stream *stream = mesh->transport->streams; stream; stream = stream->next)
            if (stream->request == request) {
                stream->request = NULL;
                stream->into = NULL; /* what is still to come goes nowhere */
            }
    if (request->background)
        m->background--;
    request->background = 0;
    request->status = status;
    if (*reason) /* else it is "" already; most end well, and printing takes as long as all else */
        snprintf(request->reason, sizeof request->reason, "%s", reason);
    atomic_store(&request->done, 1);
    bell_ring_stored(mesh->waiter.bell, mesh->waiter.event_fd);
}

/* Of a send and its receive, which have one signature. */
static void messages_differ(const struct request *request, int peer, const struct signature *theirs,
                            char *text, size_t size)
{
    const struct signature *mine = &request->signature;

    snprintf(text, size, "%llu %s are %s here, but rank %d %s %llu %s",
             (unsigned long long)mine->count, dtype_name((ct_dtype)mine->dtype),
             request->is_send ? "sent" : "wanted", peer, request->is_send ? "wants" : "sends",
             (unsigned long long)theirs->count, dtype_name((ct_dtype)theirs->dtype));
}

void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs)
{
    char mine[96], reason[240];

    signature_describe(&request->signature, mine, sizeof mine);
    if (request->signature.operation == OPERATION_SEND && theirs->operation == OPERATION_SEND)
        messages_differ(request, peer, theirs, reason, sizeof reason);
    else if (signature_equal(&request->signature, theirs))
        snprintf(reason, sizeof reason, "rank %d and this rank give different counts for %s", peer,
                 mine);
    else
        signature_differ(&request->signature, theirs, peer, reason, sizeof reason);
    request_finish(mesh, request, CT_ERR_MISMATCH, reason);
}

void peer_gone_words(struct mesh *mesh, int peer, const char *why, char *text, size_t size)
{
    char name[160];

    if (mesh_death(mesh, peer))
        mesh_death_words(mesh, peer, text, size);
    else
        snprintf(text, size, "%s is gone: %s", mesh_peer_name(mesh, peer, name, sizeof name), why);
}

/* Messages of which the bytes will not come: a receive that takes one would wait for them. */
static void forget_offers(struct mesh *mesh, int peer)
{
    for (struct unexpected *u = mesh->messages->unexpected, *next; u; u = next) {
        next = u->next;
        if (u->from == peer
            && (u->frame.kind == FRAME_OFFER || u->frame.kind == FRAME_LEND
                || u->frame.kind == FRAME_DATA))
            unexpected_remove(mesh, u);
    }
}

/* Its receives fail. */
static void on_peer_gone(struct mesh *mesh, int peer)
{
    struct messages *m = mesh->messages;
    char reason[240];

    forget_offers(mesh, peer);
    peer_gone_words(mesh, peer, mesh->transport->wires[peer].why, reason, sizeof reason);
    for (struct request *r = m->posted, *next; r; r = next) {
        next = r->next;
        if (r->peer == peer)
            request_finish(mesh, r, CT_ERR_PEER, reason);
    }
    for (struct request *r = m->active, *next; r; r = next) {
        next = r->next;
        if (r->peer == peer && !r->is_send)
            request_finish(mesh, r, CT_ERR_PEER, reason);
    }
}

static void outgoing_free(struct messages *m, struct outgoing *out)
{
    m->background -= out->background;
    free(out);
}

/* A message that the peer has not seen counts for nothing there. */
static void fail_outgoing(struct mesh *mesh, struct wire *wire, struct outgoing *out,
                          const char *reason)
{
    if (!out->request) {
        outgoing_free(mesh->messages, out);
        return;
    }
    if (out->frame.kind == FRAME_EAGER && out->written == 0)
        unasked_less(wire, unasked_cost(out->request->bytes));
    request_finish(mesh, out->request, CT_ERR_PEER, reason);
}

/* Sends to it fail. */
static void on_send_failed(struct mesh *mesh, int peer)
{
    struct messages *m = mesh->messages;
    struct wire *wire = &mesh->transport->wires[peer];
    char reason[240], name[160];

    if (mesh_death(mesh, peer))
        mesh_death_words(mesh, peer, reason, sizeof reason);
    else
        snprintf(reason, sizeof reason, "%s can't be reached: %s",
                 mesh_peer_name(mesh, peer, name, sizeof name), wire->why);
    while (wire->first) {
        struct outgoing *out = wire->first;

        wire->first = out->next;
        fail_outgoing(mesh, wire, out, reason);
    }
    for (struct request *r = m->active, *next; r; r = next) {
        next = r->next;
        if (r->peer == peer && r->is_send)
            request_finish(mesh, r, CT_ERR_PEER, reason);
    }
}

static void on_sent(struct mesh *mesh, struct outgoing *out)
{
    if (!out->request)
        outgoing_free(mesh->messages, out);
    else if (out->frame.kind != FRAME_OFFER && out->frame.kind != FRAME_LEND)
        request_finish(mesh, out->request, CT_OK, ""); /* an offered one waits to be accepted */
}

/* What it brought in part fails, or is lost: a message that was accepted once stands in the list.
 */
static void on_closed(struct mesh *mesh, struct stream *stream, const char *why)
{
    struct unexpected *const message = stream->unexpected;
    char reason[240];

    if (stream->request) {
        peer_gone_words(mesh, stream->peer, why, reason, sizeof reason);
        request_finish(mesh, stream->request, CT_ERR_PEER, reason);
    }
    stream->unexpected = NULL;
    if (message && message->frame.kind == FRAME_DATA)
        unexpected_remove(mesh, message);
    else if (message)
        scratch_give(&mesh->scratch, message);
}

static void on_no_connections(struct mesh *mesh, const char *why)
{
    const struct wire *wires = mesh->transport->wires;

    for (struct request *r = mesh->messages->posted, *next; r; r = next) {
        next = r->next;
        if (r->peer == CT_ANY_SOURCE
            || (r->peer != mesh->rank && wires[r->peer].streams == 0 && !wires[r->peer].opening))
            request_finish(mesh, r, CT_ERR_SYSTEM, why);
    }
}

/* Has a large one been accepted that is not all here? */
static int expects_much(const struct mesh *mesh)
{
    for (const struct request *r = mesh->messages->active; r; r = r->next)
        if (!r->is_send && r->bytes > EAGER_OVER_SOCKETS)
            return 1;
    return 0;
}

static const struct transport_handlers handlers = {
    .on_header = message_arrived,
    .on_payload = message_landed,
    .on_closed = on_closed,
    .on_sent = on_sent,
    .on_send_failed = on_send_failed,
    .on_peer_gone = on_peer_gone,
    .on_no_connections = on_no_connections,
    .expects_much = expects_much,
};

/* ---- Made and torn down with the mesh ------------------------------------ */

static void messages_free(struct mesh *mesh)
{
    pthread_cond_destroy(&mesh->messages->needed);
    pthread_mutex_destroy(&mesh->messages->errands_lock);
    free(mesh->messages);
    mesh->messages = NULL;
}

ct_status messages_create(struct mesh *mesh)
{
    struct messages *m = calloc(1, sizeof *m);
    pthread_condattr_t monotonic;
    ct_status status;

    if (!m)
        return ct_fail(CT_ERR_NOMEM, "no memory for messages of %d ranks", mesh->size);
    pthread_mutex_init(&m->errands_lock, NULL);
    pthread_condattr_init(&monotonic); /* the wall clock jumps */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->needed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->unexpected_end = &m->unexpected;
    mesh->messages = m;
    status = transport_open(mesh, &handlers);
    if (!mesh->transport)
        messages_free(mesh);
    return status;
}

/* A process that closes a socket in which bytes lie unread, or to which some come later (a
 * question), resets it: then what its kernel has not yet delivered is lost, and the peer misses
 * words that were said.  What has arrived stays readable. */
static void see_off(struct mesh *mesh)
{
    const int64_t deadline = deadline_after(SEE_OFF_MS);
    pthread_mutex_t *const lock = &mesh->transport->lock;

    mesh->on_death = NULL; /* its groups are gone */
    pthread_mutex_lock(lock);
    progress(mesh);
    while (is_on_its_way(mesh) && clock_ms() < deadline) {
        pthread_mutex_unlock(lock);
        poll(NULL, 0, 1);
        mesh_look_for_news(mesh);
        pthread_mutex_lock(lock);
        progress(mesh);
    }
    pthread_mutex_unlock(lock);
}

void messages_destroy(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!m)
        return;
    background_stop(mesh);
    see_off(mesh);
    for (int peer = 0; peer < mesh->size; peer++)
        if (mesh->transport->wires[peer].first)
            peer_broken(mesh, peer, "the group was destroyed");
    for (const struct stream *stream = mesh->transport->streams; stream; stream = stream->next)
        if (stream->unexpected && stream->unexpected->frame.kind != FRAME_DATA)
            scratch_give(&mesh->scratch, stream->unexpected); /* else it is in the list */
    transport_close(mesh);
    while (m->unexpected) {
        struct unexpected *next = m->unexpected->next;

        scratch_give(&mesh->scratch, m->unexpected);
        m->unexpected = next;
    }
    messages_free(mesh);
}
