/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.c - what arrives: frames are answered, and messages come to their receives.
 *
 *   small:  sender  EAGER + payload  ->  posted receive, or kept as unexpected
 *   large:  sender  OFFER            ->  posted receive, or kept
 *           receiver ACCEPT          ->  sender writes DATA + payload
 *   given up: sender CANCEL          ->  the receive that it had met is posted again
 *             receiver (no frame)    ->  its message is kept, for the next receive
 *   on a device:    LEND, TAKEN, LOAN_ENDS, or ACCEPT and DATA  ->  device_rendezvous.c
 *   another call:   receiver REFUSE  ->  both ends fail and name both calls
 *   no message:     ASK, whether the peer makes the same call  ->  call_probe.c
 *   broken group:   BREAK            ->  its members; group_channel.c
 *   destroyed group: LEAVE           ->  its members; group_leave.c
 *
 * request.c starts sends and receives, request_wait.c waits for them; tag_match.c says which
 * message meets which receive, completion.c how a request ends.  receive.c reads the bytes and
 * calls message_arrived() and message_landed().  All of it runs under transport->lock. */
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/log.h"

/* ---- Answers ------------------------------------------------------------- */

/* Of a large message that the other side knows nothing bad of yet. */
static void tell(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id,
                 const struct signature *signature, int no_loans)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out) {
        peer_broken(mesh, peer, "no memory to answer it");
        return;
    }
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = (uint16_t)kind,
                                 .no_loans = (uint16_t)no_loans,
                                 .id = id,
                                 .signature = *signature };
    out->is_large = kind == FRAME_ACCEPT; /* it goes where no other large one comes meanwhile */
    send_out(mesh, peer, out);
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

void send_word(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out) {
        peer_broken(mesh, peer, "no memory to answer it");
        return;
    }
    out->frame = (struct frame){ .magic = FRAME_MAGIC, .kind = (uint16_t)kind, .id = id };
    send_out_alone(mesh, peer, out);
}

/* Both sides make the same call?  An offer's sender is told if not. */
int agrees(struct mesh *mesh, struct request *receive, const struct frame *frame, int from)
{
    receive->met = frame->id;
    if (signature_equal(&receive->signature, &frame->signature) && receive->bytes == frame->bytes)
        return 1;
    if (frame->kind != FRAME_EAGER && from != mesh->rank)
        tell(mesh, from, FRAME_REFUSE, frame->id, &receive->signature, 0);
    finish_mismatch(mesh, receive, from, &frame->signature);
    return 0;
}

void accept_offer(struct mesh *mesh, struct request *receive, const struct frame *frame, int from,
                  int no_loans)
{
    if (receive->from_anybody)
        receive->peer = from;
    list_add(&mesh->messages->active, receive);
    tell(mesh, from, FRAME_ACCEPT, frame->id, &receive->signature, no_loans);
}

/* ---- Arrivals ------------------------------------------------------------ */

/* What follows is kept, and looked at when all of it is there.  0: there is no memory, it is
 * passed over. */
static int keep_what_follows(struct mesh *mesh, struct stream *stream, size_t bytes)
{
    stream->left = bytes;
    stream->unexpected = scratch_take(&mesh->scratch, sizeof *stream->unexpected + bytes);
    if (!stream->unexpected)
        return 0;
    *stream->unexpected = (struct unexpected){ .frame = stream->head, .from = stream->peer };
    stream->into = stream->unexpected->data;
    return 1;
}

static void meet_eager(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *receive = take_posted(mesh, frame, stream->peer);

    stream->left = frame->bytes;
    if (receive) {
        if (agrees(mesh, receive, frame, stream->peer)) {
            list_add(&mesh->messages->active, receive);
            stream->request = receive;
            stream->into = receive->data;
        }
    } else if (!answer_leaving(mesh, frame, stream->peer)) {
        if (keep_what_follows(mesh, stream, frame->bytes)) {
            stream->unexpected->unasked = unasked_cost(frame->bytes);
            return;
        }
        log_line(LOG_ERROR, "no memory to keep a message of %zu bytes from rank %d: it is lost",
                 stream->left, stream->peer); /* its receive runs into its deadline */
    }
    unasked_taken(mesh, stream->peer, unasked_cost(frame->bytes));
}

