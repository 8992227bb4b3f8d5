/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - starts, ends and gives up sends and receives.
 *
 * A send of at most EAGER_MOST bytes that has eager credit is sent at once.  For any other send an
 * RTS is sent, and arrivals.c sends the bytes when the peer's CTS has come.  A receive takes the
 * first unexpected message that matches, or is posted.  If a rank sends to itself, the send or the
 * receive copies the bytes, whichever starts second.  request_wait.c waits for requests.
 *
 * The owner of a request that was given up may reuse it at once.  So no list, queue or stream may
 * still point to the request or to its buffer. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/trace/trace.h"
#include "runtime/types/dtype.h"
#include "runtime/util/log.h"

/* ---- Ending -------------------------------------------------------------- */

void request_finish(struct mesh *mesh, struct request *request, ct_status status,
                    const char *reason)
{
    struct messages *m = mesh->messages;

    list_remove(request);
    if (!request->is_send)
        for (struct frame_stream *stream = mesh->transport->streams; stream; stream = stream->next)
            if (stream->request == request) {
                stream->request = NULL;
                stream->into = NULL; /* the rest of the payload is read and dropped */
            }
    if (request->background)
        m->background--;
    request->background = 0;
    request->status = status;
    if (request->blame.reason == BLAME_NONE && status == CT_ERR_PEER)
        request->blame = (struct blame){ request->peer, BLAME_DIED };
    /* Most requests succeed, and snprintf() would double their cost.  Without a reason,
     * request->reason is "" already. */
    if (*reason)
        snprintf(request->reason, sizeof request->reason, "%s", reason);
    atomic_store(&request->done, 1);
    bell_ring_stored(mesh->waiter.bell, mesh->waiter.wake_fd);
}

/* Describes a send and a receive that have different counts or dtypes. */
static void messages_differ(const struct mesh *mesh, const struct request *request, int peer,
                            const struct signature *theirs, char *text, size_t size)
{
    const struct signature *mine = &request->signature;
    const struct signature *sent = request->is_send ? mine : theirs;
    const struct signature *received = request->is_send ? theirs : mine;

    snprintf(text, size, "rank %d sends %llu %s, rank %d receives %llu %s",
             request->is_send ? mesh->rank : peer, (unsigned long long)sent->count,
             dtype_name((ct_dtype)sent->dtype), request->is_send ? peer : mesh->rank,
             (unsigned long long)received->count, dtype_name((ct_dtype)received->dtype));
}

void finish_mismatch(struct mesh *mesh, struct request *request, int peer,
                     const struct signature *theirs)
{
    char mine[96], reason[240];

    signature_describe(&request->signature, mine, sizeof mine);
    if (request->signature.operation == OPERATION_SEND && theirs->operation == OPERATION_SEND)
        messages_differ(mesh, request, peer, theirs, reason, sizeof reason);
    else if (signature_equal(&request->signature, theirs))
        snprintf(reason, sizeof reason, "ranks %d and %d pass different counts to %s",
                 mesh->rank < peer ? mesh->rank : peer, mesh->rank < peer ? peer : mesh->rank,
                 mine);
    else
        signature_differ(&request->signature, mesh->rank, theirs, peer, reason, sizeof reason);
    request->blame = (struct blame){ peer, BLAME_MISMATCH };
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

/* Sends the answer to an RTS. */
static void send_answer(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id,
                        const struct signature *signature, int device_rts_limits)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out) {
        peer_unreachable(mesh, peer, "no memory to answer it");
        return;
    }
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = (uint16_t)kind,
                                 .device_rts_limits = (uint16_t)device_rts_limits,
                                 .id = id,
                                 .signature = *signature };
    /* A CTS goes on the lane of large frames, where no other large message comes meanwhile. */
    out->is_large = kind == FRAME_CTS;
    send_answer_out(mesh, peer, out);
}

int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from)
{
    receive->met = frame->id;
    if (signature_equal(&receive->signature, &frame->signature) && receive->bytes == frame->bytes)
        return 1;
    if (frame->kind != FRAME_EAGER && from != mesh->rank)
        send_answer(mesh, from, FRAME_MISMATCH, frame->id, &receive->signature, 0);
    finish_mismatch(mesh, receive, from, &frame->signature);
    return 0;
}

