/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - matching sends to receives.
 *
 *   small:  sender  EAGER + payload  ->  posted receive, or kept as unexpected
 *   large:  sender  OFFER            ->  posted receive, or kept
 *           receiver ACCEPT          ->  sender writes DATA + payload
 *   another call:   receiver REFUSE  ->  both ends fail and name both calls
 *   no message:     ASK, whether the peer makes the same call  ->  question.c
 *   broken group:   BREAK            ->  its members; channel.c
 *   destroyed group: LEAVE           ->  its members; leaving.c
 *   a connection that the other opened: HERE  ->  stream.c
 *
 * request.c starts them and waits for them; progress.c moves the bytes and calls
 * message_arrived() and message_landed().  Everything here but the last two runs
 * under messages->lock. */
#include "runtime/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/channel.h"
#include "runtime/log.h"
#include "runtime/messages.h"
#include "runtime/news.h"

/* ---- Lists --------------------------------------------------------------- */

void list_add(struct request **list, struct request *request)
{
    struct request *last = *list;

    request->list = list;
    request->next = NULL;
    if (!last) {
        request->previous = request; /* the first's previous is the last */
        *list = request;
        return;
    }
    request->previous = last->previous;
    last->previous->next = request;
    last->previous = request;
}

void list_remove(struct request *request)
{
    struct request **list = request->list;

    if (!list)
        return;
    if (request->next)
        request->next->previous = request->previous;
    else
        (*list)->previous = request->previous;
    if (*list == request)
        *list = request->next;
    else
        request->previous->next = request->next;
    request->list = NULL;
}

struct request *request_by_id(struct mesh *mesh, uint64_t id, int peer, int is_send)
{
    for (struct request *r = mesh->messages->active; r; r = r->next)
        if (r->id == id && r->peer == peer && r->is_send == is_send)
            return r;
    return NULL;
}

int matches(const struct request *receive, uint64_t channel, int from, int tag)
{
    return receive->channel == channel && receive->tag == tag
           && (receive->peer == from || receive->peer == CT_ANY_SOURCE);
}

struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from)
{
    for (struct request *r = mesh->messages->posted; r; r = r->next)
        if (matches(r, frame->channel, from, frame->tag)) {
            list_remove(r);
            r->peer = from;
            return r;
        }
    return NULL;
}

/* ---- Ends ---------------------------------------------------------------- */

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
    m->background -= request->background;
    request->background = 0;
    request->status = status;
    if (*reason) /* else it is "" already; most end well, and printing takes as long as all else */
        snprintf(request->reason, sizeof request->reason, "%s", reason);
    atomic_store(&request->done, 1);
    bell_ring_stored(mesh->waiter.bell, mesh->waiter.event_fd);
}

/* Of a large message that the other side knows nothing bad of yet. */
static void tell(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id, uint64_t answer,
                 const struct signature *signature)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out) {
        peer_broken(mesh, peer, "no memory to answer it");
        return;
    }
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = (uint16_t)kind,
                                 .id = id,
                                 .answer = answer,
                                 .signature = *signature };
    send_out(mesh, peer, out);
}

void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs)
{
    char mine[96], reason[240];

    signature_describe(&request->signature, mine, sizeof mine);
    if (signature_equal(&request->signature, theirs))
        snprintf(reason, sizeof reason, "rank %d and this rank give different counts for %s", peer,
                 mine);
    else
        signature_differ(&request->signature, theirs, peer, reason, sizeof reason);
    request_finish(mesh, request, CT_ERR_MISMATCH, reason);
}

/* Both sides make the same call?  An offer's sender is told if not. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from)
{
    receive->sent_as = frame->id;
    if (signature_equal(&receive->signature, &frame->signature) && receive->bytes == frame->bytes)
        return 1;
    if (frame->kind == FRAME_OFFER && from != mesh->rank)
        tell(mesh, from, FRAME_REFUSE, frame->id, 0, &receive->signature);
    finish_mismatch(mesh, receive, from, &frame->signature);
    return 0;
}

void peer_gone(struct mesh *mesh, int peer, const char *why)
{
    struct messages *m = mesh->messages;
    struct wire *wire = &m->wires[peer];
    char reason[240], name[160];

    if (!wire->gone && why != wire->why)
        snprintf(wire->why, sizeof wire->why, "%s", why);
    wire->gone = 1;
    if (mesh_death(mesh, peer))
        mesh_death_words(mesh, peer, reason, sizeof reason);
    else
        snprintf(reason, sizeof reason, "%s is gone: %s",
                 mesh_peer_name(mesh, peer, name, sizeof name), wire->why);
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

/* ---- Arrivals ------------------------------------------------------------ */

void keep(struct mesh *mesh, struct unexpected *message)
{
    message->next = NULL;
    *mesh->messages->unexpected_end = message;
    mesh->messages->unexpected_end = &message->next;
}

void unexpected_remove(struct messages *m, struct unexpected *message)
{
    struct unexpected **link = &m->unexpected;

    while (*link != message)
        link = &(*link)->next;
    *link = message->next;
    if (!*link)
        m->unexpected_end = link;
    free(message);
}

void accept_offer(struct mesh *mesh, struct request *receive, const struct frame *frame, int from)
{
    receive->peer = from;
    list_add(&mesh->messages->active, receive);
    tell(mesh, from, FRAME_ACCEPT, frame->id, receive->id, &receive->signature);
}

