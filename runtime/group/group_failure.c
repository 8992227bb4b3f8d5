/* SPDX-License-Identifier: Apache-2.0 */
/* group_failure.c - records the failure of a group.  A group fails once, and each rank reports the
 * same cause.
 *
 * A failure has the number of the first call that the group can't finish.  These functions record
 * failures:
 *
 *   group_fail()                  a call of this rank has failed
 *   group_abort()                 the program called ct_abort()
 *   group_fail_told()             another member sent a frame
 *   group_look_for_failure()      another member of this host wrote into shared memory
 *   group_member_died()           ctrun wrote a death notice into the control page
 *
 * A rank that has not begun the failure's call keeps the failure pending, and first finishes the
 * calls before it.  These need nothing more from the rank that failed.  A rank likewise finishes a
 * call that a dead member had finished.  The number of the dead member's last finished call is in
 * the member's line of the control page if the member was on this host, else in the death notice.
 * If there are several failures, the failure with the earliest call counts.
 *
 * A message does not belong to a call.  A message fails if another rank has reported a failure,
 * even a failure of a later call.  If only a death is pending, a message fails only if it has to
 * wait.
 *
 * This rank passes its first failure on to the other members in two ways.  It writes the failure
 * into the shared memory of the group's ranks on this host, and sends frames (group_channel.h).  A
 * pending death is not passed on, since each rank gets its own notice.  A death is passed on when a
 * call fails because of it.
 *
 * A failure may come while a call starts.  The call stores its number and then reads `pending`.
 * The thread that records a failure stores `pending` and then reads the number.  So at least one of
 * the two threads sees what the other has stored. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* The first and the longest sleep, in ms, between two checks of a failed call for a death notice.
 * The sleep doubles each time.  If the waiting ranks of a busy host slept less, they would use the
 * processor time that ctrun needs to write the notice. */
#define FIRST_GLANCE_MS 2
#define LAST_GLANCE_MS 50

#define ALL_CALLS UINT64_MAX /* a limit that includes the failures of all calls */

/* ---- The blamed rank ------------------------------------------------------------ */

/* Writes the blamed rank into the control page, for ctrun, before the call returns its error
 * message.  is_broken: 1 if the group has failed, 0 if only a message has failed. */
static void failure_note_blame(ct_group *g, struct blame on, int is_broken)
{
    struct control_group *line = g->record.line;
    struct control_blame blame = { .on = on };

    if (on.reason == BLAME_NONE || on.rank < 0 || on.rank >= g->mesh->size
        || g->mesh->peers[on.rank].worker < 0)
        return;
    blame.on.rank = g->mesh->peers[on.rank].worker;
    if (line) { /* the thread of the group's calls may write the line, too */
        const uint32_t version = control_write(&line->version);

        blame.call = line->now;
        control_written(&line->version, version);
    }
    if (is_broken)
        blame.group = line ? atomic_load(&line->id) : UINT64_MAX;
    control_blame(&g->mesh->control, &blame);
}

/* Returns the rank to blame for a reported failure that ended a wait of this rank.  `awaited` is
 * the rank for which this rank waited, or a rank that this rank has just seen to end.  The rank
 * that reported the failure may blame this rank, or a third rank that waits as well.  A rank that
 * this host knows to be late or stopped is nearer to the cause, and is then blamed instead. */
static struct blame blame_of(const ct_group *g, const struct group_failure *failure,
                             struct blame awaited)
{
    const struct blame told = failure_blame(g->mesh, failure);
    const uint64_t seq = atomic_load(&g->running);
    struct blame own;
    char words[200];

    if (failure->rank == g->mesh->rank)
        return told;
    if (awaited.reason != BLAME_LATE)
        return told.reason == BLAME_NONE ? awaited : told;
    if (told.reason != BLAME_NONE && told.reason != BLAME_LATE)
        return told;
    own = late_rank(g, seq, awaited, words, sizeof words);
    return told.reason == BLAME_NONE || is_known_late(g, seq, own) ? own : told;
}

void group_note_blame(ct_group *g)
{
    failure_note_blame(g, ct_last_blame(), 0);
}

/* ---- Recording -------------------------------------------------------------- */

/* Returns the number of the last call to which a failure applies at once.  A failure of a later
 * call stays pending.  A death applies to the call that runs now, if the dead member had not
 * finished the call.  A failure that another rank reports also applies to a call that this rank has
 * finished. */
static uint64_t failure_last_call(const ct_group *group, int is_death)
{
    return atomic_load(is_death ? &group->running : &group->begun);
}

