/* SPDX-License-Identifier: Apache-2.0 */
/* device_rendezvous.c - messages between devices' memories of one host go without the host: what
 * MPI libraries call rendezvous by get, RGET (Open MPI's ob1 over smcuda, UCX's cuda_ipc).
 *
 *   sender    LEND, with a handle of its buffer   ->  a receive whose buffer is on a device, too,
 *                                                     maps that and copies
 *   receiver  TAKEN                               ->  the send is done
 *   receiver  ACCEPT, where it can't              ->  the sender copies to the host, then DATA
 *
 * Who waits makes messages move, whosever they are, and so it is with these copies: each is an
 * errand, which one thread at a time moves a step on, outside of the messages' lock.  While one is
 * under way its request is in a list of its own, where nobody else ends it: its buffer is not the
 * caller's again before the device is through.
 *
 * Of two devices the receiver's may read other bytes than lie in the sender's.  So it asks for the
 * bytes of the first message, and that the next ones bring the handle of a sample; it tries that,
 * once, before it takes the message (peer_access_check.h).
 *
 * A sender that gives up (its deadline, an abort) does not wait for its receiver, whose copy may
 * then find other bytes.  So before it goes it counts that in the ring between the two, and sends
 * LOAN_ENDS.  A receiver whose copy is done looks at that count, which it sees if it has copied
 * anything later, and waits until it has heard of all that were ended: what was lent still then is
 * as it was sent. */
#include "runtime/messaging/device_rendezvous.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/log.h"

enum { YIELDS = 100, NAP_US = 50 };

/* ---- The sender --------------------------------------------------------------- */

enum lending may_lend_to(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];
    enum lending may = LENDS_NOTHING;

    if (peer == mesh->rank)
        return may;
    pthread_mutex_lock(&mesh->transport->lock);
    if (wire->out && wire->out->fd < 0 && !wire->broken && !wire->gone
        && !(wire->no_loans & NO_MORE_LOANS))
        may = wire->no_loans & LOANS_WITH_SAMPLE ? LENDS_WITH_SAMPLE : LENDS;
    pthread_mutex_unlock(&mesh->transport->lock);
    return may;
}

void request_lends(struct request *send, const struct loan *loan)
{
    send->out.frame.kind = FRAME_LEND;
    send->out.payload = loan;
    send->out.bytes = sizeof *loan;
}

static struct ring *ring_of(const struct mesh *mesh, int from, int to)
{
    if (!mesh->node.base || mesh->peers[from].local < 0 || mesh->peers[to].local < 0)
        return NULL;
    return node_ring(&mesh->node, mesh->peers[from].local, mesh->peers[to].local);
}

void loan_given_up(struct mesh *mesh, int peer, uint64_t id)
{
    struct ring *ring = ring_of(mesh, mesh->rank, peer);

    if (ring)
        atomic_fetch_add(&ring->loans_ended, 1);
    send_word(mesh, peer, FRAME_LOAN_ENDS, id);
}

/* ---- Errands, under the lock --------------------------------------------------- */

static void errand_begin(struct mesh *mesh, struct request *request, enum errand errand)
{
    request->errand = errand;
    list_add(&mesh->messages->errands, request);
    atomic_fetch_add(&mesh->messages->errands_left, 1);
    bell_ring(mesh->waiter.bell, mesh->waiter.event_fd); /* who sleeps shall move it */
}

static void errand_over(struct mesh *mesh, struct request *request)
{
    list_remove(request);
    request->errand = NO_ERRAND;
    atomic_fetch_sub(&mesh->messages->errands_left, 1);
}

static void finish(struct mesh *mesh, struct request *request, ct_status status, const char *reason)
{
    char words[240];

    snprintf(words, sizeof words, "%s", reason); /* may be the request's own */
    errand_over(mesh, request);
    request_finish(mesh, request, status, words);
}

static void finish_without(struct mesh *mesh, struct request *request, int peer)
{
    char words[240];

    peer_gone_words(mesh, peer, mesh->transport->wires[peer].why, words, sizeof words);
    finish(mesh, request, CT_ERR_PEER, words);
}

void loan_accepted(struct mesh *mesh, struct request *send, const struct frame *accept)
{
    mesh->transport->wires[send->peer].no_loans |= accept->no_loans;
    list_remove(send);
    errand_begin(mesh, send, GOES_TO_HOST);
}

/* The bytes lie in host memory now. */
static void send_staged(struct mesh *mesh, struct request *send)
{
    errand_over(mesh, send);
    list_add(&mesh->messages->active, send);
    send->data = send->copy->ops->host(send->copy);
    send->out.frame.kind = FRAME_DATA;
    send->out.payload = send->data;
    send->out.bytes = send->bytes;
    send->out.written = 0;
    send_out(mesh, send->peer, &send->out);
}

void loan_met(struct mesh *mesh, struct request *receive, const struct unexpected *message)
{
    const struct loan *loan = (const void *)message->data;

    if (receive->from_anybody)
        receive->peer = message->from;
    if (!receive->copy || receive->loan_ended || !ring_of(mesh, message->from, mesh->rank)) {
        accept_offer(mesh, receive, &message->frame, message->from, 0);
        return;
    }
    receive->copy->ops->borrows(receive->copy, loan);
    errand_begin(mesh, receive, TAKES_LOAN);
}