void send_cts(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
              int device_rts_limits)
{
    if (receive->from_anybody)
        receive->peer = from;
    list_add(&mesh->messages->active, receive);
    send_answer(mesh, from, FRAME_CTS, frame->id, &receive->signature, device_rts_limits);
}

/* ---- Starting ------------------------------------------------------------ */

void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature)
{
    memset(request, 0, offsetof(struct request, out));
    request->reason[0] = 0;
    request->channel = channel;
    request->peer = peer;
    request->from_anybody = peer == CT_ANY_SOURCE;
    request->tag = tag;
    request->data = data;
    request->bytes = bytes;
    request->signature = *signature;
    request->is_send = is_send;
    if (!is_send)
        return;
    request->out = (struct outgoing){ .request = request,
                                      .payload = data,
                                      .frame = { .magic = FRAME_MAGIC,
                                                 .kind = FRAME_RTS,
                                                 .channel = channel,
                                                 .tag = tag,
                                                 .bytes = bytes,
                                                 .signature = *signature } };
}

void request_prepare_probe(struct request *request, uint64_t channel, int from, int tag)
{
    static const struct signature unknown = { .operation = OPERATION_SEND,
                                              .op = OP_OF_PROBE,
                                              .root = -1 };

    request_prepare(request, 0, channel, from, tag, NULL, 0, &unknown);
    request->is_probe = 1;
}

/* Gives the message to a posted receive, or keeps it among the unexpected messages. */
static void send_to_self(struct mesh *mesh, struct request *send)
{
    struct request *receive = take_posted(mesh, &send->out.frame, mesh->rank);
    struct unexpected *message;

    if (receive) {
        /* A copy, since another thread may reuse the receive once it is done. */
        const struct signature theirs = receive->signature;

        if (!agrees(mesh, receive, &send->out.frame, mesh->rank)) {
            finish_mismatch(mesh, send, mesh->rank, &theirs);
            return;
        }
        if (send->bytes > 0)
            memcpy(receive->data, send->data, send->bytes);
        request_finish(mesh, receive, CT_OK, "");
        request_finish(mesh, send, CT_OK, "");
        return;
    }
    message = scratch_take(&mesh->scratch, sizeof *message);
    if (!message) {
        request_finish(mesh, send, CT_ERR_NOMEM, "no memory for a message to itself");
        return;
    }
    *message = (struct unexpected){ .frame = send->out.frame, .from = mesh->rank, .sender = send };
    keep(mesh, message);
}

/* Returns 1 for a point-to-point message.  A message of a collective is used only in that call, so
 * a sender that gives it up need not cancel it at the receiver. */
static int is_of_p2p(const struct request *request)
{
    return request->channel & 1;
}

/* Returns 1 if the frame of an eager message can leave at once and whole, or if the link does not
 * know.  A frame that has left in part must be completed, so its send can't be cancelled any more.
 */
static int leaves_whole(const struct endpoint *endpoint, size_t bytes)
{
    struct link *const out = endpoint->out;
    size_t queued = 0;

    if (!out->ops->has_room)
        return 1;
    for (const struct outgoing *o = endpoint->first; o; o = o->next)
        queued += sizeof o->frame + o->bytes - o->written;
    return out->ops->has_room(out, queued + sizeof(struct frame) + bytes);
}

/* Turns an RTS into an eager message if the message is small enough and there is credit for it.
 * Without a connection the limit is EAGER_BYTES. */
static void go_eager_if_allowed(const struct mesh *mesh, struct request *send)
{
    struct endpoint *endpoint = endpoint_of(mesh, send->peer);
    const size_t most = endpoint->out ? EAGER_MOST : EAGER_BYTES;

    if (send->out.frame.kind != FRAME_RTS || send->bytes > most
        || (send->bytes > EAGER_BYTES && !leaves_whole(endpoint, send->bytes))
        || (endpoint->uncredited + eager_cost(send->bytes) > EAGER_CREDIT
            && (send->bytes > 0 || is_of_p2p(send))))
        return; /* an empty message of a collective needs no credit: the receiver keeps no data */
    endpoint->uncredited += eager_cost(send->bytes);
    send->out.frame.kind = FRAME_EAGER;
    send->out.bytes = send->bytes;
}