/* Marks the group as failed.  The caller holds the lock. */
static void failure_set_failed(ct_group *group, const struct group_failure *failure)
{
    struct failure_state *state = &group->failure;

    state->what = *failure;
    atomic_store(&state->status, (int)failure_status(group->mesh, failure));
    atomic_store(&state->pending, 0);
    atomic_store(&state->reported, 1);
    atomic_store(&state->interrupted, 1);
}

/* Replaces *kept, a pending failure of the same kind, by `failure` if `failure` has the earlier
 * call.  The caller holds the lock. */
static void keep_pending(struct failure_state *state, struct group_failure *kept,
                         const struct group_failure *failure)
{
    const uint64_t pending = atomic_load(&state->pending);

    if (kept->from_call == 0 || failure->from_call < kept->from_call)
        *kept = *failure;
    if (pending == 0 || kept->from_call < pending)
        atomic_store(&state->pending, kept->from_call);
    if (kept == &state->told)
        atomic_store(&state->reported, 1);
    atomic_store(&state->interrupted, 1);
}

/* Records a failure.  Returns the failure to pass on to the other members, or NULL.  The caller
 * holds the lock.
 *
 * A mismatch that this rank itself found replaces a failure that was recorded before.  So the call
 * and all later calls return the mismatch, even if another rank found the same mismatch first,
 * ended, and its death was recorded here.  A timeout of this rank likewise replaces a failure that
 * another rank reported and that no call here has returned.  It does not replace a death, which
 * explains the timeout, or an abort by another thread. */
static const struct group_failure *record_locked(ct_group *group,
                                                 const struct group_failure *failure, int is_death)
{
    struct failure_state *state = &group->failure;
    struct group_failure *kept = is_death ? &state->death : &state->told;
    const int own = failure->rank == group->mesh->rank && !is_death ? failure->status : CT_OK;
    const int is_news = !is_death && kept->from_call == 0;

    if (atomic_load(&state->status) != CT_OK && own != CT_ERR_MISMATCH
        && (own != CT_ERR_TIMEOUT || state->what.rank == group->mesh->rank
            || atomic_load(&state->returned)))
        return NULL;
    if (own == CT_OK && failure->from_call > failure_last_call(group, is_death)) {
        keep_pending(state, kept, failure);
        if (kept->from_call > failure_last_call(group, is_death))
            return is_news ? kept : NULL;
        failure = kept; /* the call has begun in the meantime */
    }
    failure_set_failed(group, failure);
    return &state->what;
}

/* Records a failure, and writes it into the shared memory.  Returns 1 if the caller must also send
 * frames.  The lock is held while the shared memory is written.  That memory has room for one
 * failure of this rank, which other ranks read without a lock. */
static int record(ct_group *group, const struct group_failure *failure, int is_death)
{
    const struct group_failure *tell;

    pthread_mutex_lock(&group->failure.lock);
    tell = record_locked(group, failure, is_death);
    if (tell && group->host_shm)
        shm_group_set_failure(group->host_shm, tell);
    pthread_mutex_unlock(&group->failure.lock);
    if (tell || is_death)
        bell_ring(group->mesh->waiter.bell, group->mesh->waiter.wake_fd);
    return tell != NULL;
}

/* Returns the pending failure that another rank reported, if its call is not later than `told`, or
 * the pending death, if its call is not later than `death`.  Returns NULL if neither is due.  If
 * both are due, returns the failure of the earlier call.  For the same call, returns the reported
 * failure, since the death followed from it.  The caller holds the lock. */
static const struct group_failure *pending_until(const struct failure_state *state, uint64_t told,
                                                 uint64_t death)
{
    const struct group_failure *t = &state->told, *d = &state->death;

    t = t->from_call && t->from_call <= told ? t : NULL;
    d = d->from_call && d->from_call <= death ? d : NULL;
    return t && d ? (d->from_call < t->from_call ? d : t) : t ? t : d;
}

/* Makes the group fail with a pending failure that is due (see pending_until()).  Sets
 * ct_last_error() and returns the failure's status, or CT_OK if no failure is due.  `seq` is the
 * number of the call that fails, or 0 for a message.  While a call runs that can still be finished,
 * a message fails alone, and the group does not. */
static ct_status fail_if_pending(ct_group *group, uint64_t seq, uint64_t told, uint64_t death,
                                 struct blame awaited)
{
    struct blame blame;
    struct failure_state *state = &group->failure;
    const struct group_failure *due = NULL;
    struct group_failure failure;
    const int is_begin = death == seq && seq != 0;
    int alone = 0, is_death = 0;

