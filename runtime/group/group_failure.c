/* SPDX-License-Identifier: Apache-2.0 */
/* group_failure.c - a group fails once, for one cause, which each of its ranks reports.
 *
 * A failure has the number of the first call that the group can't finish.  Failures are recorded
 * here by:
 *
 *   a call of this rank that failed, ct_abort()       group_fail(), group_abort()
 *   a frame of another member                         group_fail_told()
 *   memory that the ranks of one host share           group_look_for_failure()
 *   a death notice (ctrun's control page)             group_member_died()
 *
 * A rank that has not begun the failure's call keeps the failure pending and finishes its earlier
 * calls, which need nothing more from the rank that failed.  A survivor that is late in a call
 * which a dead member had finished does the same.  The dead member's last finished call is in its
 * line of the control page if it was on this host, otherwise in the death notice.  Of several
 * failures, the one with the earliest call is taken.  A message belongs to no call.  It fails
 * because of a failure that another rank reported, even of a later call.  Because of a pending
 * death it fails only if it has to wait.
 *
 * The first failure on this rank goes to the other members in two ways: into the shared memory of
 * the group's ranks on this host, and as frames (group_channel.h).  A pending death is not sent,
 * since each rank gets its own notice.  It is sent when a call fails because of it.
 *
 * A failure may come while a call starts.  The call notes its number, then reads `pending`; the
 * recorder stores `pending`, then reads the number.  At least one of them sees the other. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/group/shm/shm_group.h"
#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* How long a failed call sleeps between two looks for a death notice.  The sleep doubles each time.
 * Otherwise, on a busy host, the waiting ranks would take the processor that ctrun needs to write
 * the notice. */
#define FIRST_GLANCE_MS 2
#define LAST_GLANCE_MS 50

#define ALL_CALLS UINT64_MAX

/* ---- Because of which rank ------------------------------------------------------ */

/* Notes the blame for ctrun, before the call's sentence is returned. */
static void failure_note_blame(ct_group *g, struct blame on, int is_broken)
{
    struct control_group *line = g->record.line;
    struct control_blame blame = { .on = on };

    if (on.reason == BLAME_NONE || on.rank < 0 || on.rank >= g->mesh->size
        || g->mesh->peers[on.rank].worker < 0)
        return;
    blame.on.rank = g->mesh->peers[on.rank].worker;
    if (line) { /* the thread that runs the group's calls may write it, too */
        const uint32_t version = control_write(&line->version);

        blame.call = line->now;
        control_written(&line->version, version);
    }
    if (is_broken)
        blame.group = line ? atomic_load(&line->id) : UINT64_MAX;
    control_blame(&g->mesh->control, &blame);
}

/* Gives the rank to blame for a reported failure that ended a wait of this rank.  awaited: the rank
 * for which this rank waited, or whose end it had just seen.  The reporter may have waited for this
 * rank, or for a third rank that waits as well.  A rank that this host knows to be late or stopped
 * is nearer to the cause. */
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

/* The last call that a failure can still make fail.  A death fails only a call that runs now and
 * that the dead member had not finished.  A failure that another rank reports also fails a call
 * that this rank has finished. */
static uint64_t failure_last_call(const ct_group *group, int is_death)
{
    return atomic_load(is_death ? &group->running : &group->begun);
}

/* Under the lock. */
static void failure_set_failed(ct_group *group, const struct group_failure *failure)
{
    struct failure_state *state = &group->failure;

    state->what = *failure;
    atomic_store(&state->status, (int)failure_status(group->mesh, failure));
    atomic_store(&state->pending, 0);
    atomic_store(&state->reported, 1);
    atomic_store(&state->interrupted, 1);
}

/* Keeps, under the lock, the failure of this kind with the earliest call. */
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

/* Records a failure under the lock.  Returns the failure to send to the other members, or NULL.  If
 * this rank found a mismatch in a call, that call and all later calls return it, even if the rank
 * that found it first has ended and its death was recorded before. */
