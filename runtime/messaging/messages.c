/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - creates and destroys the messages of a mesh, and handles the transport's events.
 *
 * When nothing more can arrive from a peer, on_peer_gone() fails the receives from that peer.  When
 * nothing more can be sent to a peer, on_send_failed() fails the sends to that peer.  The endpoint
 * keeps the reason for requests that start later.  arrivals.c handles the frames that arrive.
 *
 * Before the messages are destroyed, messages_flush() writes the queued frames.  Frames that can't
 * be written fail like frames to an unreachable peer.  All other functions here run under
 * transport->lock. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* Time limit of messages_flush() in ms.  A peer may be outside of the library, and not read, for a
 * long time. */
#define FLUSH_MS 10000

/* Removes the peer's messages that will get no more bytes.  A receive that took such a message
 * would wait forever. */
static void forget_rts(struct mesh *mesh, int peer)
{
    for (struct unexpected *u = mesh->messages->unexpected, *next; u; u = next) {
        next = u->next;
        if (u->from == peer
            && (u->frame.kind == FRAME_RTS || u->frame.kind == FRAME_DEVICE_RTS
                || u->frame.kind == FRAME_DATA))
            unexpected_remove(mesh, u);
    }
}

/* Fails all receives from the peer. */
static void on_peer_gone(struct mesh *mesh, int peer)
{
    struct messages *m = mesh->messages;
    char reason[240];

    forget_rts(mesh, peer);
    peer_gone_words(mesh, peer, endpoint_of(mesh, peer)->why, reason, sizeof reason);
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

/* Fails the request of a frame that can't be sent, or frees a frame that no request owns.  If no
 * byte of an eager message was written, the peer never saw the message, so its credit is returned.
 */
static void fail_outgoing(struct mesh *mesh, struct endpoint *endpoint, struct outgoing *out,
                          const char *reason)
{
    if (!out->request) {
        outgoing_free(mesh->messages, out);
        return;
    }
    if (out->frame.kind == FRAME_EAGER && out->written == 0)
        eager_credited(endpoint, eager_cost(out->request->bytes));
    request_finish(mesh, out->request, CT_ERR_PEER, reason);
}

/* Fails all sends to the peer. */
static void on_send_failed(struct mesh *mesh, int peer)
{
    struct messages *m = mesh->messages;
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    char reason[240], name[160];

    if (mesh_death(mesh, peer))
        mesh_death_words(mesh, peer, reason, sizeof reason);
    else
        snprintf(reason, sizeof reason, "%s can't be reached: %s",
                 mesh_peer_name(mesh, peer, name, sizeof name), endpoint->why);
    while (endpoint->first) {
        struct outgoing *out = endpoint->first;

        endpoint->first = out->next;
        fail_outgoing(mesh, endpoint, out, reason);
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
    else if (out->frame.kind != FRAME_RTS && out->frame.kind != FRAME_DEVICE_RTS)
        request_finish(mesh, out->request, CT_OK, ""); /* after an RTS the send waits for the CTS */
}

/* Ends the request or the message that the stream had read in part.  A message of kind FRAME_DATA
 * is also in the list of unexpected messages. */
static void on_closed(struct mesh *mesh, struct frame_stream *stream, const char *why)
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
    const struct endpoint *endpoints = mesh->transport->endpoints;

    for (struct request *r = mesh->messages->posted, *next; r; r = next) {
        next = r->next;
        if (r->peer == CT_ANY_SOURCE
            || (r->peer != mesh->rank && !is_neighbour(mesh, r->peer)
                && endpoints[r->peer].streams == 0
                && endpoints[r->peer].own_connection != OWN_OPENING))
            request_finish(mesh, r, CT_ERR_SYSTEM, why);
    }
}

/* Returns 1 if this rank has sent a CTS for a large message that is not complete yet. */
static int expects_much(const struct mesh *mesh)
{
    for (const struct request *r = mesh->messages->active; r; r = r->next)
        if (!r->is_send && r->bytes > EAGER_MOST)
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
    pthread_mutex_destroy(&mesh->messages->copies_lock);
    free(mesh->messages->goodbyes_read);
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
    pthread_mutex_init(&m->copies_lock, NULL);
    pthread_condattr_init(&monotonic); /* waits use this clock, since the wall clock may jump */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->needed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->unexpected_end = &m->unexpected;
    m->thread_main = progress_thread_main;
    mesh->messages = m;
    status = transport_open(mesh, &handlers);
    if (!mesh->transport)
        messages_free(mesh);
    return status;
}

/* Writes the queued frames, and reads what arrives meanwhile.  A socket that is closed with unread
 * bytes, or that gets bytes (such as a probe) after it was closed, resets the connection.  Then
 * frames that the kernel has not delivered yet are lost.  Bytes that have reached the peer stay
 * readable. */
static void messages_flush(struct mesh *mesh)
{
    const int64_t deadline = deadline_after(FLUSH_MS);
    pthread_mutex_t *const lock = &mesh->transport->lock;

    mesh->on_death = NULL; /* the groups that on_death() uses are destroyed */
    mesh->on_wake = NULL;
    pthread_mutex_lock(lock);
    progress(mesh);
    while (is_on_its_way(mesh) && clock_ms() < deadline) {
        pthread_mutex_unlock(lock);
        poll(NULL, 0, 1);
        mesh_look_for_deaths(mesh);
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
    progress_thread_stop(mesh);
    messages_flush(mesh);
    for (int peer = 0; peer < mesh->size; peer++)
        if (endpoint_of(mesh, peer)->first)
            peer_unreachable(mesh, peer, "the group was destroyed");
    for (const struct frame_stream *stream = mesh->transport->streams; stream;
         stream = stream->next)
        if (stream->unexpected && stream->unexpected->frame.kind != FRAME_DATA)
            /* A FRAME_DATA message is in the list of unexpected messages, which is freed below. */
            scratch_give(&mesh->scratch, stream->unexpected);
    transport_close(mesh);
    while (m->unexpected) {
        struct unexpected *next = m->unexpected->next;

        scratch_give(&mesh->scratch, m->unexpected);
        m->unexpected = next;
    }
    messages_free(mesh);
}