void loan_end_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct messages *m = mesh->messages;

    mesh->transport->wires[from].loans_ended++;
    for (struct request *r = m->errands; r; r = r->next)
        if (r->errand == TAKES_LOAN && r->peer == from && r->met == frame->id)
            r->loan_ended = 1;
    message_cancelled(mesh, frame->id, from);
}

/* The sender shall send the bytes.  If it has given up, the receive takes the next message, which
 * comes through the host. */
static void ask_for_bytes(struct mesh *mesh, struct request *receive, int no_loans)
{
    const struct frame offer = { .id = receive->met };

    if (no_loans & NO_MORE_LOANS)
        log_line(LOG_INFO, "messages of rank %d on a device come through the host: %s",
                 receive->peer, ct_last_error());
    errand_over(mesh, receive);
    receive->copy->ops->is_not_taken(receive->copy);
    if (receive->loan_ended) {
        receive_again(mesh, receive);
        return;
    }
    accept_offer(mesh, receive, &offer, receive->peer, no_loans);
    look_for_leaver(mesh, receive);
}

static void taken(struct mesh *mesh, struct request *receive)
{
    const struct ring *ring = ring_of(mesh, receive->peer, mesh->rank);

    if (atomic_load(&ring->loans_ended) != mesh->transport->wires[receive->peer].loans_ended)
        return; /* of which, it will say */
    if (receive->loan_ended) {
        ask_for_bytes(mesh, receive, 0);
        return;
    }
    send_word(mesh, receive->peer, FRAME_TAKEN, receive->met);
    finish(mesh, receive, CT_OK, "");
}

/* A message of which the device did not bring the bytes: the sender of a loan still has them, and
 * waits for the next receive; who accepted what was to go to the host waits for the next message.
 */
static void give_back(struct mesh *mesh, struct request *request)
{
    if (request->errand == GOES_TO_HOST)
        send_word(mesh, request->peer, FRAME_CANCEL, request->id);
    else if (!request->loan_ended)
        put_back(mesh, request, FRAME_OFFER);
}

/* It may be the sender's death by which the device failed. */
static void failed(struct mesh *mesh, struct request *request, ct_status status)
{
    const int peer = request->peer;

    if (mesh_death(mesh, peer) || mesh->transport->wires[peer].gone) {
        finish_without(mesh, request, peer);
        return;
    }
    give_back(mesh, request);
    finish(mesh, request, status, ct_last_error());
}

static void drop(struct mesh *mesh, struct request *request)
{
    give_back(mesh, request);
    finish(mesh, request, request->given_up, request->reason);
}

static void conclude(struct mesh *mesh, struct request *request, enum device_copy_step step,
                     ct_status status)
{
    const struct wire *wire = &mesh->transport->wires[request->peer];

    if (step == DEVICE_COPY_GOES_ON)
        return;
    if (request->given_up != CT_OK)
        drop(mesh, request);
    else if (step == DEVICE_COPY_FAILED)
        failed(mesh, request, status);
    else if (request->errand == GOES_TO_HOST)
        send_staged(mesh, request);
    else if (wire->gone)
        finish_without(mesh, request, request->peer);
    else if (step == DEVICE_COPY_DONE)
        taken(mesh, request);
    else
        ask_for_bytes(mesh, request,
                      step == DEVICE_COPY_NEVER_CAN      ? NO_MORE_LOANS
                      : step == DEVICE_COPY_NEEDS_SAMPLE ? LOANS_WITH_SAMPLE
                                                         : 0);
}

/* ---- Moving them ---------------------------------------------------------------- */

int errands_are_left(const struct mesh *mesh)
{
    return atomic_load(&mesh->messages->errands_left) > 0;
}

/* Once round the list.  Others add to its end meanwhile, and nobody else takes off. */
static void move_all(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    for (struct request *r = m->errands, *next; r; r = next) {
        const int given_up = r->given_up != CT_OK
                             || (r->errand == TAKES_LOAN && mesh->transport->wires[r->peer].gone);
        enum device_copy_step step;
        ct_status status;

        pthread_mutex_unlock(&mesh->transport->lock);
        step = r->errand == TAKES_LOAN ? r->copy->ops->take(r->copy, given_up, &status)
                                       : r->copy->ops->stage(r->copy, given_up, &status);
        pthread_mutex_lock(&mesh->transport->lock);
        next = r->next;
        conclude(mesh, r, step, status);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
}

int errands_move(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!errands_are_left(mesh))
        return 0;
    if (pthread_mutex_trylock(&m->errands_lock) == 0) {
        move_all(mesh);
        pthread_mutex_unlock(&m->errands_lock);
    }
    return errands_are_left(mesh);
}

void errands_nap(int naps)
{
    const struct timespec nap = { 0, NAP_US * 1000L };

    if (naps < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

void errand_end(struct mesh *mesh, struct request *request)
{
    for (int naps = 0; !atomic_load(&request->done); naps++) {
        errands_move(mesh);
        errands_nap(naps);
    }
}