static void meet_offer(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *receive = take_posted(mesh, frame, stream->peer);
    struct unexpected *message;

    if (receive) {
        if (agrees(mesh, receive, frame, stream->peer))
            accept_offer(mesh, receive, frame, stream->peer, 0);
        return;
    }
    if (answer_leaving(mesh, frame, stream->peer))
        return;
    message = scratch_take(&mesh->scratch, sizeof *message);
    if (!message) {
        log_line(LOG_ERROR, "no memory for an offer of rank %d: its message is lost", stream->peer);
        return;
    }
    *message = (struct unexpected){ .frame = *frame, .from = stream->peer };
    keep(mesh, message);
}

static void arrived_eager(struct mesh *mesh, struct stream *stream)
{
    meet_eager(mesh, stream);
    answer_with_failure(mesh, &stream->head, stream->peer);
}

static void arrived_offer(struct mesh *mesh, struct stream *stream)
{
    meet_offer(mesh, stream);
    answer_with_failure(mesh, &stream->head, stream->peer);
}

/* An offer of ours that a peer answers.  NULL: cancelled meanwhile, or it was offered to another
 * or not at all, or answered before: what waits to be written must not be queued again or freed. */
static struct request *offered(struct mesh *mesh, uint64_t id, int to)
{
    struct request *send = send_by_id(mesh->messages, id, to);
    const struct outgoing *out = send ? &send->out : NULL;

    return out && (out->frame.kind == FRAME_OFFER || out->frame.kind == FRAME_LEND)
                   && out->written == sizeof out->frame + out->bytes
               ? send
               : NULL;
}

static void arrived_accept(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head;
    const int from = stream->peer;
    struct request *send = offered(mesh, frame->id, from);

    if (!send) /* its CANCEL is on the way */
        return;
    if (send->out.frame.kind == FRAME_LEND) {
        loan_accepted(mesh, send, frame);
        return;
    }
    send->out.frame.kind = FRAME_DATA;
    send->out.payload = send->data;
    send->out.bytes = send->bytes;
    send->out.written = 0;
    send_out(mesh, from, &send->out);
}

/* Of a message whose receive was given up. */
static struct unexpected *put_back_before(const struct mesh *mesh, const struct frame *data,
                                          int from)
{
    struct unexpected *u = mesh->messages->unexpected;

    while (u && (u->from != from || u->frame.kind != FRAME_DATA || u->frame.id != data->id))
        u = u->next;
    return u && u->frame.bytes == data->bytes && !stream_into(mesh, u) ? u : NULL;
}

static void arrived_data(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *request = receive_by_message(mesh->messages, frame->id, stream->peer);

    stream->left = frame->bytes;
    if (request && request->bytes == frame->bytes) {
        stream->request = request;
        stream->into = request->data;
    } else if (!request) {
        stream->unexpected = put_back_before(mesh, frame, stream->peer);
        stream->into = stream->unexpected ? stream->unexpected->data : NULL;
    }
}

/* Is a stream filling it? */
static int is_coming(const struct mesh *mesh, const struct request *receive)
{
    const struct stream *stream = mesh->transport->streams;

    while (stream && stream->request != receive)
        stream = stream->next;
    return stream != NULL;
}

/* What comes already is not cancelled, whatever the peer says. */
void message_cancelled(struct mesh *mesh, uint64_t id, int from)
{
    struct messages *m = mesh->messages;
    struct request *receive = receive_by_message(m, id, from);

    if (receive && !is_coming(mesh, receive)) {
        list_remove(receive);
        receive_again(mesh, receive);
    }
    for (struct unexpected *u = m->unexpected; u && !receive; u = u->next)
        if (u->from == from && u->frame.id == id && u->frame.kind != FRAME_BREAK
            && !stream_into(mesh, u)) {
            unexpected_remove(mesh, u);
            return;
        }
}

static void arrived_credit(struct mesh *mesh, struct stream *stream)
{
    unasked_less(&mesh->transport->wires[stream->peer], stream->head.answer);
}

static void arrived_cancel(struct mesh *mesh, struct stream *stream)
{
    message_cancelled(mesh, stream->head.id, stream->peer);
}

