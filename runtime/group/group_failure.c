/* SPDX-License-Identifier: Apache-2.0 */
/* group_failure.c - a group fails once, for one cause, which each of its ranks reports.
 *
 * A failure has the number of the call from which on the group can't go on.  What learns of one
 * records it here:
 *
 *   a call of this rank that failed, ct_abort()       group_fail(), group_abort()
 *   a frame of another member                         group_fail_told()
 *   memory that the ranks of one host share           group_look_for_failure()
 *   a death notice (ctrun's control page)             group_member_died()
 *
 * A rank that has not begun the call of a failure keeps it pending, and finishes its earlier calls:
 * they need nothing more of the rank that failed.  So does a survivor that is late in a call which
 * a dead member had finished.  How far the dead member had come stands in its line of the control
 * page if it was on this host, else in the death notice.  Of several failures the one of the
 * earliest call counts.
 *
 * What failed first on this rank goes to the other members twice: into the shared memory of a group
 * on one host, and as frames (group_channel.h).  A pending death is not sent: each rank has a
 * notice of its own.  It is sent when a call fails because of it.
 *
 * A failure may come while a call starts.  The call notes its number, then reads `pending`; the
 * recorder stores `pending`, then reads the number.  At least one of them sees the other. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* How long a failed call sleeps between two looks for a death notice.  The sleep doubles each time:
 * on a busy host the waiting ranks would take the processor on which ctrun writes the notice. */
#define FIRST_GLANCE_MS 2
#define LAST_GLANCE_MS 50

#define ALL_CALLS UINT64_MAX

/* ---- Recording -------------------------------------------------------------- */

/* A death fails the call that runs now, if the dead member had not finished it.  What another rank
 * reports also fails a call of that number that this rank has finished. */
static uint64_t last_call(const ct_group *group, int is_death)
{
    return atomic_load(is_death ? &group->running : &group->begun);
}

/* Under the lock. */
static void set_failed(ct_group *group)
{
    struct failure_state *state = &group->failure;

    state->is_death = 0;
    atomic_store(&state->status, (int)failure_status(group->mesh, &state->what));
    atomic_store(&state->pending, 0);
    atomic_store(&state->interrupted, 1);
}

/* Under the lock.  1: the failure is kept as pending. */
static int set_pending(ct_group *group, const struct group_failure *failure, int is_death)
{
    struct failure_state *state = &group->failure;
    const uint64_t pending = atomic_load(&state->pending);

    if (pending == 0 || failure->from_call < pending
        || (failure->from_call == pending && state->is_death && !is_death)) {
        state->what = *failure;
        state->is_death = is_death;
        atomic_store(&state->pending, failure->from_call);
    }
    if (state->what.from_call <= last_call(group, state->is_death))
        return 0; /* its call began meanwhile */
    atomic_store(&state->interrupted, 1);
    return 1;
}

/* Under the lock.  1: the other members are to be told.  A mismatch that this rank found in a call
 * is what that call and all later ones return, even if the rank that found it first has ended and
 * its death was recorded before. */
static int record_locked(ct_group *group, const struct group_failure *failure, int is_death)
{
    struct failure_state *state = &group->failure;
    const int is_own = failure->rank == group->mesh->rank && !is_death;
    const int was_told = atomic_load(&state->pending) && !state->is_death;

    if (atomic_load(&state->status) != CT_OK && !(is_own && failure->status == CT_ERR_MISMATCH))
        return 0;
    if (is_own || failure->from_call <= last_call(group, is_death))
        state->what = *failure;
    else if (set_pending(group, failure, is_death))
        return !is_death && !was_told;
    set_failed(group);
    return 1;
}

/* The shared memory is written under the lock, since it has one sentence of this rank, which the
 * others read without a lock.  1: frames are to be sent. */
static int record(ct_group *group, const struct group_failure *failure, int is_death)
{
    int tell;

    pthread_mutex_lock(&group->failure.lock);
    tell = record_locked(group, failure, is_death);
    if (tell && group->shm)
        shm_group_set_failure(group->shm, &group->failure.what);
    pthread_mutex_unlock(&group->failure.lock);
    if (tell || is_death)
        bell_ring(group->mesh->waiter.bell, group->mesh->waiter.event_fd);
    return tell;
}

/* A pending failure becomes the group's if it is of a call up to that one: `told` for one that
 * another rank reported, `death` for the death of a member. */
