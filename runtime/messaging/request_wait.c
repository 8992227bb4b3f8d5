/* SPDX-License-Identifier: Apache-2.0 */
/* request_wait.c - waits for a request, or polls whether it is done.
 *
 * A waiting thread moves messages itself.  After each turn of its wait (waiter.c), it looks at its
 * peer's link (progress.c), until the request is done, the deadline has passed or the group has
 * failed.  A look only tries the lock, since a thread that has the lock moves all messages.  But
 * that thread may miss bytes that come just after its look.  So the look after a sleep and the last
 * look before a sleep wait for the lock.  Otherwise such bytes would lie there until the bell rings
 * again.
 *
 * Between turns the thread looks for death notices (death_notice.h).  After a sleep without any
 * bytes, the thread checks whether the peer's process still exists.  For a peer on another host,
 * the connection shows that.  The thread also probes once whether the peer makes the same call
 * (call_probe.h).  When no thread waits any more, the progress thread moves the background requests
 * (progress_thread.c). */
#include <stdio.h>

#include "runtime/messaging/call_probe.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/trace/trace.h"
#include "runtime/util/clock.h"

enum { NAPS_BEFORE_LOOK = 1000, LOOKS_WITH_SOCKETS = 600, SPINS_WITH_SOCKETS = 16 };

/* Takes the lock.  Returns 0 if `waits` is 0 and another thread has the lock. */
static int request_take_lock(struct mesh *mesh, int waits)
{
    pthread_mutex_t *const lock = &mesh->transport->lock;

    return (waits ? pthread_mutex_lock(lock) : pthread_mutex_trylock(lock)) == 0;
}

/* Moves messages, then returns 1 if the request is done.  Looks at all links if at_all is 1,
 * otherwise only at the link to the request's peer. */
static int request_test(struct mesh *mesh, struct request *request, int at_all, int waits)
{
    if (!atomic_load(&request->done) && request_take_lock(mesh, waits)) {
        progress_for(mesh, at_all ? CT_ANY_SOURCE : request->peer, request->bytes);
        take_goodbyes(mesh);
        pthread_mutex_unlock(&mesh->transport->lock);
    }
    device_copies_move(mesh);
    return atomic_load(&request->done);
}

/* Tests the request in a wait.  Any peer may have rung the bell of a thread that has slept or is
 * about to sleep, and the bell does not ring again.  So such a thread looks at all links, and so
 * does a thread before its timeout. */
static int test_in_turn(struct mesh *mesh, struct request *request, const struct wait *wait,
                        enum wait_turn turn)
{
    const int is_last = wait->asleep || wait->polls || turn == WAIT_OVER;

    return request_test(mesh, request, is_last, is_last);
}