static void start_send(struct mesh *mesh, struct request *request)
{
    const int to = request->peer;
    const uint64_t traced =
        trace_sent(mesh->trace, mesh->rank, to, request->tag, request->bytes, request->id);

    request->out.frame.id = request->id;
    list_add(&mesh->messages->active, request);
    if (to == mesh->rank) {
        send_to_self(mesh, request);
    } else {
        if (!endpoint_of(mesh, to)->out && is_neighbour(mesh, to))
            ensure_connection(mesh, to); /* then more is eager */
        go_eager_if_allowed(mesh, request);
        send_out(mesh, to, &request->out);
    }
    look_for_goodbye(mesh, request);
    trace_end(mesh->trace, traced, CT_OK);
}

/* Gives the receive a message that an earlier receive gave up after its CTS. */
static void take_over(struct mesh *mesh, struct request *receive, struct unexpected *message)
{
    struct frame_stream *stream = stream_into(mesh, message);
    size_t got;

    list_add(&mesh->messages->active, receive);
    if (!stream)
        return;
    got = receive->bytes - stream->left;
    if (got > 0)
        memcpy(receive->data, message->data, got);
    stream->unexpected = NULL;
    stream->request = receive;
    stream->into = (unsigned char *)receive->data + got;
}

/* Gives a kept message to the receive.  Returns 1 if the receive waits for the bytes.  Returns 0 if
 * the receive is done, so that another thread may reuse it. */
static int receive_kept(struct mesh *mesh, struct request *receive, struct unexpected *message)
{
    struct request *sender = message->sender;
    /* A copy, since another thread may reuse the receive once it is done. */
    const struct signature theirs = receive->signature;

    if (receive->from_anybody)
        receive->peer = message->from;
    if (!agrees(mesh, receive, &message->frame, message->from)) {
        if (sender)
            finish_mismatch(mesh, sender, mesh->rank, &theirs);
        return 0;
    }
    if (!sender && message->frame.kind == FRAME_RTS) {
        send_cts(mesh, receive, &message->frame, message->from, 0);
        return 1;
    }
    if (!sender && message->frame.kind == FRAME_DEVICE_RTS) {
        device_rts_met(mesh, receive, message);
        return 1;
    }
    if (!sender && message->frame.kind == FRAME_DATA) {
        take_over(mesh, receive, message);
        return 1;
    }
    if (receive->bytes > 0)
        memcpy(receive->data, sender ? sender->data : message->data, receive->bytes);
    if (sender)
        request_finish(mesh, sender, CT_OK, "");
    request_finish(mesh, receive, CT_OK, "");
    return 0;
}

static void start_recv(struct mesh *mesh, struct request *request)
{
    struct messages *m = mesh->messages;
    const int from = request->peer;
    struct unexpected *message;

    if (request->is_probe && probe_unexpected(mesh, request))
        return;
    message = request->is_probe ? NULL : take_unexpected(m, request);
    if (message) {
        if (receive_kept(mesh, request, message))
            look_for_goodbye(mesh, request); /* the sender may have destroyed the group */
        unexpected_free(mesh, message);
        return;
    }
    list_add_by_id(&m->posted, request);
    if (from != CT_ANY_SOURCE && endpoint_of(mesh, from)->state == ENDPOINT_GONE)
        peer_gone(mesh, from, endpoint_of(mesh, from)->why);
    else
        look_for_goodbye(mesh, request);
}

void receive_again(struct mesh *mesh, struct request *receive)
{
    if (receive->from_anybody)
        receive->peer = CT_ANY_SOURCE;
    start_recv(mesh, receive);
}

static void request_start(struct mesh *mesh, struct request *request)
{
    request->id = ++mesh->messages->next_id;
    if (request->is_send)
        start_send(mesh, request);
    else
        start_recv(mesh, request);
}

