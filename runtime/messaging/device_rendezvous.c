/* SPDX-License-Identifier: Apache-2.0 */
/* device_rendezvous.c - sends messages between two devices of one host without a copy through host
 * memory.  MPI libraries call this rendezvous by get, or RGET (Open MPI's ob1 over smcuda, UCX's
 * cuda_ipc).
 *
 *   sender      It sends a DEVICE_RTS with a handle of its buffer.
 *   receiver    If its receive has a buffer in device memory, it maps the sender's buffer, copies,
 *               and answers with an ATS.  Then the send is done.
 *               If it can't, it answers with a CTS.  The sender copies to the host and sends DATA.
 *
 * Any thread that waits moves all messages, and so also moves these copies.  One thread at a time
 * moves each copy a step further, without the transport's lock.  While a copy is pending, its
 * request is in messages->copies, and only this file may end it.  So the user gets the buffer back
 * only after the device has finished.
 *
 * The receiver's device may read wrong bytes from the sender's memory.  So the receiver answers the
 * first message with a CTS that asks for a test pattern in later messages.  Before the receiver
 * copies the next message, it reads that test pattern, once (peer_access_check.h).
 *
 * A sender that gives up (its timeout, an abort) does not wait for a receiver that may be copying.
 * Before the sender returns, it increments a counter in the ring between the two ranks and sends a
 * DEVICE_CANCEL.  A receiver that has finished a copy compares that counter with the number of
 * cancels that have arrived.  If the counter is ahead, the receiver waits for the missing cancels.
 * If no cancel names its message, the sender's buffer was valid during the whole copy. */
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

enum device_rendezvous device_rendezvous_with(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);
    enum device_rendezvous may = NO_DEVICE_RENDEZVOUS;

    if (peer == mesh->rank)
        return may;
    pthread_mutex_lock(&mesh->transport->lock);
    if (is_neighbour(mesh, peer))
        ensure_connection(mesh, peer);
    if (endpoint->out && endpoint->out->ops->device_rendezvous && endpoint->state == ENDPOINT_OPEN
        && !(endpoint->device_rts_limits & NO_MORE_DEVICE_RTS))
        may = endpoint->device_rts_limits & DEVICE_RTS_NEEDS_TEST_PATTERN
                  ? DEVICE_RENDEZVOUS_WITH_TEST_PATTERN
                  : DEVICE_RENDEZVOUS;
    pthread_mutex_unlock(&mesh->transport->lock);
    return may;
}

void request_send_device_rts(struct request *send, const struct device_rts *rts)
{
    send->out.frame.kind = FRAME_DEVICE_RTS;
    send->out.payload = rts;
    send->out.bytes = sizeof *rts;
}

static struct ring *ring_of(const struct mesh *mesh, int from, int to)
{
    if (!mesh->node.base || mesh->peers[from].local < 0 || mesh->peers[to].local < 0)
        return NULL;
    return node_ring(&mesh->node, mesh->peers[from].local, mesh->peers[to].local);
}

void device_send_cancelled(struct mesh *mesh, int peer, uint64_t id)
{
    struct ring *ring = ring_of(mesh, mesh->rank, peer);

    if (ring)
        atomic_fetch_add(&ring->device_cancels, 1);
    send_control(mesh, peer, FRAME_DEVICE_CANCEL, id);
}

/* ---- Pending copies, under the lock -------------------------------------------- */

static void copy_begin(struct mesh *mesh, struct request *request, enum pending_copy pending_copy)
{
    request->pending_copy = pending_copy;
    list_add(&mesh->messages->copies, request);
    atomic_fetch_add(&mesh->messages->copies_pending, 1);
    bell_ring(mesh->waiter.bell, mesh->waiter.wake_fd); /* wakes a thread, which moves the copy */
}

static void copy_over(struct mesh *mesh, struct request *request)
{
    list_remove(request);
    request->pending_copy = NO_COPY;
    atomic_fetch_sub(&mesh->messages->copies_pending, 1);
}

static void device_rts_finish(struct mesh *mesh, struct request *request, ct_status status,
                              const char *reason)
{
    char words[240];

    snprintf(words, sizeof words, "%s", reason); /* copied, since reason may be request->reason */
    copy_over(mesh, request);
    request_finish(mesh, request, status, words);
}

static void finish_without(struct mesh *mesh, struct request *request, int peer)
{
    char words[240];

    peer_gone_words(mesh, peer, endpoint_of(mesh, peer)->why, words, sizeof words);
    device_rts_finish(mesh, request, CT_ERR_PEER, words);
}

void device_cts_arrived(struct mesh *mesh, struct request *send, const struct frame *cts)
{
    endpoint_of(mesh, send->peer)->device_rts_limits |= cts->device_rts_limits;
    list_remove(send);
    copy_begin(mesh, send, COPY_TO_STAGING);
}

/* Sends a message after the device has copied its bytes to host memory. */
static void send_staged(struct mesh *mesh, struct request *send)
{
    copy_over(mesh, send);
    list_add(&mesh->messages->active, send);
    send->data = send->copy->ops->host(send->copy);
    send->out.frame.kind = FRAME_DATA;
    send->out.payload = send->data;
    send->out.bytes = send->bytes;
    send->out.written = 0;
    send_out(mesh, send->peer, &send->out);
}

void device_rts_met(struct mesh *mesh, struct request *receive, const struct unexpected *message)
{
    const struct device_rts *rts = (const void *)message->data;

    if (receive->from_anybody)
        receive->peer = message->from;
    if (!receive->copy || receive->sender_cancelled || !ring_of(mesh, message->from, mesh->rank)) {
        send_cts(mesh, receive, &message->frame, message->from, 0);
        return;
    }
    receive->copy->ops->set_source(receive->copy, rts);
    copy_begin(mesh, receive, COPY_FROM_PEER);
}