static void fail_if_pending(ct_group *group, uint64_t told, uint64_t death)
{
    struct failure_state *state = &group->failure;
    const uint64_t running = atomic_load(&group->running);
    struct group_failure failure = { 0 };
    int is_due, was_death;

    pthread_mutex_lock(&state->lock);
    was_death = state->is_death;
    is_due = atomic_load(&state->pending) && state->what.from_call <= (was_death ? death : told);
    if (is_due && was_death && running && running < state->what.from_call)
        state->what.from_call = running; /* it failed too, so the others can't finish it either */
    if (is_due)
        set_failed(group);
    if (is_due && was_death && group->shm)
        shm_group_set_failure(group->shm, &state->what);
    failure = state->what;
    pthread_mutex_unlock(&state->lock);
    if (is_due && was_death)
        channel_fail(group->mesh, &group->channel, &failure);
}

/* ---- A call fails here --------------------------------------------------------- */

static ct_status fail_from(ct_group *group, ct_status status, uint64_t from_call)
{
    const struct group_failure failure = failure_here(group->mesh, status, from_call);

    if (record(group, &failure, 0))
        channel_fail(group->mesh, &group->channel, &failure);
    return status;
}

ct_status group_fail(ct_group *group, ct_status status)
{
    const uint64_t running = atomic_load(&group->running);

    return fail_from(group, status, running ? running : group->seq);
}

/* What this rank has finished the others can finish too. */
void group_abort(ct_group *group)
{
    const uint64_t running = atomic_load(&group->running);

    fail_from(group, CT_ERR_ABORTED, running ? running : atomic_load(&group->begun) + 1);
}

/* ---- Another rank reports a failure ------------------------------------------- */

void group_fail_told(void *group, const struct group_failure *failure)
{
    record(group, failure, 0);
}

void group_look_for_failure(ct_group *group)
{
    struct group_failure failure;

    if (group->shm && atomic_load(&group->failure.status) == CT_OK
        && shm_group_failure(group->shm, &failure) && record(group, &failure, 0))
        channel_fail(group->mesh, &group->channel, &failure);
}

/* ---- A member died ------------------------------------------------------------- */

static const struct control_group *line_of(const struct control_rank *page, uint64_t id)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (atomic_load(&page->groups[i].id) == id)
            return &page->groups[i];
    return NULL;
}

/* 1: the dead member had the group; *done is its last finished call.  0: it had destroyed the group
 * or never made it. */
static int progress_of(const ct_group *g, const struct control_death *death, uint64_t *done)
{
    const struct control *control = &g->mesh->control;
    const int local = death->rank - control->base;
    const struct control_group *line;

    *done = 0;
    if (!g->record.line)
        return 1; /* not recorded: nothing is known to be finished */
    if (local >= 0 && local < control->local) {
        line = line_of(control_rank_at(control->head, local), atomic_load(&g->record.line->id));
        *done = line ? atomic_load_explicit(&line->done, memory_order_acquire) : 0;
        return line != NULL;
    }
    for (int i = 0; i < death->tombs && i < CONTROL_TOMBS; i++)
        if (death->tomb[i].group == atomic_load(&g->record.line->id)) {
            *done = death->tomb[i].done;
            return 1;
        }
    return death->how == CONTROL_HOST_LOST || death->tombs == CONTROL_TOMBS;
}

/* A rank that ends because a call failed is not the cause: it reported that before it ended, so
 * what was reported is recorded first. */
static void member_died(ct_group *g, int member)
{
    const struct control_death *death = mesh_death(g->mesh, g->ranks[member]);
    struct group_failure failure = { .status = CT_ERR_PEER, .rank = g->mesh->rank };
    uint64_t done;

    if (!g->member || !death || !progress_of(g, death, &done))
        return;
    failure.from_call = done + 1;
    mesh_death_words(g->mesh, g->ranks[member], failure.words, sizeof failure.words);
    group_look_for_failure(g);
    if (record(g, &failure, 1))
        channel_fail(g->mesh, &g->channel, &failure);
}

void group_member_died(void *arg, int peer)
{
    ct_group *root = arg;

    pthread_mutex_lock(root->children);
    for (ct_group *g = root; g; g = g->next)
        for (int i = 0; i < g->size; i++)
            if (g->ranks[i] == peer)
                member_died(g, i);
    pthread_mutex_unlock(root->children);
}

