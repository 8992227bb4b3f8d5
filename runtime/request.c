/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - starting, waiting for and giving up sends and receives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/channel.h"
#include "runtime/clock.h"
#include "runtime/messages.h"
#include "runtime/news.h"
#include "runtime/trace.h"

void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature)
{
    const int eager = bytes <= EAGER_BYTES;

    memset(request, 0, sizeof *request);
    request->channel = channel;
    request->peer = peer;
    request->tag = tag;
    request->data = data;
    request->bytes = bytes;
    request->signature = *signature;
    request->is_send = is_send;
    if (!is_send)
        return;
    request->out.request = request;
    request->out.payload = data;
    request->out.bytes = eager ? bytes : 0;
    request->out.frame = (struct frame){ .magic = FRAME_MAGIC,
                                         .kind = eager ? FRAME_EAGER : FRAME_OFFER,
                                         .channel = channel,
                                         .tag = tag,
                                         .bytes = bytes,
                                         .signature = *signature };
}

/* A send to ourselves meets its receive here, or waits among the unexpected. */
static void send_to_self(struct mesh *mesh, struct request *send)
{
    struct request *receive = take_posted(mesh, &send->out.frame, mesh->rank);
    struct unexpected *message;

    if (receive) {
        const struct signature theirs = receive->signature; /* once done it is another thread's */

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
    message = malloc(sizeof *message);
    if (!message) {
        request_finish(mesh, send, CT_ERR_NOMEM, "no memory for a message to itself");
        return;
    }
    *message = (struct unexpected){ .frame = send->out.frame, .from = mesh->rank, .sender = send };
    keep(mesh, message);
}

/* Known once there is a connection: what is the first to be sent is offered. */
static void be_eager_over(const struct mesh *mesh, struct request *send)
{
    struct wire *wire = &mesh->messages->wires[send->peer];

    if (send->out.frame.kind != FRAME_OFFER || !wire->out
        || send->bytes > (wire->out->fd < 0 ? EAGER_IN_MEMORY : EAGER_OVER_SOCKETS)
        || wire->unasked + send->bytes > UNASKED_MOST)
        return;
    wire->unasked += send->bytes;
    send->out.frame.kind = FRAME_EAGER;
    send->out.bytes = send->bytes;
}

static void start_send(struct mesh *mesh, struct request *request)
{
    const int to = request->peer;
    const uint64_t traced =
        trace_sent(mesh->trace, mesh->rank, to, request->tag, request->bytes, request->id);

    request->out.frame.id = request->id;
    be_eager_over(mesh, request);
    list_add(&mesh->messages->active, request);
    if (to == mesh->rank)
        send_to_self(mesh, request);
    else
        send_out(mesh, to, &request->out);
    look_for_leaver(mesh, request);
    trace_end(mesh->trace, traced, CT_OK);
}

static struct unexpected *take_unexpected(struct messages *m, const struct request *receive)
{
    for (struct unexpected **link = &m->unexpected; *link; link = &(*link)->next) {
        struct unexpected *message = *link;

        if (matches(receive, message->frame.channel, message->from, message->frame.tag)) {
            *link = message->next;
            if (!*link)
                m->unexpected_end = link;
            return message;
        }
    }
    return NULL;
}

static void receive_kept(struct mesh *mesh, struct request *receive, struct unexpected *message)
{
    struct request *sender = message->sender;
    const struct signature theirs = receive->signature; /* once done it is another thread's */

    receive->peer = message->from;
    if (!agrees(mesh, receive, &message->frame, message->from)) {
        if (sender)
            finish_mismatch(mesh, sender, mesh->rank, &theirs);
        return;
    }
    if (sender) {
        if (receive->bytes > 0)
            memcpy(receive->data, sender->data, receive->bytes);
        request_finish(mesh, sender, CT_OK, "");
        request_finish(mesh, receive, CT_OK, "");
    } else if (message->frame.kind == FRAME_OFFER) {
        accept_offer(mesh, receive, &message->frame, message->from);
    } else {
        if (receive->bytes > 0)
            memcpy(receive->data, message->data, receive->bytes);
        request_finish(mesh, receive, CT_OK, "");
    }
}

static void start_recv(struct mesh *mesh, struct request *request)
{
    struct messages *m = mesh->messages;
    struct unexpected *message = take_unexpected(m, request);
    const int from = request->peer;

    if (message) {
        receive_kept(mesh, request, message);
        free(message);
        return;
    }
    list_add(&m->posted, request);
    if (from != CT_ANY_SOURCE && m->wires[from].gone)
        peer_gone(mesh, from, m->wires[from].why);
    look_for_leaver(mesh, request);
}

static void start(struct mesh *mesh, struct request *request)
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
    pthread_mutex_lock(&mesh->messages->lock);
    start(mesh, request);
    pthread_mutex_unlock(&mesh->messages->lock);
}

void request_recv(struct mesh *mesh, struct request *request, uint64_t channel, int from, int tag,
                  void *data, size_t bytes, const struct signature *signature)
{
    request_prepare(request, 0, channel, from, tag, data, bytes, signature);
    pthread_mutex_lock(&mesh->messages->lock);
    start(mesh, request);
    pthread_mutex_unlock(&mesh->messages->lock);
}