void request_send(struct mesh *mesh, struct request *request, uint64_t channel, int to, int tag,
                  const void *data, size_t bytes, const struct signature *signature)
{
    request_prepare(request, 1, channel, to, tag, (void *)(uintptr_t)data, bytes, signature);
    pthread_mutex_lock(&mesh->transport->lock);
    request_start(mesh, request);
    pthread_mutex_unlock(&mesh->transport->lock);
}

void request_recv(struct mesh *mesh, struct request *request, uint64_t channel, int from, int tag,
                  void *data, size_t bytes, const struct signature *signature)
{
    request_prepare(request, 0, channel, from, tag, data, bytes, signature);
    pthread_mutex_lock(&mesh->transport->lock);
    request_start(mesh, request);
    pthread_mutex_unlock(&mesh->transport->lock);
}

/* Starts the receives before the sends.  Then sends of this rank to itself find their receives.
 * The receives also answer each RTS that has arrived. */
void requests_start(struct mesh *mesh, struct request *requests, int count)
{
    pthread_mutex_lock(&mesh->transport->lock);
    mesh->transport->gathering = 1;
    for (int is_send = 0; is_send <= 1; is_send++)
        for (int i = 0; i < count; i++)
            if (requests[i].is_send == is_send)
                request_start(mesh, &requests[i]);
    mesh->transport->gathering = 0;
    for (int i = 0; i < count; i++)
        if (requests[i].peer >= 0)
            flush_gathered(mesh, requests[i].peer);
    pthread_mutex_unlock(&mesh->transport->lock);
}