void device_cancel_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct messages *m = mesh->messages;

    endpoint_of(mesh, from)->device_cancels++;
    for (struct request *r = m->copies; r; r = r->next)
        if (r->pending_copy == COPY_FROM_PEER && r->peer == from && r->met == frame->id)
            r->sender_cancelled = 1;
    message_cancelled(mesh, frame->id, from);
}

/* Asks the sender to send the bytes through the host.  If the sender has cancelled the message, the
 * receive takes the next message instead. */
static void get_through_host(struct mesh *mesh, struct request *receive, int device_rts_limits)
{
    const struct frame rts = { .id = receive->met };

    if (device_rts_limits & NO_MORE_DEVICE_RTS)
        log_line(LOG_INFO, "messages of rank %d on a device come through the host: %s",
                 receive->peer, ct_last_error());
    copy_over(mesh, receive);
    receive->copy->ops->drop_source(receive->copy);
    if (receive->sender_cancelled) {
        receive_again(mesh, receive);
        return;
    }
    send_cts(mesh, receive, &rts, receive->peer, device_rts_limits);
    look_for_goodbye(mesh, receive);
}

static void get_is_done(struct mesh *mesh, struct request *receive)
{
    const struct ring *ring = ring_of(mesh, receive->peer, mesh->rank);

    if (atomic_load(&ring->device_cancels) != endpoint_of(mesh, receive->peer)->device_cancels)
        return; /* a cancel is on its way, perhaps of this message */
    if (receive->sender_cancelled) {
        get_through_host(mesh, receive, 0);
        return;
    }
    send_control(mesh, receive->peer, FRAME_ATS, receive->met);
    device_rts_finish(mesh, receive, CT_OK, "");
}

/* Handles a message that the device did not copy.  If this rank is the sender, it cancels the
 * message, and the peer's receive waits for the next one.  If this rank is the receiver, it keeps
 * the message as an RTS for the next receive, since the sender still has the bytes. */
static void device_rts_give_back(struct mesh *mesh, struct request *request)
{
    if (request->pending_copy == COPY_TO_STAGING)
        send_control(mesh, request->peer, FRAME_CANCEL, request->id);
    else if (!request->sender_cancelled)
        put_back(mesh, request, FRAME_RTS);
}

/* Ends a request after an error of the device.  If the peer has died, its death is taken as the
 * cause. */
static void device_rts_failed(struct mesh *mesh, struct request *request, ct_status status)
{
    const int peer = request->peer;

    if (mesh_death(mesh, peer) || endpoint_of(mesh, peer)->state == ENDPOINT_GONE) {
        finish_without(mesh, request, peer);
        return;
    }
    device_rts_give_back(mesh, request);
    device_rts_finish(mesh, request, status, ct_last_error());
}

static void drop(struct mesh *mesh, struct request *request)
{
    device_rts_give_back(mesh, request);
    device_rts_finish(mesh, request, request->given_up, request->reason);
}

static void conclude(struct mesh *mesh, struct request *request, enum device_copy_step step,
                     ct_status status)
{
    const struct endpoint *endpoint = endpoint_of(mesh, request->peer);

    if (step == DEVICE_COPY_GOES_ON)
        return;
    if (request->given_up != CT_OK)
        drop(mesh, request);
    else if (step == DEVICE_COPY_FAILED)
        device_rts_failed(mesh, request, status);
    else if (request->pending_copy == COPY_TO_STAGING)
        send_staged(mesh, request);
    else if (endpoint->state == ENDPOINT_GONE)
        finish_without(mesh, request, request->peer);
    else if (step == DEVICE_COPY_DONE)
        get_is_done(mesh, request);
    else
        get_through_host(mesh, request,
                         step == DEVICE_COPY_NEVER_CAN            ? NO_MORE_DEVICE_RTS
                         : step == DEVICE_COPY_NEEDS_TEST_PATTERN ? DEVICE_RTS_NEEDS_TEST_PATTERN
                                                                  : 0);
}

/* ---- Moving them ---------------------------------------------------------------- */

int device_copies_pending(const struct mesh *mesh)
{
    return atomic_load(&mesh->messages->copies_pending) > 0;
}

/* Moves each copy in the list one step.  Other threads may add copies to the end meanwhile.  Only
 * this thread, which has copies_lock, removes copies. */
static void move_all(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    for (struct request *r = m->copies, *next; r; r = next) {
        const int given_up = r->given_up != CT_OK
                             || (r->pending_copy == COPY_FROM_PEER
                                 && endpoint_of(mesh, r->peer)->state == ENDPOINT_GONE);
        enum device_copy_step step;
        ct_status status;

        pthread_mutex_unlock(&mesh->transport->lock);
        step = r->pending_copy == COPY_FROM_PEER
                   ? r->copy->ops->get(r->copy, given_up, &status)
                   : r->copy->ops->to_host(r->copy, given_up, &status);
        pthread_mutex_lock(&mesh->transport->lock);
        next = r->next;
        conclude(mesh, r, step, status);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
}

int device_copies_move(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!device_copies_pending(mesh))
        return 0;
    if (pthread_mutex_trylock(&m->copies_lock) == 0) {
        move_all(mesh);
        pthread_mutex_unlock(&m->copies_lock);
    }
    return device_copies_pending(mesh);
}

void device_copies_nap(int naps)
{
    const struct timespec nap = { 0, NAP_US * 1000L };

    if (naps < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

void device_copy_finish(struct mesh *mesh, struct request *request)
{
    for (int naps = 0; !atomic_load(&request->done); naps++) {
        device_copies_move(mesh);
        device_copies_nap(naps);
    }
}
