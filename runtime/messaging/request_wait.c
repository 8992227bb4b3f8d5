/* SPDX-License-Identifier: Apache-2.0 */
/* request_wait.c - waiting for a request, or asking again and again whether it is done.
 *
 * There is no thread that moves messages while somebody waits: who waits looks at its peer's link
 * (progress.c) after each turn of its wait (waiter.c) until the request is done, the deadline
 * passed or the group broke.  A look tries the lock: a thread that holds it moves all there is. But
 * that thread may be past what has come since, and leave: a look after a sleep, and the last one
 * before it, waits for the lock.  There is no other look until the bell rings again.
 *
 * Between turns it hears of deaths (death_notice.h).  When a sleep passed without a sign of life it
 * looks whether the peer's process still is there (of one elsewhere a connection tells), and asks
 * it once whether it makes the same call. Who gave up waiting leaves what moves in the background
 * to the thread (progress_thread.c). */
#include <stdio.h>

#include "runtime/messaging/call_probe.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/trace/trace.h"
#include "runtime/util/clock.h"

enum { NAPS_BEFORE_LOOK = 1000, LOOKS_WITH_SOCKETS = 600 };

/* 0: another thread has it, and is not waited for. */
static int take_lock(struct mesh *mesh, int waits)
{
    pthread_mutex_t *const lock = &mesh->transport->lock;

    return (waits ? pthread_mutex_lock(lock) : pthread_mutex_trylock(lock)) == 0;
}

/* at_all: not only at its peer. */
static int test(struct mesh *mesh, struct request *request, int at_all, int waits)
{
    if (!atomic_load(&request->done) && take_lock(mesh, waits)) {
        progress_for(mesh, at_all ? CT_ANY_SOURCE : request->peer, request->bytes);
        pthread_mutex_unlock(&mesh->transport->lock);
    }
    errands_move(mesh);
    return atomic_load(&request->done);
}

int request_test(struct mesh *mesh, struct request *request)
{
    return test(mesh, request, 1, 0);
}

/* While it waits.  Asleep, or about to be, it may be woken by any peer, and by a bell that does not
 * ring again; and before it gives up it takes what the others have said. */
static int test_in_turn(struct mesh *mesh, struct request *request, const struct wait *wait,
                        enum wait_turn turn)
{
    const int is_last = wait->asleep || wait->polls || turn == WAIT_OVER;

    return test(mesh, request, is_last, is_last);
}

int messages_look(struct mesh *mesh)
{
    if (pthread_mutex_trylock(&mesh->transport->lock) != 0)
        return 0; /* who holds it looks, mostly */
    progress(mesh);
    if (atomic_load(&mesh->messages->questions))
        questions_look(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
    return 1;
}

void messages_glance(struct mesh *mesh)
{
    const uint64_t now = clock_coarse_ns();

    if (atomic_load_explicit(&mesh->messages->glanced, memory_order_relaxed) == now
        && atomic_load(&mesh->messages->waiting) == 0)
        return;
    if (messages_look(mesh))
        atomic_store_explicit(&mesh->messages->glanced, now, memory_order_relaxed);
}

/* Has it ended?  What it wrote before is read. */
static void look_for_end(struct mesh *mesh, int peer)
{
    const int local = mesh->node.base ? mesh->peers[peer].local : -1;

    if (local < 0) {
        connect_for_liveness(mesh, peer);
    } else if (node_peer_gone(&mesh->node, local)) {
        progress(mesh);
        peer_broken(mesh, peer, "its process ended");
        peer_gone(mesh, peer, "its process ended");
    }
}

/* A member that will send nothing more: in words, why.  0: it may. */
static int is_out(struct mesh *mesh, const struct channel *channel, int member, char *words,
                  size_t size)
{
    const struct wire *wire = &mesh->transport->wires[channel->ranks[member]];
    char name[160];

    if (channel->left && channel->left[member]) {
        snprintf(words, size, "%s has destroyed it",
                 mesh_peer_name(mesh, channel->ranks[member], name, sizeof name));
        return 1;
    }
    look_for_end(mesh, channel->ranks[member]);
    if (wire->gone)
        peer_gone_words(mesh, channel->ranks[member], wire->why, words, size);
    return wire->gone;
}

/* Of a receive from any rank.  While one other member may send, its end is what we want to see;
 * when none is left, only this rank could send to itself, and it waits. */
static void look_at_members(struct mesh *mesh, struct request *request)
{
    const struct channel *channel = channel_find(mesh->messages, request->channel);
    char words[200] = "", reason[240];

    for (int i = 0; channel && i < channel->size; i++)
        if (channel->ranks[i] != mesh->rank && !is_out(mesh, channel, i, words, sizeof words))
            return;
    if (!*words || request->peer != CT_ANY_SOURCE)
        return;
    snprintf(reason, sizeof reason, "no other rank of the group is left: %s", words);
    request_finish(mesh, request, CT_ERR_PEER, reason);
}

/* A send that waits for its connection alone: its message says by itself which call it is of. */
static int waits_for_connection(const struct mesh *mesh, const struct request *request)
{
    return request->is_send && request->peer != mesh->rank
           && !mesh->transport->wires[request->peer].out;
}

/* A sleep passed without a sign of life from the one we wait for.  1: it was asked. */
static int look_at_peer(struct mesh *mesh, struct request *request, int may_ask)
{
    int peer, asks;

    pthread_mutex_lock(&mesh->transport->lock);
    asks = may_ask && !atomic_load(&request->done) && !waits_for_connection(mesh, request);
    if (asks)
        ask(mesh, request);
    if (atomic_load(&mesh->messages->questions))
        questions_look(mesh);
    peer = request->peer; /* a receive from anybody learns it when it is matched */
    if (atomic_load(&mesh->waiter.sockets))
        end_lost_connections(mesh);
    if (!atomic_load(&request->done) && peer == CT_ANY_SOURCE)
        look_at_members(mesh, request);
    else if (!atomic_load(&request->done) && peer != mesh->rank)
        look_for_end(mesh, peer);
    pthread_mutex_unlock(&mesh->transport->lock);
    return asks;
}

int request_peer(struct mesh *mesh, const struct request *request)
{
    int peer;

    if (!request->from_anybody)
        return request->peer;
    pthread_mutex_lock(&mesh->transport->lock);
    peer = request->peer;
    pthread_mutex_unlock(&mesh->transport->lock);
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
                   arrow ? trace_arrow(mesh->trace, request->peer, request->met) : 0);
}