/* Receives first: what this rank sends to itself, or a peer has offered, finds them. */
void requests_start(struct mesh *mesh, struct request *requests, int count)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&m->lock);
    m->gathering = 1;
    for (int is_send = 0; is_send <= 1; is_send++)
        for (int i = 0; i < count; i++)
            if (requests[i].is_send == is_send)
                start(mesh, &requests[i]);
    m->gathering = 0;
    for (int i = 0; i < count; i++)
        if (requests[i].peer >= 0)
            flush_gathered(mesh, requests[i].peer);
    pthread_mutex_unlock(&m->lock);
}

void requests_in_background(struct mesh *mesh, struct request *requests, int count)
{
    struct messages *m = mesh->messages;
    int moving = 0;

    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < count; i++)
        if (!atomic_load(&requests[i].done)) {
            requests[i].background = 1;
            moving++;
        }
    m->background += moving;
    if (moving > 0)
        background_needed(mesh);
    pthread_mutex_unlock(&m->lock);
}

static void forget_sender(struct messages *m, const struct request *send)
{
    for (struct unexpected *message = m->unexpected; message; message = message->next)
        if (message->sender == send) {
            unexpected_remove(m, message);
            return;
        }
}

/* A send that has begun to be written can't be taken back: the peer would read what follows
 * as its rest.  So the rest is copied, and nobody's from now on; the peer gets it. */
static int leave_behind(struct messages *m, struct outgoing **place, struct wire *wire)
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
    if (wire->last == out)
        wire->last = rest;
    return 1;
}

void request_give_up(struct mesh *mesh, struct request *request, ct_status status,
                     const char *reason)
{
    struct messages *m = mesh->messages;
    struct wire *wire;

    if (atomic_load(&request->done))
        return;
    if (request->is_send && request->peer == mesh->rank) {
        forget_sender(m, request);
    } else if (request->is_send) {
        wire = &m->wires[request->peer];
        for (struct outgoing **link = &wire->first, *last = NULL; *link;
             last = *link, link = &(*link)->next) {
            if (*link != &request->out)
                continue;
            if (request->out.written > 0 && !leave_behind(m, link, wire)) {
                peer_broken(mesh, request->peer, "a send to it was given up half way");
                return;
            }
            if (request->out.written > 0)
                break;
            *link = request->out.next;
            if (!*link)
                wire->last = last;
            break;
        }
    }
    request_finish(mesh, request, status, reason);
}

static void cancel_locked(struct mesh *mesh, struct request *request)
{
    request_give_up(mesh, request, CT_ERR_ABORTED, "cancelled");
}

void request_cancel(struct mesh *mesh, struct request *request)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&m->lock);
    cancel_locked(mesh, request);
    if (m->background > 0 && atomic_load(&m->waiting) == 0)
        background_needed(mesh);
    pthread_mutex_unlock(&m->lock);
}

/* at_all: not only at its peer. */
static int test(struct mesh *mesh, struct request *request, int at_all)
{
    if (!atomic_load(&request->done) && pthread_mutex_trylock(&mesh->messages->lock) == 0) {
        progress_for(mesh, at_all ? CT_ANY_SOURCE : request->peer);
        pthread_mutex_unlock(&mesh->messages->lock);
    }
    return atomic_load(&request->done);
}

int request_test(struct mesh *mesh, struct request *request)
{
    return test(mesh, request, 1);
}

void messages_look(struct mesh *mesh)
{
    if (pthread_mutex_trylock(&mesh->messages->lock) == 0) { /* who holds it looks */
        progress(mesh);
        if (atomic_load(&mesh->messages->questions))
            questions_look(mesh);
        pthread_mutex_unlock(&mesh->messages->lock);
    }
}

/* A sleep passed without a sign of life from the one we wait for. */
static void look_at_peer(struct mesh *mesh, const struct request *request, int may_ask)
{
    int peer, local;

    pthread_mutex_lock(&mesh->messages->lock);
    if (may_ask && !atomic_load(&request->done))
        ask(mesh, request);
    if (atomic_load(&mesh->messages->questions))
        questions_look(mesh);
    peer = request->peer; /* a receive from anybody learns it when it is matched */
    local = peer >= 0 && peer != mesh->rank && mesh->node.base ? mesh->peers[peer].local : -1;
    if (local >= 0 && node_peer_gone(&mesh->node, local)) {
        progress(mesh); /* what it wrote before it ended is still there */
        if (!atomic_load(&request->done)) {
            peer_broken(mesh, peer, "its process ended");
            peer_gone(mesh, peer, "its process ended");
        }
    }
    pthread_mutex_unlock(&mesh->messages->lock);
}

int request_peer(struct mesh *mesh, const struct request *request)
{
    int peer;

    pthread_mutex_lock(&mesh->messages->lock);
    peer = request->peer;
    pthread_mutex_unlock(&mesh->messages->lock);
    return peer;
}