    pthread_mutex_lock(&state->lock);
    if (atomic_load(&state->pending))
        due = pending_until(state, told, death);
    if (due) {
        const uint64_t running = atomic_load(&group->running);

        failure = *due;
        is_death = due == &state->death;
        alone = !seq && running && running < failure.from_call;
        if (is_death && seq && seq < failure.from_call)
            failure.from_call = seq; /* the other members can't finish this call either */
        if (!alone)
            failure_set_failed(group, &failure);
        if (!alone && is_death && group->host_shm)
            shm_group_set_failure(group->host_shm, &failure);
    }
    pthread_mutex_unlock(&state->lock);
    if (!due)
        return CT_OK;
    atomic_store(&state->returned, 1);
    if (!alone && is_death)
        channel_fail(group->mesh, &group->channel, &failure);
    blame = blame_of(group, &failure, awaited);
    if (is_begin && seq <= failure.from_call
        && (blame.reason == BLAME_LATE || blame.reason == BLAME_STOPPED))
        blame.reason = BLAME_FAILED; /* this rank waited for no rank, and is itself late */
    failure_note_blame(group, blame, !alone);
    return failure_quote(group->mesh, &failure);
}

/* ---- A call fails here --------------------------------------------------------- */

static ct_status fail_from(ct_group *group, ct_status status, uint64_t from_call)
{
    const struct group_failure failure = failure_here(group->mesh, status, from_call);

    failure_note_blame(group, failure.blame, 1);
    if (record(group, &failure, 0))
        channel_fail(group->mesh, &group->channel, &failure);
    atomic_store(&group->failure.returned, 1);
    return status;
}

ct_status group_fail(ct_group *group, ct_status status)
{
    const uint64_t running = atomic_load(&group->running);

    return fail_from(group, status, running ? running : group->seq);
}

/* Makes the group fail in the running call or, if no call runs, in the next.  So the other ranks
 * can finish the calls that this rank has finished. */
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

    if (group->host_shm && atomic_load(&group->failure.status) == CT_OK
        && shm_group_failure(group->host_shm, &failure) && record(group, &failure, 0))
        channel_fail(group->mesh, &group->channel, &failure);
}

/* A rank that waits for a message of another host does not read the slots of its own host.  So the
 * wait calls this function, which checks all groups. */
void group_look_at_all(void *arg)
{
    ct_group *root = arg;

    pthread_mutex_lock(&root->children);
    for (ct_group *g = root; g; g = g->next)
        group_look_for_failure(g);
    pthread_mutex_unlock(&root->children);
}

/* ---- A member died ------------------------------------------------------------- */

static const struct control_group *line_of(const struct control_rank *page, uint64_t id)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (atomic_load(&page->groups[i].id) == id)
            return &page->groups[i];
    return NULL;
}

/* Returns 1 and sets *done to the number of the dead member's last finished call.  Returns 0 if the
 * dead member had destroyed the group or never created it. */
