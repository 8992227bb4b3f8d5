/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.c - handles the frames that arrive, and gives messages to their receives.
 *
 *   small message:   The sender sends EAGER with the payload.  A posted receive takes the
 *                    message, or the receiver keeps it as unexpected.
 *   large message:   The sender sends an RTS.  The receiver answers with a CTS when a receive
 *                    matches.  The sender then sends DATA with the payload.
 *   device memory:   The sender sends a DEVICE_RTS.  The receiver copies and answers with an ATS,
 *                    or it answers with a CTS and the sender sends DATA (device_rendezvous.c).
 *   given up:        A sender sends CANCEL, and the matched receive is posted again.
 *                    A receiver sends nothing, and keeps the message for the next receive.
 *   different calls: The receiver sends MISMATCH.  Both sides fail and name both calls.
 *   waiting rank:    It sends PROBE to learn whether the peer is in the same call (call_probe.c).
 *   failed group:    The members send FAILURE to each other (group_channel.c).
 *   destroyed group: The rank that destroyed it sends GOODBYE to the members (goodbye.c).
 *
 * The other files, from the bottom up: tag_match.c finds groups, requests and messages.
 * control_frame.c sends frames that no request owns.  request.c starts, ends and gives up requests.
 * request_wait.c waits for requests.  transport/endpoint.c reads the bytes and calls
 * message_arrived() and message_landed().  All functions here run under transport->lock. */
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/log.h"

/* ---- Arrivals ------------------------------------------------------------ */

/* Allocates memory for the payload, which is handled when all of it is there.  Returns 0 if there
 * is no memory.  The payload is then skipped. */
static int keep_what_follows(struct mesh *mesh, struct frame_stream *stream, size_t bytes)
{
    stream->left = bytes;
    stream->unexpected = scratch_take(&mesh->scratch, sizeof *stream->unexpected + bytes);
    if (!stream->unexpected)
        return 0;
    *stream->unexpected = (struct unexpected){ .frame = stream->head, .from = stream->peer };
    stream->into = stream->unexpected->data;
    return 1;
}

static void meet_eager(struct mesh *mesh, struct frame_stream *stream)
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
    } else if (!answer_with_goodbye(mesh, frame, stream->peer)) {
        if (keep_what_follows(mesh, stream, frame->bytes)) {
            stream->unexpected->cost = eager_cost(frame->bytes);
            return;
        }
        log_line(LOG_ERROR,
                 "a message of %zu bytes from rank %d is lost: there is no memory to keep it",
                 stream->left, stream->peer); /* that message's receive waits until its deadline */
    }
    eager_consumed(mesh, stream->peer, eager_cost(frame->bytes));
}

static void meet_rts(struct mesh *mesh, struct frame_stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *receive = take_posted(mesh, frame, stream->peer);
    struct unexpected *message;

    if (receive) {
        if (agrees(mesh, receive, frame, stream->peer))
            send_cts(mesh, receive, frame, stream->peer, 0);
        return;
    }
    if (answer_with_goodbye(mesh, frame, stream->peer))
        return;
    message = scratch_take(&mesh->scratch, sizeof *message);
    if (!message) {
        log_line(LOG_ERROR, "no memory for a message of rank %d: it is lost", stream->peer);
        return;
    }
    *message = (struct unexpected){ .frame = *frame, .from = stream->peer };
    keep(mesh, message);
}

static void arrived_eager(struct mesh *mesh, struct frame_stream *stream)
{
    meet_eager(mesh, stream);
    answer_with_failure(mesh, &stream->head, stream->peer);
}

static void arrived_rts(struct mesh *mesh, struct frame_stream *stream)
{
    meet_rts(mesh, stream);
    answer_with_failure(mesh, &stream->head, stream->peer);
}

/* Returns the send that the peer answers.  Returns NULL if the send was cancelled, or its RTS went
 * to another rank, is not written in full, or was answered before.  Thus a frame that is still in
 * the queue is neither queued again nor freed. */
static struct request *send_answered(struct mesh *mesh, uint64_t id, int to)
{
    struct request *send = send_by_id(mesh->messages, id, to);
    const struct outgoing *out = send ? &send->out : NULL;

    return out && (out->frame.kind == FRAME_RTS || out->frame.kind == FRAME_DEVICE_RTS)
                   && out->written == sizeof out->frame + out->bytes
               ? send
               : NULL;
}

static void arrived_cts(struct mesh *mesh, struct frame_stream *stream)
{
    const struct frame *frame = &stream->head;
    const int from = stream->peer;
    struct request *send = send_answered(mesh, frame->id, from);

    if (!send) /* the send was cancelled; its CANCEL is on the way */
        return;
    if (send->out.frame.kind == FRAME_DEVICE_RTS) {
        device_cts_arrived(mesh, send, frame);
        return;
    }
    send->out.frame.kind = FRAME_DATA;
    send->out.payload = send->data;
    send->out.bytes = send->bytes;
    send->out.written = 0;
    /* If the next frame asks for a CTS from this rank, that CTS is written before these bytes.
     * Behind these bytes the CTS would come late, and the peer could not send at the same time. */
    send_out_later(mesh, from, &send->out);
}

/* Returns the kept message of this DATA frame, if its receive was given up after the CTS.
 * Otherwise returns NULL. */
