/* SPDX-License-Identifier: Apache-2.0 */
/* shm_wait.c - how a rank waits for other ranks in a round.
 *
 * A wait spins, then yields, then sleeps (waiter.c).  Between two turns it tests whether the
 * word has reached the round, the group has failed, or the deadline has passed.  It checks a
 * missing member after each sleep that no ring ended, and whenever a process has ended or a
 * member has left.  The first turn compares the count of these ends with 0, each later turn with
 * the last count.
 *
 * A rank that arrives need not check the doorbells of all other ranks.  Before a rank sleeps until
 * another rank arrives, it announces that to the other rank, which then rings it on arrival. */
#include "runtime/group/shm/shm_wait.h"

#include <sched.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messages.h"
#include "runtime/trace/trace.h"

#define SEVERAL (-1) /* a value of awaited_by; else 1 + the sleeping member, or 0 */

struct shm_wait {
    const _Atomic uint64_t *word;
    uint64_t round;
    int rank;
    struct wait wait;
    enum wait_turn turn; /* result of the last turn */
    unsigned ends;       /* ended processes plus departed members at the last check */
};

static int shm_wait_is_over(const struct shm_wait *w)
{
    return atomic_load_explicit(w->word, memory_order_acquire) >= w->round;
}

/* ---- Sleeping --------------------------------------------------------------------- */

/* Announces to `rank` that this rank will sleep until `rank` arrives.  Returns 1 if the
 * announcement is new; the caller must then test once more whether `rank` has arrived. */
static int shm_wait_announce(const struct shm_group *f, int rank)
{
    _Atomic int *const awaited_by = &f->members[rank].awaited_by;
    const int mine = f->rank + 1;
    int now = atomic_load(awaited_by);

    while (now != mine && now != SEVERAL)
        if (atomic_compare_exchange_weak(awaited_by, &now, now == 0 ? mine : SEVERAL)) {
            bell_fence(); /* before the caller's test; shm_wake_waiting() looks after a fence too */
            return 1;
        }
    return 0;
}

void shm_wake_waiting(const struct shm_group *f)
{
    const int by = atomic_exchange(&f->members[f->rank].awaited_by, 0);

    if (by == SEVERAL)
        shm_ring_members(f);
    else if (by > 0)
        shm_ring(f, by - 1);
}

/* True if a rank that has not arrived in the round was last seen on the processor
 * of this thread. */
static int shm_wait_keeps_processor(const struct shm_group *f, uint64_t round)
{
    const int here = sched_getcpu();

    for (int i = 0; i < f->size; i++)
        if (i != f->rank && bell_is_on(&f->mesh->node.bells[f->peers[i].local], here)
            && !shm_has_arrived(f, i, round))
            return 1;
    return 0;
}

/* Begins the wait.  If the host has more ranks than processors, a wait for all ranks sleeps at
 * once, without yielding: with 40 yields first, a barrier of 256 ranks took 9.9 ms instead of 5. */
static void shm_wait_begin(const struct shm_group *f, struct shm_wait *w)
{
    struct waiter *waiter = &f->mesh->waiter;

    wait_begin(&w->wait, waiter, f->deadline);
    if (f->has_network)
        wait_for_processor(&w->wait);
    if (w->rank == NO_RANK && waiter->spins == 0)
        wait_sleeps_at_once(&w->wait);
}

static void shm_wait_turn(const struct shm_group *f, struct shm_wait *w)
{
    struct wait *const wait = &w->wait;

    if (w->rank != NO_RANK) {
        wait_for_rank(wait, f->peers[w->rank].local);
        /* A rank that is ahead lets the others catch up by several rounds. */
        wait->other_runs &= w->round >= f->round;
        if (wait_is_about_to_yield(wait))
            wait->alone = !shm_wait_keeps_processor(f, w->round);
    }
    w->turn = wait_turn(wait);
    mesh_look_for_deaths(f->mesh);
    if (wait->asleep || wait->polls)
        messages_look(f->mesh); /* a probe or a failure may have come */
}

/* ---- Checking the missing member ----------------------------------------------- */

/* Returns the member that the wait is still waiting for; NO_RANK if the last one has just arrived.
 * A gate opens when all other ranks have arrived, so of these one that is missing comes first. */
static int shm_wait_missing(const struct shm_group *f, const struct shm_wait *w)
{
    for (int i = 0; (w->rank == NO_RANK || w->rank == f->gate) && i < f->size; i++)
        if (i != f->rank && i != w->rank && !shm_has_arrived(f, i, w->round))
            return i;
    return w->rank;
}

static ct_status shm_wait_look(const struct shm_group *f, const struct shm_wait *w)
{
    const int missing = shm_wait_missing(f, w);
    ct_status status = missing == NO_RANK ? CT_OK : shm_look_at(f, missing);

    if (status == CT_OK && w->rank != NO_RANK && w->rank != missing)
        status = shm_look_at(f, w->rank); /* a gate */
    /* The member may have arrived, and then ended, since shm_wait_missing() found it missing. */
    return shm_wait_is_over(w) || shm_wait_missing(f, w) != missing ? CT_OK : status;
}

/* True if a process has ended or a member has left since the last check. */
static int shm_wait_sees_end(const struct shm_group *f, struct shm_wait *w)
{
    const unsigned left = atomic_load_explicit(&f->head->left, memory_order_acquire);
    const unsigned before = w->ends;

    w->ends = atomic_load(&f->mesh->waiter.ends) + left;
    return w->ends != before;
}

static ct_status shm_wait_fail(const struct shm_group *f, const struct shm_wait *w,
                               ct_status status)
{
    const int missing = shm_wait_missing(f, w);

    return missing == NO_RANK
               ? ct_fail(status, "a rank did not join")
               : ct_fail_because((struct blame){ f->peers[missing].rank, BLAME_LATE }, status, "%s",
                                 status == CT_ERR_ABORTED ? "the group is broken" : "");
}

ct_status shm_wait_longer(struct shm_group *f, const _Atomic uint64_t *word, uint64_t round,
                          int rank)
{
    const uint64_t traced =
        trace_wait(f->mesh->trace, f->peers[rank == NO_RANK ? 0 : rank].rank, 0);
    struct shm_wait w = { .word = word, .round = round, .rank = rank, .turn = WAIT_AGAIN };
    ct_status status = CT_OK;

    shm_wait_begin(f, &w);
    while (status == CT_OK && !shm_wait_is_over(&w)) {
        if ((w.wait.asleep || w.wait.polls) && rank != NO_RANK && shm_wait_announce(f, rank))
            continue;
        if (shm_has_failed(f))
            status = shm_wait_fail(f, &w, CT_ERR_ABORTED);
        else if (w.turn == WAIT_OVER)
            status = shm_wait_fail(f, &w, CT_ERR_TIMEOUT);
        else if (shm_wait_sees_end(f, &w) || w.turn == WAIT_LOOK)
            status = shm_wait_look(f, &w);
        if (status == CT_OK)
            shm_wait_turn(f, &w);
    }
    wait_end(&w.wait);
    trace_end(f->mesh->trace, traced, status);
    return status;
}