void group_look_for_deaths(ct_group *g)
{
    for (int i = 0; i < g->size; i++)
        if (mesh_death(g->mesh, g->ranks[i]))
            member_died(g, i);
}

/* ---- What a call returns -------------------------------------------------------- */

static ct_status quote(ct_group *group)
{
    struct group_failure failure;

    pthread_mutex_lock(&group->failure.lock);
    failure = group->failure.what;
    pthread_mutex_unlock(&group->failure.lock);
    return failure_quote(group->mesh, &failure);
}

void group_poll(ct_group *group)
{
    mesh_look_for_deaths(group->mesh);
    messages_look(group->mesh);
    group_look_for_failure(group);
}

ct_status group_check(ct_group *group)
{
    group_look_for_failure(group);
    if (atomic_load(&group->failure.status) == CT_OK)
        return CT_OK;
    messages_look(group->mesh); /* other ranks may probe this one's call */
    return ct_fail_in(quote(group), "group %s is broken since: ", group->name);
}

ct_status group_begin(ct_group *g, uint64_t seq)
{
    ct_status status;

    mesh_look_for_deaths(g->mesh);
    if (seq) {
        atomic_store(&g->running, seq);
        atomic_store(&g->begun, seq);
    }
    if (atomic_load(&g->failure.pending)) {
        group_look_for_failure(g);
        fail_if_pending(g, seq ? seq : ALL_CALLS, seq);
    }
    status = group_check(g);
    if (status != CT_OK && seq)
        group_end(g);
    return status;
}

int group_fails_next_call(ct_group *g)
{
    uint64_t pending;

    mesh_look_for_deaths(g->mesh);
    group_look_for_failure(g);
    pending = atomic_load_explicit(&g->failure.pending, memory_order_relaxed);
    return atomic_load_explicit(&g->failure.status, memory_order_relaxed) != CT_OK
           || (pending && pending <= g->seq + 1);
}

/* ctrun may still tell of members whose connection or process has ended.  A member that destroyed
 * the group lives, and is not waited for. */
static void wait_for_death_notice(ct_group *g)
{
    const int64_t deadline = death_notice_due(g->mesh, g->ranks, g->size);
    int glance_ms = FIRST_GLANCE_MS;

    for (;;) {
        const uint32_t heard = atomic_load(&g->mesh->control.head->notices);

        group_poll(g);
        if (atomic_load(&g->failure.interrupted) || clock_ms() >= deadline)
            return;
        control_sleep(&g->mesh->control, heard, glance_ms);
        glance_ms = 2 * glance_ms < LAST_GLANCE_MS ? 2 * glance_ms : LAST_GLANCE_MS;
    }
}

/* A rank that destroys its group in the middle of a call mostly does so because another rank died.
 * Without ctrun this rank is not told which one.  So it adds to the current sentence each member on
 * its own host whose process has ended and that sent no goodbye. */
static void name_the_ended(ct_group *g, ct_status status)
{
    struct mesh *mesh = g->mesh;
    char sentence[1024], name[160];

    for (int i = 0; i < g->size; i++) {
        const int peer = g->ranks[i], local = mesh->node.base ? mesh->peers[peer].local : -1;

        if (peer == mesh->rank || local < 0 || mesh->transport->wires[peer].left
            || !node_peer_gone(&mesh->node, local))
            continue;
        mesh_peer_name(mesh, peer, name, sizeof name);
        snprintf(sentence, sizeof sentence, "%s", ct_last_error());
        if (!strstr(sentence, name))
            ct_fail(status, "%s; %s has ended without destroying the group", sentence, name);
    }
}

/* This rank explains best a mismatch that it found itself, and its own timeout. */
ct_status group_cause(ct_group *g, ct_status status)
{
    const uint64_t running = atomic_load(&g->running);

    if (status == CT_OK || status == CT_ERR_MISMATCH || status == CT_ERR_TIMEOUT)
        return status;
    if (status == CT_ERR_PEER && g->mesh->control.worker >= 0)
        wait_for_death_notice(g);
    group_look_for_failure(g);
    fail_if_pending(g, running ? running : ALL_CALLS, ALL_CALLS);
    if (atomic_load(&g->failure.status) != CT_OK)
        return quote(g);
    if (status == CT_ERR_PEER && g->mesh->control.worker < 0 && running)
        name_the_ended(g, status);
    return status;
}