void requests_in_background(struct mesh *mesh, struct request *requests, int count)
{
    struct messages *m = mesh->messages;
    int moving = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    for (int i = 0; i < count; i++)
        if (!atomic_load(&requests[i].done)) {
            requests[i].background = 1;
            moving++;
        }
    m->background += moving;
    if (moving > 0)
        progress_thread_wake(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

/* ---- Giving up ----------------------------------------------------------- */

/* Replaces a partly written send in the queue by a frame that no request owns, with a copy of the
 * bytes that are left.  The peer must get these bytes, or it would take later frames for them.
 * Returns 0 if memory ran out. */
static int leave_behind(struct messages *m, struct outgoing **place, struct endpoint *endpoint)
{
    struct outgoing *out = *place, *rest = malloc(sizeof *rest + out->bytes);
    const size_t sent = out->written > sizeof out->frame ? out->written - sizeof out->frame : 0;

    if (!rest)
        return 0;
    *rest = *out;
    rest->request = NULL;
    rest->payload = rest + 1;
    rest->background = 1;
    m->background++;
    memcpy((char *)(rest + 1) + sent, (const char *)out->payload + sent, out->bytes - sent);
    *place = rest;
    if (endpoint->last == out)
        endpoint->last = rest;
    return 1;
}

/* Copies the bytes that have come to the message, and lets the stream write the rest into the
 * message too. */
static void keep_what_came(const struct mesh *mesh, struct request *receive,
                           struct unexpected *message)
{
    struct frame_stream *stream = mesh->transport->streams;
    size_t got;

    while (stream && stream->request != receive)
        stream = stream->next;
    if (!stream)
        return;
    got = receive->bytes - stream->left;
    memcpy(message->data, receive->data, got);
    stream->request = NULL;
    stream->unexpected = message;
    stream->into = message->data + got;
}

/* Keeps the message of a receive that is given up.  The sender was told, or will be told, that its
 * message is sent, so the message must not be lost.  The next receive that matches gets it, before
 * messages that were sent later. */
void put_back(struct mesh *mesh, struct request *receive, enum frame_kind kind)
{
    struct unexpected *message;
    struct request *next;

    if (endpoint_of(mesh, receive->peer)->state == ENDPOINT_GONE)
        return;
    message =
        scratch_take(&mesh->scratch, sizeof *message + (kind == FRAME_DATA ? receive->bytes : 0));
    if (!message) {
        log_line(LOG_ERROR,
                 "a message of %zu bytes from rank %d is lost: there is no memory to keep it",
                 receive->bytes, receive->peer);
        return;
    }
    *message = (struct unexpected){ .from = receive->peer,
                                    .frame = { .magic = FRAME_MAGIC,
                                               .kind = (uint16_t)kind,
                                               .channel = receive->channel,
                                               .tag = receive->tag,
                                               .bytes = receive->bytes,
                                               .id = receive->met,
                                               .signature = receive->signature } };
    keep_in_order(mesh, message);
    keep_what_came(mesh, receive, message);
    if ((next = take_posted(mesh, &message->frame, receive->peer)))
        receive_again(mesh, next);
}

/* Removes the send from the queue.  If the send is partly written, a copy of the rest stays.
 * Returns 0 if there is no memory for the copy. */
static int leave_queue(struct mesh *mesh, struct request *send)
{
    struct messages *m = mesh->messages;
    struct endpoint *endpoint = endpoint_of(mesh, send->peer);

    for (struct outgoing **link = &endpoint->first, *last = NULL; *link;
         last = *link, link = &(*link)->next) {
        if (*link != &send->out)
            continue;
        if (send->out.written > 0)
            return leave_behind(m, link, endpoint);
        *link = send->out.next;
        if (!*link)
            endpoint->last = last;
        break;
    }
    return 1;
}

/* Gives up a send.  If the receiver has heard of the message, tells the receiver to cancel it. */
static void give_up_send(struct mesh *mesh, struct request *send, ct_status status,
                         const char *reason)
{
    const int kind = send->out.frame.kind, to = send->peer;
    const int is_known = is_of_p2p(send) && (kind == FRAME_DATA || send->out.written > 0);
    const uint64_t id = send->id;

    if (!leave_queue(mesh, send)) {
        peer_unreachable(mesh, to, "a send to it was given up half way");
        return;
    }
    if (kind == FRAME_EAGER && send->out.written == 0)
        eager_credited(endpoint_of(mesh, to), eager_cost(send->bytes));
    /* The send ends first, because sending the cancel may make the peer unreachable. */
    request_finish(mesh, send, status, reason);
    if (is_known && kind == FRAME_DEVICE_RTS)
        device_send_cancelled(mesh, to, id);
    else if (is_known)
        send_control(mesh, to, FRAME_CANCEL, id);
}

void request_give_up(struct mesh *mesh, struct request *request, ct_status status,
                     const char *reason)
{
    struct messages *m = mesh->messages;

    if (atomic_load(&request->done))
        return;
    if (request->pending_copy != NO_COPY) { /* the request ends when the device has finished */
        request->given_up = status;
        snprintf(request->reason, sizeof request->reason, "%s", reason);
        return;
    }
    if (request->is_send && request->peer != mesh->rank) {
        give_up_send(mesh, request, status, reason);
        return;
    }
    if (request->is_send)
        forget_sender(mesh, request);
    else if (request->list == &m->active && is_of_p2p(request))
        put_back(mesh, request, FRAME_DATA);
    request_finish(mesh, request, status, reason);
}

/* Returns 1 if a stream writes into the receive's buffer now. */
static int is_coming(const struct mesh *mesh, const struct request *receive)
{
    const struct frame_stream *stream = mesh->transport->streams;

    while (stream && stream->request != receive)
        stream = stream->next;
    return stream != NULL;
}

/* Cancels a message of the peer.  While the bytes of a message are arriving, it is not cancelled,
 * whatever the peer sends. */
void message_cancelled(struct mesh *mesh, uint64_t id, int from)
{
    struct messages *m = mesh->messages;
    struct request *receive = receive_by_message(m, id, from);

    if (receive && !is_coming(mesh, receive)) {
        list_remove(receive);
        receive_again(mesh, receive);
    }
    for (struct unexpected *u = m->unexpected; u && !receive; u = u->next)
        if (u->from == from && u->frame.id == id && u->frame.kind != FRAME_FAILURE
            && !stream_into(mesh, u)) {
            unexpected_remove(mesh, u);
            return;
        }
}

void request_cancel(struct mesh *mesh, struct request *request)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    request_give_up(mesh, request, CT_ERR_ABORTED, "cancelled");
    if (m->background > 0 && atomic_load(&m->waiting) == 0)
        progress_thread_wake(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}