static int progress_of(const ct_group *g, const struct control_death *death, uint64_t *done)
{
    const struct control *control = &g->mesh->control;
    const int local = death->rank - control->base;
    const struct control_group *line;

    *done = 0;
    if (!g->record.line)
        return 1; /* the group has no line, so no finished call is known */
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

/* Records a member's death.  A member that ended because a call had failed is not the cause of the
 * failure.  Such a member reported the failure before it ended, so reported failures are recorded
 * first. */
static void member_died(ct_group *g, int member)
{
    const struct control_death *death = mesh_death(g->mesh, g->ranks[member]);
    struct group_failure failure = { .status = CT_ERR_PEER, .rank = g->mesh->rank };
    uint64_t done;

    if (!g->member || !death || !progress_of(g, death, &done))
        return;
    failure.from_call = done + 1;
    failure.blame = (struct blame){ g->ranks[member], BLAME_DIED };
    mesh_death_words(g->mesh, g->ranks[member], failure.words, sizeof failure.words);
    group_look_for_failure(g);
    if (record(g, &failure, 1))
        channel_fail(g->mesh, &g->channel, &failure);
}

void group_member_died(void *arg, int peer)
{
    ct_group *root = arg;

    pthread_mutex_lock(&root->children);
    for (ct_group *g = root; g; g = g->next)
        for (int i = 0; i < g->size; i++)
            if (g->ranks[i] == peer)
                member_died(g, i);
    pthread_mutex_unlock(&root->children);
}

void group_look_for_deaths(ct_group *g)
{
    for (int i = 0; i < g->size; i++)
        if (mesh_death(g->mesh, g->ranks[i]))
            member_died(g, i);
}

/* ---- What a call returns -------------------------------------------------------- */

/* Sets ct_last_error() and the blame from the group's failure, and returns the failure's status. */
static ct_status quote(ct_group *group, struct blame awaited)
{
    struct group_failure failure;

    pthread_mutex_lock(&group->failure.lock);
    failure = group->failure.what;
    pthread_mutex_unlock(&group->failure.lock);
    failure_note_blame(group, blame_of(group, &failure, awaited), 1);
    atomic_store(&group->failure.returned, 1);
    return failure_quote(group->mesh, &failure);
}

static ct_status broken_since(const ct_group *group, ct_status status)
{
    return ct_fail_in(status, "group %s is broken: ", group->name);
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
    messages_look(group->mesh); /* answers other ranks that probe this rank's call */
    return broken_since(group, quote(group, (struct blame){ 0 }));
}

ct_status group_unreturned_mismatch(ct_group *g)
{
    if (!g->member)
        return CT_OK;
    group_poll(g);
    if (atomic_load(&g->failure.status) == CT_OK
        && calls_compare_unexpected(g->mesh, &g->channel) != CT_OK)
        return group_fail(g, ct_fail_in(CT_ERR_MISMATCH, "group %s: ", g->name));
    return atomic_load(&g->failure.status) == CT_ERR_MISMATCH && !atomic_load(&g->failure.returned)
               ? quote(g, (struct blame){ 0 })
               : CT_OK;
}

ct_status group_begin(ct_group *g, uint64_t seq)
{
    ct_status status = CT_OK;

    mesh_look_for_deaths(g->mesh);
    if (seq) {
        /* The second store orders both before the load of failure.pending. */
        atomic_store_explicit(&g->running, seq, memory_order_release);
        atomic_store(&g->begun, seq);
    }
    if (atomic_load(&g->failure.pending)) {
        group_look_for_failure(g);
        status = fail_if_pending(g, seq, seq ? seq : ALL_CALLS, seq, (struct blame){ 0 });
    }
    status = status == CT_OK ? group_check(g) : broken_since(g, status);
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

/* Waits until ctrun's notice of a member whose connection or process has ended has come, or
 * death_notice_due() has passed.  Does not wait for a member that destroyed the group, since such a
 * member has not died. */
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

/* Appends to the error message each member of this host with a process that has ended without a
 * goodbye.  If another rank destroys its group during a call, the reason mostly is that a third
 * rank died.  Without ctrun, this rank gets no notice of that death. */
static void name_the_ended(ct_group *g, ct_status status)
{
    struct mesh *mesh = g->mesh;
    char sentence[1024], name[160];

    for (int i = 0; i < g->size; i++) {
        const int peer = g->ranks[i], local = mesh->node.base ? mesh->peers[peer].local : -1;

        if (peer == mesh->rank || local < 0 || endpoint_of(mesh, peer)->left
            || !node_peer_gone(&mesh->node, local))
            continue;
        mesh_peer_name(mesh, peer, name, sizeof name);
        snprintf(sentence, sizeof sentence, "%s", ct_last_error());
        if (!strstr(sentence, name))
            ct_fail_because((struct blame){ peer, BLAME_DIED }, status,
                            "%s; %s has ended without destroying the group", sentence, name);
    }
}

/* Does not look for a cause of a mismatch or a timeout of this rank, since the current error
 * message explains it best. */
ct_status group_cause(ct_group *g, ct_status status, uint64_t seq)
{
    const struct blame awaited = ct_last_blame();
    ct_status cause;

    if (status == CT_OK || status == CT_ERR_MISMATCH || status == CT_ERR_TIMEOUT)
        return status;
    if (status == CT_ERR_PEER && g->mesh->control.worker >= 0)
        wait_for_death_notice(g);
    group_look_for_failure(g);
    cause = fail_if_pending(g, seq, seq ? seq : ALL_CALLS, ALL_CALLS, awaited);
    if (cause != CT_OK)
        return cause;
    if (atomic_load(&g->failure.status) != CT_OK)
        return quote(g, awaited);
    if (status == CT_ERR_PEER && g->mesh->control.worker < 0 && seq)
        name_the_ended(g, status);
    return status;
}