static void arrived_refuse(struct mesh *mesh, struct stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *send = offered(mesh, frame->id, stream->peer);

    if (send)
        finish_mismatch(mesh, send, stream->peer, &frame->signature);
}

static void arrived_ask(struct mesh *mesh, struct stream *stream)
{
    question_arrived(mesh, &stream->head, stream->peer);
    answer_leaving(mesh, &stream->head, stream->peer);
}

static void arrived_break(struct mesh *mesh, struct stream *stream)
{
    keep_what_follows(mesh, stream, stream->head.bytes); /* else we find out when it leaves */
}

static void arrived_lend(struct mesh *mesh, struct stream *stream)
{
    keep_what_follows(mesh, stream,
                      sizeof(struct loan)); /* else its receive runs into its deadline */
    answer_with_failure(mesh, &stream->head, stream->peer);
}

static void arrived_taken(struct mesh *mesh, struct stream *stream)
{
    struct request *send = offered(mesh, stream->head.id, stream->peer);

    if (send && send->out.frame.kind == FRAME_LEND)
        request_finish(mesh, send, CT_OK, "");
}

static void arrived_loan_end(struct mesh *mesh, struct stream *stream)
{
    loan_end_arrived(mesh, &stream->head, stream->peer);
}

static void arrived_leave(struct mesh *mesh, struct stream *stream)
{
    leave_arrived(mesh, &stream->head, stream->peer);
}

/* Kinds that are not here are a later version's. */
static void (*const arrivals[])(struct mesh *mesh, struct stream *stream) = {
    [FRAME_EAGER] = arrived_eager,   [FRAME_OFFER] = arrived_offer,
    [FRAME_ACCEPT] = arrived_accept, [FRAME_DATA] = arrived_data,
    [FRAME_REFUSE] = arrived_refuse, [FRAME_ASK] = arrived_ask,
    [FRAME_BREAK] = arrived_break,   [FRAME_LEND] = arrived_lend,
    [FRAME_TAKEN] = arrived_taken,   [FRAME_LOAN_ENDS] = arrived_loan_end,
    [FRAME_LEAVE] = arrived_leave,   [FRAME_CANCEL] = arrived_cancel,
    [FRAME_CREDIT] = arrived_credit,
};

int message_arrived(struct mesh *mesh, struct stream *stream)
{
    const size_t kind = stream->head.kind;

    /* As much is kept of an eager message as an eager one can have: with a larger one its receive
     * would succeed and have nothing. */
    if (stream->head.bytes > EAGER_OVER_SOCKETS && (kind == FRAME_EAGER || kind == FRAME_BREAK))
        return -1;
    if (kind < sizeof arrivals / sizeof *arrivals && arrivals[kind])
        arrivals[kind](mesh, stream);
    return 0;
}

/* ---- Landings ------------------------------------------------------------ */

/* Nobody had asked for it when it began; perhaps somebody does now. */
static void landed_unexpected(struct mesh *mesh, struct unexpected *message)
{
    const int is_lent = message->frame.kind == FRAME_LEND;
    struct request *late = take_posted(mesh, &message->frame, message->from);

    if (!late && !(is_lent && answer_leaving(mesh, &message->frame, message->from))) {
        keep(mesh, message);
        return;
    }
    if (late && agrees(mesh, late, &message->frame, message->from)) {
        if (is_lent) {
            loan_met(mesh, late, message);
        } else {
            if (late->bytes > 0)
                memcpy(late->data, message->data, late->bytes);
            request_finish(mesh, late, CT_OK, "");
        }
    }
    unexpected_free(mesh, message);
}

void message_landed(struct mesh *mesh, struct stream *stream)
{
    struct request *request = stream->request;
    struct unexpected *message = stream->unexpected;

    stream->request = NULL;
    stream->unexpected = NULL;
    if (request)
        request_finish(mesh, request, CT_OK, "");
    else if (message && message->frame.kind == FRAME_DATA)
        message->frame.kind = FRAME_EAGER; /* it has its place, and is as one that came unasked */
    else if (message && message->frame.kind == FRAME_BREAK)
        failure_arrived(mesh, message);
    else if (message)
        landed_unexpected(mesh, message);
}