int messages_look(struct mesh *mesh)
{
    if (pthread_mutex_trylock(&mesh->transport->lock) != 0)
        return 0; /* the thread that has the lock is mostly in progress() itself */
    progress(mesh);
    take_goodbyes(mesh);
    if (atomic_load(&mesh->messages->probes))
        probes_look(mesh);
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

/* Checks whether the peer's process has ended.  Bytes that the peer wrote before its end are read
 * first. */
static void look_for_end(struct mesh *mesh, int peer)
{
    const int local = mesh->node.base ? mesh->peers[peer].local : -1;

    if (local < 0) {
        connect_for_liveness(mesh, peer);
    } else if (node_peer_gone(&mesh->node, local)) {
        progress(mesh);
        peer_unreachable(mesh, peer, "its process ended");
        peer_gone(mesh, peer, "its process ended");
    }
}

/* Returns 1 if the member will send nothing more, and writes the reason to words. */
static int is_out(struct mesh *mesh, const struct channel *channel, int member, char *words,
                  size_t size)
{
    const struct endpoint *endpoint = endpoint_of(mesh, channel->ranks[member]);
    char name[160];

    if (channel->left && channel->left[member]) {
        snprintf(words, size, "%s has destroyed it",
                 mesh_peer_name(mesh, channel->ranks[member], name, sizeof name));
        return 1;
    }
    look_for_end(mesh, channel->ranks[member]);
    if (endpoint->state == ENDPOINT_GONE)
        peer_gone_words(mesh, channel->ranks[member], endpoint->why, words, size);
    return endpoint->state == ENDPOINT_GONE;
}

/* Fails a receive from any rank if no other member is left that could send.  This rank can't send
 * to itself, because it waits. */
static void look_at_members(struct mesh *mesh, struct request *request)
{
    const struct channel *channel = channel_find(mesh->messages, request->channel);
    char words[200] = "", reason[240];
    int last = -1;

    for (int i = 0; channel && i < channel->size; i++) {
        if (channel->ranks[i] == mesh->rank)
            continue;
        if (!is_out(mesh, channel, i, words, sizeof words))
            return;
        last = i;
    }
    if (!*words || request->peer != CT_ANY_SOURCE)
        return;
    request->blame =
        (struct blame){ channel->ranks[last],
                        channel->left && channel->left[last] ? BLAME_LEFT : BLAME_DIED };
    snprintf(reason, sizeof reason, "no other rank of the group is left: %s", words);
    request_finish(mesh, request, CT_ERR_PEER, reason);
}

/* Returns 1 for a send that only waits for its connection.  Such a send needs no probe, since its
 * message has the signature. */
static int waits_for_connection(const struct mesh *mesh, const struct request *request)
{
    return request->is_send && request->peer != mesh->rank
           && !endpoint_of(mesh, request->peer)->out;
}

/* Checks the request's peer after a sleep in which nothing came.  Returns 1 if a probe was sent. */
static int request_look_at_peer(struct mesh *mesh, struct request *request, int may_ask)
{
    int peer, asks;

    pthread_mutex_lock(&mesh->transport->lock);
    asks = may_ask && !atomic_load(&request->done) && !waits_for_connection(mesh, request);
    if (asks)
        probe_send(mesh, request);
    if (atomic_load(&mesh->messages->probes))
        probes_look(mesh);
    peer = request->peer; /* CT_ANY_SOURCE until the receive is matched */
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

/* Starts a wait in the trace.  A receive is drawn as a wait even if its message is there, because
 * the arrow of the message ends in the wait. */
static uint64_t begin_traced_wait(struct mesh *mesh, struct request *request)
{
    if (!mesh->trace || (request->is_send && atomic_load(&request->done)))
        return 0;
    return trace_wait(mesh->trace, request_peer(mesh, request), request->bytes);
}

static void end_traced_wait(struct mesh *mesh, const struct request *request, uint64_t traced)
{
    const int arrow = traced && !request->is_send && !request->is_probe;

    trace_received(mesh->trace, traced, request->status, request->peer,
                   arrow ? trace_arrow(mesh->trace, request->peer, request->met) : 0);
}

/* Returns the peer's rank on this host.  Returns -1 if the peer is on another host, is this rank,
 * or may be any rank. */
static int neighbour(struct mesh *mesh, const struct request *request)
{
    const int peer = request_peer(mesh, request);

    return peer >= 0 && peer != mesh->rank && mesh->node.base ? mesh->peers[peer].local : -1;
}

/* Returns the ring's write counter, or 0 without a ring. */
static uint64_t sent_so_far(const struct ring *ring)
{
    return ring ? atomic_load_explicit(&ring->written, memory_order_relaxed) : 0;
}

/* Polls the ring's write counter without the lock, and returns 1 if bytes have come.  Polls for
 * about as long as a cache line takes from one processor to another.  With sockets it polls longer,
 * because the wait does not spin afterwards.  Nothing else is read or prefetched here.  The first
 * bytes are in the cache line before the counter (link_shm.c), and the writer would have to fetch
 * that line again while it writes. */
static int spin_for_bytes(const struct mesh *mesh, const struct ring *ring, uint64_t sent)
{
    const int looks = atomic_load(&mesh->waiter.sockets) ? LOOKS_WITH_SOCKETS : LOOKS_BEFORE_WAIT;

    if (!ring || mesh->waiter.spins == 0)
        return 0;
    for (int i = 0; i < looks; i++) {
        if (sent_so_far(ring) != sent)
            return 1;
    }
    return 0;
}

/* Pauses between two polls of the device.  Returns WAIT_LOOK only after each NAPS_BEFORE_LOOK
 * pauses, so the peer is checked as rarely as after sleeps.  Otherwise returns WAIT_AGAIN. */
static enum wait_turn turn_of_copies(int *naps)
{
    device_copies_nap((*naps)++);
    return *naps % NAPS_BEFORE_LOOK == 0 ? WAIT_LOOK : WAIT_AGAIN;
}

/* Limits how long a wait spins if there are sockets, since some of its tests are system calls then.
 * A wait for a rank of another host does not spin at all. */
static void limit_spins(struct wait *wait, int local)
{
    wait_for_processor(wait);
    if (local < 0 || wait->turns == 0)
        return;
    wait->turns -= SPINS_WITH_SOCKETS;
    wait_look_at_rank(wait, local);
}

/* Waits until the request is done, the deadline has passed or *interrupted is set.  Returns
 * WAIT_OVER if the deadline has passed. */
static enum wait_turn wait_until_done(struct mesh *mesh, struct request *request, int64_t deadline,
                                      const _Atomic int *interrupted)
{
    struct messages *m = mesh->messages;
    enum wait_turn turn = WAIT_AGAIN;
    unsigned ends = 0, moves = atomic_load_explicit(&mesh->transport->moves, memory_order_relaxed),
             moved;
    int may_ask = request->signature.seq != 0; /* only a collective has a call to compare */
    const int local = neighbour(mesh, request);
    const struct ring *ring = local >= 0 ? node_ring(&mesh->node, local, mesh->node.rank) : NULL;
    uint64_t sent = sent_so_far(ring);
    int naps = 0;
    int spun = 0; /* spins once, and again after bytes have moved */
    struct wait wait;

    atomic_fetch_add(&m->waiting, 1);
    atomic_store_explicit(&m->waits, atomic_load_explicit(&m->waits, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    wait_begin(&wait, &mesh->waiter, deadline);
    wait.soon = may_ask;
    if (atomic_load(&mesh->waiter.sockets))
        limit_spins(&wait, local);
    while (!test_in_turn(mesh, request, &wait, turn) && turn != WAIT_OVER
           && !(interrupted && atomic_load(interrupted))) {
        moved = atomic_load_explicit(&mesh->transport->moves, memory_order_relaxed);
        if (local >= 0 && moved != moves) {
            wait_anew(&wait);
            spun = 0;
            if (atomic_load(&mesh->waiter.sockets))
                limit_spins(&wait, local);
        }
        moves = moved;
        if (local >= 0)
            wait_for_rank(&wait, local);
        /* The deadline is checked here because wait_turn() is not called while bytes flow. */
        turn = clock_coarse_ms() >= deadline               ? WAIT_OVER
               : device_copies_pending(mesh)               ? turn_of_copies(&naps)
               : !spun && spin_for_bytes(mesh, ring, sent) ? WAIT_AGAIN
                                                           : wait_turn(&wait);
        spun = 1;
        mesh_look_for_deaths(mesh);
        if ((wait.asleep || wait.polls) && mesh->on_wake)
            mesh->on_wake(mesh->on_death_arg);
        if (turn == WAIT_LOOK || ends != atomic_load(&mesh->waiter.ends)) {
            ends = atomic_load(&mesh->waiter.ends);
            may_ask &= !request_look_at_peer(mesh, request, turn == WAIT_LOOK && may_ask);
        }
        sent = sent_so_far(ring);
    }
    wait_end(&wait);
    return turn;
}

/* Ends a wait.  requests_in_background() is the counterpart: either that function sees this
 * thread's count in `waiting`, or this thread sees the requests in `background` and wakes the
 * progress thread. */
static void wait_is_over(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (atomic_fetch_sub(&m->waiting, 1) != 1 || atomic_load(&m->background) == 0)
        return;
    pthread_mutex_lock(&mesh->transport->lock);
    progress_thread_wake(mesh);
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
            request_give_up(mesh, request, CT_ERR_ABORTED, "cancelled");
            pthread_mutex_unlock(&mesh->transport->lock);
            device_copy_finish(mesh, request);
        }
        wait_is_over(mesh);
    }
    end_traced_wait(mesh, request, traced);
    status = request->status;
    if (status == CT_ERR_ABORTED && turn == WAIT_OVER)
        return ct_fail_because((struct blame){ request->peer, BLAME_LATE }, CT_ERR_TIMEOUT,
                               "the deadline passed");
    if (status == CT_ERR_ABORTED)
        return ct_fail_because((struct blame){ request->peer, BLAME_LATE }, CT_ERR_ABORTED,
                               "the group was aborted");
    return status == CT_OK ? CT_OK : ct_fail_because(request->blame, status, "%s", request->reason);
}

int request_done_by(struct mesh *mesh, struct request *request, int64_t deadline,
                    const _Atomic int *interrupted)
{
    wait_until_done(mesh, request, deadline, interrupted);
    wait_is_over(mesh);
    return atomic_load(&request->done);
}

/* Also looks for death notices, for programs that poll and never wait. */
int request_poll(struct mesh *mesh, struct request *request)
{
    const uint64_t now = clock_coarse_ns();
    uint64_t looked = request->looked_ns;

    if (request->is_probe) /* each call of ct_iprobe() has a new request */
        looked = atomic_exchange(&mesh->messages->probe_looked, now);
    mesh_look_for_deaths(mesh);
    if (!request_test(mesh, request, 1, 0) && now != looked) {
        request->looked_ns = now;
        request_look_at_peer(mesh, request, 0);
    }
    return atomic_load(&request->done);
}