/* Its rank in the node; -1: it is elsewhere, or may be anybody. */
static int neighbour(struct mesh *mesh, const struct request *request)
{
    const int peer = request_peer(mesh, request);

    return peer >= 0 && peer != mesh->rank && mesh->node.base ? mesh->peers[peer].local : -1;
}

/* What a neighbour has written to us, ever. */
static uint64_t sent_so_far(const struct ring *ring)
{
    return ring ? atomic_load_explicit(&ring->written, memory_order_relaxed) : 0;
}

/* For as long as a hand-over between two processors takes only that is looked at, and no lock is
 * taken: longer where there are sockets, since nobody spins behind that then.  1: there is more.
 * A few bytes begin in the line before (link_shm.c): let both come at the same time. */
static int comes_soon(const struct mesh *mesh, const struct ring *ring, uint64_t sent)
{
    const int looks = atomic_load(&mesh->waiter.sockets) ? LOOKS_WITH_SOCKETS : LOOKS_BEFORE_WAIT;

    if (!ring || mesh->waiter.spins == 0)
        return 0;
    for (int i = 0; i < looks; i++) {
        if (sent_so_far(ring) != sent)
            return 1;
        __builtin_prefetch((const void *)&ring->noted);
    }
    return 0;
}

/* A device is asked again and again; the peer seldom, as after sleeps. */
static enum wait_turn turn_of_errands(int *naps)
{
    errands_nap((*naps)++);
    return *naps % NAPS_BEFORE_LOOK == 0 ? WAIT_LOOK : WAIT_AGAIN;
}

/* Until it is done, the deadline passed (WAIT_OVER), or *interrupted is set. */
static enum wait_turn wait_until_done(struct mesh *mesh, struct request *request, int64_t deadline,
                                      const _Atomic int *interrupted)
{
    struct messages *m = mesh->messages;
    enum wait_turn turn = WAIT_AGAIN;
    unsigned ends = 0, moves = atomic_load_explicit(&mesh->transport->moves, memory_order_relaxed),
             moved;
    int may_ask = request->signature.seq != 0; /* of a collective: there is a call to ask about */
    const int local = neighbour(mesh, request);
    const struct ring *ring = local >= 0 ? node_ring(&mesh->node, local, mesh->node.rank) : NULL;
    uint64_t sent = sent_so_far(ring);
    int naps = 0;
    int spun = 0; /* once, and again when bytes have moved */
    struct wait wait;

    atomic_fetch_add(&m->waiting, 1);
    wait_begin(&wait, &mesh->waiter, deadline);
    wait.soon = may_ask;
    if (atomic_load(&mesh->waiter.sockets))
        wait_for_processor(&wait); /* each test asks the kernel: others may run meanwhile */
    while (!test_in_turn(mesh, request, &wait, turn) && turn != WAIT_OVER
           && !(interrupted && atomic_load(interrupted))) {
        moved = atomic_load_explicit(&mesh->transport->moves, memory_order_relaxed);
        if (local >= 0 && moved != moves) {
            wait_anew(&wait);
            spun = 0;
            if (atomic_load(&mesh->waiter.sockets))
                wait_for_processor(&wait);
        }
        moves = moved;
        if (local >= 0)
            wait_for_rank(&wait, local);
        turn = clock_coarse_ms() >= deadline           ? WAIT_OVER /* bytes may flow */
               : errands_are_left(mesh)                ? turn_of_errands(&naps)
               : !spun && comes_soon(mesh, ring, sent) ? WAIT_AGAIN
                                                       : wait_turn(&wait);
        spun = 1;
        mesh_look_for_news(mesh);
        if (turn == WAIT_LOOK || ends != atomic_load(&mesh->waiter.ends)) {
            ends = atomic_load(&mesh->waiter.ends);
            may_ask &= !look_at_peer(mesh, request, turn == WAIT_LOOK && may_ask);
        }
        sent = sent_so_far(ring);
    }
    wait_end(&wait);
    return turn;
}

/* Who adds to the background looks who waits, who waits no more looks at the background. */
static void wait_is_over(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (atomic_fetch_sub(&m->waiting, 1) != 1 || atomic_load(&m->background) == 0)
        return;
    pthread_mutex_lock(&mesh->transport->lock);
    background_needed(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *interrupted)
{
    const uint64_t traced = begin_traced_wait(mesh, request);
    enum wait_turn turn = WAIT_AGAIN;
    ct_status status;

    if (!atomic_load(&request->done)) {
        turn = wait_until_done(mesh, request, deadline, interrupted);
        if (!atomic_load(&request->done)) {
            pthread_mutex_lock(&mesh->transport->lock);
            request_cancel_locked(mesh, request);
            pthread_mutex_unlock(&mesh->transport->lock);
            errand_end(mesh, request);
        }
        wait_is_over(mesh);
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
                    const _Atomic int *interrupted)
{
    wait_until_done(mesh, request, deadline, interrupted);
    wait_is_over(mesh);
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