static struct unexpected *put_back_before(const struct mesh *mesh, const struct frame *data,
                                          int from)
{
    struct unexpected *u = mesh->messages->unexpected;

    while (u && (u->from != from || u->frame.kind != FRAME_DATA || u->frame.id != data->id))
        u = u->next;
    return u && u->frame.bytes == data->bytes && !stream_into(mesh, u) ? u : NULL;
}

static void arrived_data(struct mesh *mesh, struct frame_stream *stream)
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

static void arrived_credit(struct mesh *mesh, struct frame_stream *stream)
{
    eager_credited(endpoint_of(mesh, stream->peer), stream->head.answer);
}

static void arrived_cancel(struct mesh *mesh, struct frame_stream *stream)
{
    message_cancelled(mesh, stream->head.id, stream->peer);
}

static void arrived_mismatch(struct mesh *mesh, struct frame_stream *stream)
{
    const struct frame *frame = &stream->head;
    struct request *send = send_answered(mesh, frame->id, stream->peer);

    if (send)
        finish_mismatch(mesh, send, stream->peer, &frame->signature);
}

static void arrived_probe(struct mesh *mesh, struct frame_stream *stream)
{
    probe_arrived(mesh, &stream->head, stream->peer);
    answer_with_goodbye(mesh, &stream->head, stream->peer);
}

static void arrived_failure(struct mesh *mesh, struct frame_stream *stream)
{
    /* If there is no memory for the frame, this rank notices the failure only at the peer's
     * goodbye. */
    keep_what_follows(mesh, stream, stream->head.bytes);
}

static void arrived_device_rts(struct mesh *mesh, struct frame_stream *stream)
{
    /* If there is no memory for the message, its receive waits until the deadline. */
    keep_what_follows(mesh, stream, sizeof(struct device_rts));
    answer_with_failure(mesh, &stream->head, stream->peer);
}

static void arrived_ats(struct mesh *mesh, struct frame_stream *stream)
{
    struct request *send = send_answered(mesh, stream->head.id, stream->peer);

    if (send && send->out.frame.kind == FRAME_DEVICE_RTS)
        request_finish(mesh, send, CT_OK, "");
}

static void arrived_device_cancel(struct mesh *mesh, struct frame_stream *stream)
{
    device_cancel_arrived(mesh, &stream->head, stream->peer);
}

static void arrived_goodbye(struct mesh *mesh, struct frame_stream *stream)
{
    goodbye_arrived(mesh, &stream->head, stream->peer);
}

/* The handler of each frame kind.  A later version may send other kinds, which are skipped. */
static void (*const arrivals[])(struct mesh *mesh, struct frame_stream *stream) = {
    [FRAME_EAGER] = arrived_eager,       [FRAME_RTS] = arrived_rts,
    [FRAME_CTS] = arrived_cts,           [FRAME_DATA] = arrived_data,
    [FRAME_MISMATCH] = arrived_mismatch, [FRAME_PROBE] = arrived_probe,
    [FRAME_FAILURE] = arrived_failure,   [FRAME_DEVICE_RTS] = arrived_device_rts,
    [FRAME_ATS] = arrived_ats,           [FRAME_DEVICE_CANCEL] = arrived_device_cancel,
    [FRAME_GOODBYE] = arrived_goodbye,   [FRAME_CANCEL] = arrived_cancel,
    [FRAME_CREDIT] = arrived_credit,
};

int message_arrived(struct mesh *mesh, struct frame_stream *stream)
{
    const size_t kind = stream->head.kind;

    /* A larger frame of these kinds is not valid.  Returning -1 closes the connection.  The limit
     * also bounds the memory that keep_what_follows() allocates. */
    if (stream->head.bytes > EAGER_MOST && (kind == FRAME_EAGER || kind == FRAME_FAILURE))
        return -1;
    if (kind < sizeof arrivals / sizeof *arrivals && arrivals[kind])
        arrivals[kind](mesh, stream);
    return 0;
}

/* ---- Landings ------------------------------------------------------------ */

/* Handles a complete message that no receive matched when its first byte came.  A matching receive
 * may have been posted since. */
static void landed_unexpected(struct mesh *mesh, struct unexpected *message)
{
    const int has_device_rts = message->frame.kind == FRAME_DEVICE_RTS;
    struct request *late = take_posted(mesh, &message->frame, message->from);

    if (!late && !(has_device_rts && answer_with_goodbye(mesh, &message->frame, message->from))) {
        keep(mesh, message);
        note_unexpected(mesh, message);
        return;
    }
    if (late && agrees(mesh, late, &message->frame, message->from)) {
        if (has_device_rts) {
            device_rts_met(mesh, late, message);
        } else {
            if (late->bytes > 0)
                memcpy(late->data, message->data, late->bytes);
            request_finish(mesh, late, CT_OK, "");
        }
    }
    unexpected_free(mesh, message);
}

void message_landed(struct mesh *mesh, struct frame_stream *stream)
{
    struct request *request = stream->request;
    struct unexpected *message = stream->unexpected;

    stream->request = NULL;
    stream->unexpected = NULL;
    if (request)
        request_finish(mesh, request, CT_OK, "");
    else if (message && message->frame.kind == FRAME_DATA)
        /* The message is in the list already and complete, so it becomes an eager message. */
        message->frame.kind = FRAME_EAGER;
    else if (message && message->frame.kind == FRAME_FAILURE)
        failure_arrived(mesh, message);
    else if (message)
        landed_unexpected(mesh, message);
}