static void arrived_eager(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head.frame;
    struct request *receive = take_posted(mesh, frame, stream->peer);

    stream->left = frame->bytes;
    if (receive) {
        if (agrees(mesh, receive, frame, stream->peer)) {
            list_add(&mesh->messages->active, receive);
            stream->request = receive;
            stream->into = receive->data;
        }
        return;
    }
    if (answer_leaving(mesh, frame, stream->peer))
        return;
    stream->unexpected = malloc(sizeof *stream->unexpected + stream->left);
    if (!stream->unexpected) {
        log_line(LOG_ERROR, "no memory to keep a message of %zu bytes from rank %d: it is lost",
                 stream->left, stream->peer);
        return; /* the receive runs into its deadline */
    }
    *stream->unexpected = (struct unexpected){ .frame = *frame, .from = stream->peer };
    stream->into = stream->unexpected->data;
}

static void arrived_offer(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head.frame;
    struct request *receive = take_posted(mesh, frame, stream->peer);
    struct unexpected *message;

    if (receive) {
        if (agrees(mesh, receive, frame, stream->peer))
            accept_offer(mesh, receive, frame, stream->peer);
        return;
    }
    if (answer_leaving(mesh, frame, stream->peer))
        return;
    message = malloc(sizeof *message);
    if (!message) {
        log_line(LOG_ERROR, "no memory for an offer of rank %d: its message is lost", stream->peer);
        return;
    }
    *message = (struct unexpected){ .frame = *frame, .from = stream->peer };
    keep(mesh, message);
}

/* An offer of ours that a peer answers.  NULL: cancelled meanwhile, or it was offered to another
 * or not at all, or answered before: what waits to be written must not be queued again or freed. */
static struct request *offered(struct mesh *mesh, uint64_t id, int to)
{
    struct request *send = request_by_id(mesh, id, to, 1);
    const struct outgoing *out = send ? &send->out : NULL;

    return out && out->frame.kind == FRAME_OFFER && out->written == sizeof out->frame ? send : NULL;
}

static void arrived_break(struct stream *stream)
{
    const struct frame *frame = &stream->head.frame;

    stream->left = frame->bytes;
    stream->unexpected = malloc(sizeof *stream->unexpected + stream->left);
    if (!stream->unexpected)
        return; /* we will find out when it leaves */
    *stream->unexpected = (struct unexpected){ .frame = *frame, .from = stream->peer };
    stream->into = stream->unexpected->data;
}

static void arrived_accept(struct mesh *mesh, const struct frame *frame, int from)
{
    struct request *send = offered(mesh, frame->id, from);

    if (!send)
        return;
    mesh->messages->wires[from].unasked = 0; /* it has come as far as this one */
    send->out.frame.kind = FRAME_DATA;
    send->out.frame.id = frame->answer;
    send->out.payload = send->data;
    send->out.bytes = send->bytes;
    send->out.written = 0;
    send_out(mesh, from, &send->out);
}

void message_arrived(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head.frame;
    struct request *request;

    stream->into = NULL;
    stream->request = NULL;
    stream->unexpected = NULL;
    switch (frame->kind) {
    case FRAME_EAGER:
        arrived_eager(mesh, stream);
        answer_breach(mesh, frame, stream->peer);
        break;
    case FRAME_OFFER:
        arrived_offer(mesh, stream);
        answer_breach(mesh, frame, stream->peer);
        break;
    case FRAME_ACCEPT:
        arrived_accept(mesh, frame, stream->peer);
        break;
    case FRAME_DATA:
        stream->left = frame->bytes;
        request = request_by_id(mesh, frame->id, stream->peer, 0);
        if (request && request->bytes == frame->bytes) {
            stream->request = request;
            stream->into = request->data;
        }
        break;
    case FRAME_REFUSE:
        request = offered(mesh, frame->id, stream->peer);
        if (request)
            finish_mismatch(mesh, request, stream->peer, &frame->signature);
        break;
    case FRAME_ASK:
        question_arrived(mesh, frame, stream->peer);
        answer_leaving(mesh, frame, stream->peer);
        break;
    case FRAME_BREAK:
        arrived_break(stream);
        break;
    case FRAME_LEAVE:
        leave_arrived(mesh, frame, stream->peer);
        break;
    case FRAME_HERE: /* that it came says it */
        break;
    default:
        break; /* a later version's: nothing of ours depends on it */
    }
}

void message_landed(struct mesh *mesh, struct stream *stream)
{
    struct request *request = stream->request;
    struct unexpected *message = stream->unexpected;

    stream->request = NULL;
    stream->unexpected = NULL;
    stream->into = NULL;
    if (request) {
        request_finish(mesh, request, CT_OK, "");
    } else if (message && message->frame.kind == FRAME_BREAK) {
        breach_arrived(mesh, message);
    } else if (message) {
        struct request *late = take_posted(mesh, &message->frame, message->from);

        if (!late) {
            keep(mesh, message);
            return;
        }
        if (agrees(mesh, late, &message->frame, message->from)) {
            if (late->bytes > 0)
                memcpy(late->data, message->data, late->bytes);
            request_finish(mesh, late, CT_OK, "");
        }
        free(message);
    }
}

/* ---- Life ---------------------------------------------------------------- */

ct_status messages_create(struct mesh *mesh)
{
    struct messages *m = calloc(1, sizeof *m);
    pthread_condattr_t monotonic;

    if (!m || !(m->wires = calloc((size_t)mesh->size, sizeof *m->wires))) {
        free(m);
        return ct_fail(CT_ERR_NOMEM, "no memory for messages of %d ranks", mesh->size);
    }
    pthread_mutex_init(&m->lock, NULL);
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

        free(m->unexpected);
        m->unexpected = next;
    }
    pthread_cond_destroy(&m->needed);
    pthread_mutex_destroy(&m->lock);
    free(m->wires);
    free(m);
    mesh->messages = NULL;
}