static const struct group_failure *record_locked(ct_group *group,
                                                 const struct group_failure *failure, int is_death)
{
    struct failure_state *state = &group->failure;
    struct group_failure *kept = is_death ? &state->death : &state->told;
    const int is_own = failure->rank == group->mesh->rank && !is_death;
    const int is_news = !is_death && kept->from_call == 0;

    if (atomic_load(&state->status) != CT_OK && !(is_own && failure->status == CT_ERR_MISMATCH))
        return NULL;
    if (!is_own && failure->from_call > failure_last_call(group, is_death)) {
        keep_pending(state, kept, failure);
        if (kept->from_call > failure_last_call(group, is_death))
            return is_news ? kept : NULL;
        failure = kept; /* its call has begun by now */
    }
    failure_set_failed(group, failure);
    return &state->what;
}

/* Records a failure.  1: the caller must send frames.  Writes the shared memory under the lock,
 * since that has only one sentence of this rank, which other ranks read without a lock. */
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

/* Finds, under the lock, a pending failure: one that another rank reported for a call up to `told`,
 * or a death for a call up to `death`.  NULL: none.  If both are for the same call, the report is
 * the cause, not the death that followed. */
static const struct group_failure *pending_until(const struct failure_state *state, uint64_t told,
                                                 uint64_t death)
{
    const struct group_failure *t = &state->told, *d = &state->death;

    t = t->from_call && t->from_call <= told ? t : NULL;
    d = d->from_call && d->from_call <= death ? d : NULL;
    return t && d ? (d->from_call < t->from_call ? d : t) : t ? t : d;
}

/* Makes a pending failure the group's and returns its status and sentence.  CT_OK: none is due.
 * seq: the call that fails because of it; 0: a message, which fails without the group while a call
 * runs that can still be finished. */
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
            failure.from_call = seq; /* the others can't finish it either */
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
        blame.reason = BLAME_FAILED; /* this rank itself is late, and has not waited for a rank */
    failure_note_blame(group, blame, !alone);
    return failure_quote(group->mesh, &failure);
}

/* ---- A call fails here --------------------------------------------------------- */

static ct_status fail_from(ct_group *group, ct_status status, uint64_t from_call)
{
    const struct group_failure failure = failure_here(group->mesh, status, from_call);

    failure_note_blame(group, failure.blame, 1);
    atomic_store(&group->failure.returned, 1);
    if (record(group, &failure, 0))
        channel_fail(group->mesh, &group->channel, &failure);
    return status;
}

ct_status group_fail(ct_group *group, ct_status status)
{
    const uint64_t running = atomic_load(&group->running);

    return fail_from(group, status, running ? running : group->seq);
}

/* Fails the running or the next call: the other ranks can finish the calls that this rank has
 * finished. */
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

/* Looks at all groups, since a rank that waits for another host's message does not look at the
 * slots of its own host. */
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

/* 1: the dead member had the group; *done is its last finished call.  0: it had destroyed the group
 * or never made it. */
static int progress_of(const ct_group *g, const struct control_death *death, uint64_t *done)
{
    const struct control *control = &g->mesh->control;
    const int local = death->rank - control->base;
    const struct control_group *line;

    *done = 0;
    if (!g->record.line)
        return 1; /* not recorded, so we know of no finished call */
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

/* Records a member's death.  A rank that ends because a call failed is not the cause, and it
 * reported the failure before it ended.  So reported failures are recorded first. */
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
    return ct_fail_in(status, "group %s is broken since: ", group->name);
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
    messages_look(group->mesh); /* other ranks may probe this rank's call */
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
        atomic_store(&g->running, seq);
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

/* Waits a while for ctrun's notice of members whose connection or process has ended.  Does not wait
 * for a member that destroyed the group, since it lives. */
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
 * Without ctrun, this rank gets no notice of that death.  So it adds to the current sentence each
 * member on its host whose process has ended without a goodbye. */
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

/* Keeps a mismatch that this rank found and its own timeout, since its own sentence explains them
 * best. */
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