/* A receive is a wait even if its message is there: its arrow ends in it. */
static uint64_t begin_traced_wait(struct mesh *mesh, struct request *request)
{
    if (!mesh->trace || (request->is_send && atomic_load(&request->done)))
        return 0;
    return trace_wait(mesh->trace, request_peer(mesh, request), request->bytes);
}

static void end_traced_wait(struct mesh *mesh, const struct request *request, uint64_t traced)
{
    const int arrow = traced && !request->is_send;

    trace_received(mesh->trace, traced, request->status, request->peer,
                   arrow ? trace_arrow(mesh->trace, request->peer, request->sent_as) : 0);
}

/* Its rank in the node; -1: it is elsewhere, or may be anybody. */
static int neighbour(struct mesh *mesh, const struct request *request)
{
    const int peer = request_peer(mesh, request);

    return peer >= 0 && peer != mesh->rank && mesh->node.base ? mesh->peers[peer].local : -1;
}

/* Until it is done, the deadline passed (WAIT_OVER), or *broken is set. */
static enum wait_turn wait_until_done(struct mesh *mesh, struct request *request, int64_t deadline,
                                      const _Atomic int *broken)
{
    struct messages *m = mesh->messages;
    enum wait_turn turn = WAIT_AGAIN;
    unsigned ends = 0, moves = atomic_load_explicit(&m->moves, memory_order_relaxed), moved;
    int may_ask = request->signature.seq != 0; /* of a collective: there is a call to ask about */
    const int local = neighbour(mesh, request);
    struct wait wait;

    atomic_fetch_add(&m->waiting, 1);
    wait_begin(&wait, &mesh->waiter, deadline);
    wait.soon = may_ask;
    if (atomic_load(&mesh->waiter.sockets))
        wait_for_processor(&wait); /* each test asks the kernel: others may run meanwhile */
    /* Who slept was woken by anybody; and who gives up shall know what the others have said. */
    while (!test(mesh, request, wait.asleep || wait.polls || turn == WAIT_OVER) && turn != WAIT_OVER
           && !(broken && atomic_load(broken))) {
        moved = atomic_load_explicit(&m->moves, memory_order_relaxed);
        if (local >= 0 && moved != moves) {
            wait_anew(&wait);
            if (atomic_load(&mesh->waiter.sockets))
                wait_for_processor(&wait);
        }
        moves = moved;
        if (local >= 0)
            wait_for_rank(&wait, local);
        turn = clock_coarse_ms() < deadline ? wait_turn(&wait) : WAIT_OVER; /* bytes may flow */
        mesh_look_for_news(mesh);
        if (turn == WAIT_LOOK || ends != atomic_load(&mesh->waiter.ends)) {
            ends = atomic_load(&mesh->waiter.ends);
            look_at_peer(mesh, request, turn == WAIT_LOOK && may_ask);
            may_ask &= turn != WAIT_LOOK;
        }
    }
    wait_end(&wait);
    return turn;
}

static void wait_is_over(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (atomic_fetch_sub(&m->waiting, 1) == 1 && m->background > 0)
        background_needed(mesh);
}

ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *broken)
{
    const uint64_t traced = begin_traced_wait(mesh, request);
    enum wait_turn turn = WAIT_AGAIN;
    ct_status status;

    if (!atomic_load(&request->done)) {
        turn = wait_until_done(mesh, request, deadline, broken);
        pthread_mutex_lock(&mesh->messages->lock);
        cancel_locked(mesh, request);
        wait_is_over(mesh);
        pthread_mutex_unlock(&mesh->messages->lock);
    }
    end_traced_wait(mesh, request, traced);
    status = request->status;
    if (status == CT_ERR_ABORTED && turn == WAIT_OVER)
        return ct_fail(CT_ERR_TIMEOUT, "the deadline passed");
    if (status == CT_ERR_ABORTED)
        return ct_fail(CT_ERR_ABORTED, "the group was aborted");
    return status == CT_OK ? CT_OK : ct_fail(status, "%s", request->reason);
}

int request_done_by(struct mesh *mesh, struct request *request, int64_t deadline,
                    const _Atomic int *broken)
{
    wait_until_done(mesh, request, deadline, broken);
    pthread_mutex_lock(&mesh->messages->lock);
    wait_is_over(mesh);
    pthread_mutex_unlock(&mesh->messages->lock);
    return atomic_load(&request->done);
}

/* Who asks again and again without ever waiting hears of deaths too. */
int request_poll(struct mesh *mesh, struct request *request)
{
    const uint64_t now = clock_coarse_ns();

    mesh_look_for_news(mesh);
    if (!request_test(mesh, request) && now != request->looked_ns) {
        request->looked_ns = now;
        look_at_peer(mesh, request, 0);
    }
    return atomic_load(&request->done);
}

int request_is_posted(struct mesh *mesh, uint64_t channel, int from, int tag)
{
    int found = 0;

    pthread_mutex_lock(&mesh->messages->lock);
    for (struct request *r = mesh->messages->posted; r && !found; r = r->next)
        found = matches(r, channel, from, tag);
    pthread_mutex_unlock(&mesh->messages->lock);
    return found;
}
