/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - how requests end, and with the mesh all of them.
 *
 * A request ends well, or since the two sides make different calls (both are told which), or
 * given up by who started it (request.c), or with its peer: when nothing can come from it any more
 * its receives fail (peer_gone), when nothing can be sent to it its sends do (peer_broken).  The
 * wire keeps the reason for those that start later.
 *
 * With the mesh the messages are made and torn down: what was sent is seen off first, and what
 * could not be written then ends as if the peer could not be reached.  All else here runs under
 * messages->lock. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/types/dtype.h"

void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason)
{
    struct messages *m = mesh->messages;

    list_remove(request);
    if (!request->is_send)
        for (struct stream *stream = m->streams; stream; stream = stream->next)
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

void peer_gone(struct mesh *mesh, int peer, const char *why)
{
    struct messages *m = mesh->messages;
    struct wire *wire = &m->wires[peer];
    char reason[240];

    if (!wire->gone && why != wire->why)
        snprintf(wire->why, sizeof wire->why, "%s", why);
    wire->gone = 1;
    forget_offers(mesh, peer);
    peer_gone_words(mesh, peer, wire->why, reason, sizeof reason);
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

void peer_broken(struct mesh *mesh, int peer, const char *why)
{
    struct messages *m = mesh->messages;
    struct wire *wire = &m->wires[peer];
    char reason[240], name[160];

    if (!wire->broken && why != wire->why)
        snprintf(wire->why, sizeof wire->why, "%s", why);
    wire->broken = 1;
    if (mesh_death(mesh, peer))
        mesh_death_words(mesh, peer, reason, sizeof reason);
    else
        snprintf(reason, sizeof reason, "%s can't be reached: %s",
                 mesh_peer_name(mesh, peer, name, sizeof name), wire->why);
    while (wire->first) {
        struct outgoing *out = wire->first;

        wire->first = out->next;
        if (out->request)
            request_finish(mesh, out->request, CT_ERR_PEER, reason);
        else
            outgoing_free(m, out);
    }
    for (struct request *r = m->active, *next; r; r = next) {
        next = r->next;
        if (r->peer == peer && r->is_send)
            request_finish(mesh, r, CT_ERR_PEER, reason);
    }
}

/* ---- Made and torn down with the mesh ------------------------------------ */

ct_status messages_create(struct mesh *mesh)
{
    struct messages *m = calloc(1, sizeof *m);
    pthread_condattr_t monotonic;

    if (!m || !(m->wires = calloc((size_t)mesh->size, sizeof *m->wires))) {
        free(m);
        return ct_fail(CT_ERR_NOMEM, "no memory for messages of %d ranks", mesh->size);
    }
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->errands_lock, NULL);
    pthread_condattr_init(&monotonic); /* the wall clock jumps */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->needed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->unexpected_end = &m->unexpected;
    mesh->messages = m;
    return progress_setup(mesh);
}

void messages_destroy(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!m)
        return;
    background_stop(mesh);
    see_off(mesh);
    for (int peer = 0; peer < mesh->size; peer++)
        if (m->wires[peer].first)
            peer_broken(mesh, peer, "the group was destroyed");
    progress_done(mesh);
    while (m->unexpected) {
        struct unexpected *next = m->unexpected->next;

        scratch_give(&mesh->scratch, m->unexpected);
        m->unexpected = next;
    }
    pthread_cond_destroy(&m->needed);
    pthread_mutex_destroy(&m->errands_lock);
    pthread_mutex_destroy(&m->lock);
    free(m->wires);
    free(m);
    mesh->messages = NULL;
}
