/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - decides which verdicts a job gets, and reads only the snapshot.
 *
 * Each deadlock gets a verdict, which lists the ranks that wait in a circle and the ranks that wait
 * for the circle.  Each group in which other members wait gets a verdict about one
 * collective call (tells_more()) and the messages that members are in.  Verdicts without a group
 * follow: on ranks that wait in ct_init_process_group(), on ranks that wait for the store, and on
 * processes that are stopped or gone although no rank waits for them yet.  A program of which ctrun
 * sees no calls gets only the last kind, and one that says that no process works. */
#include "launcher/inspect/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/groups.h"

struct work {
    struct verdict_list *list;
    const struct job_snapshot *job;
    struct groups groups;
    uint64_t least_ns;
    char *mentioned; /* [ranks] 1 if a verdict already tells why the rank can't continue */
    int failed;      /* 1 if memory is exhausted */
};

/* ---- Making a verdict ------------------------------------------------------- */

static struct verdict *verdict_begin(struct work *w, enum verdict_kind kind)
{
    struct verdict *v = &w->list->verdict[w->list->count++];

    *v = (struct verdict){ .kind = kind };
    return v;
}

static void drop_last(struct verdict_list *list)
{
    struct verdict *v = &list->verdict[--list->count];

    for (int i = 0; i < v->sets; i++)
        free(v->set[i].member);
    free(v->set);
    free(v->circle);
}

/* Returns a word for what differs between two calls; NULL if nothing differs.  Operations and roots
 * are not compared for messages (seq 0), since the two ends of a message always differ in them. */
static const char *difference(const struct call_snapshot *a, const struct call_snapshot *b)
{
    return a->seq && a->operation != b->operation ? "operations"
           : a->seq && a->root != b->root         ? "roots"
           : !a->seq && a->tag != b->tag          ? "tags"
           : a->dtype != b->dtype                 ? "dtypes"
           : a->count != b->count                 ? "sizes"
           : a->op != b->op                       ? "ops"
                                                  : NULL;
}

/* Returns 1 if the activity is a message in a deadlock.  Then its clause names neither the group
 * nor the peer. */
static int is_unsaid_message(const struct activity *does)
{
    return does->peer == PEER_UNSAID && does->call->seq == 0;
}

/* Returns 1 if one clause can describe the ranks of both activities.  A clause that names the
 * process can describe only one rank. */
static int verdict_is_same(const struct activity *a, const struct activity *b)
{
    if (a->kind != b->kind || a->kind == RANK_ENDED || a->kind == RANK_DIED
        || a->kind == RANK_TRACED || a->after != b->after || a->in_call != b->in_call
        || (a->kind != RANK_IN_INIT && a->peer != PEER_UNSAID
            && strcmp(a->waits_for, b->waits_for) != 0))
        return 0;
    return !a->call
           || (b->call && a->call->seq == b->call->seq && a->call->operation == b->call->operation
               && (is_unsaid_message(a)
                   || (a->line->id == b->line->id && a->call->root == b->call->root))
               && !difference(a->call, b->call) && !strcmp(activity_where(a), activity_where(b)));
}

/* Finds the set of ranks with this activity, or adds an empty set.  Returns NULL if memory is
 * exhausted. */
static struct rank_set *find_set(struct verdict *v, const struct activity *does)
{
    struct rank_set *more;

    for (int i = 0; i < v->sets; i++)
        if (verdict_is_same(&v->set[i].does, does))
            return &v->set[i];
    if (!(more = realloc(v->set, (size_t)(v->sets + 1) * sizeof *more)))
        return NULL;
    v->set = more;
    more[v->sets] = (struct rank_set){ .does = *does };
    return &more[v->sets++];
}

static void verdict_add(struct work *w, struct verdict *v, int rank, int at, struct activity does)
{
    struct rank_set *set = find_set(v, &does);
    struct set_member *more = set ? set->member : NULL;

    /* the allocated room, a power of two, is used up */
    if (set && (set->count & (set->count - 1)) == 0)
        more = realloc(more, (set->count ? 2 * (size_t)set->count : 1) * sizeof *more);
    if (!more) {
        v->sets -= set && set->count == 0;
        w->failed = 1;
        return;
    }
    set->member = more;
    more[set->count++] = (struct set_member){ rank, at };
    if (strcmp(set->does.waits_for, does.waits_for) != 0)
        *set->does.waits_for = '\0'; /* the ranks wait for different things */
    if (does.waits && does.waited_ns > v->waited_ns)
        v->waited_ns = does.waited_ns;
    if (at >= 0 && !does.waits)
        w->mentioned[at] = 1;
}

/* ---- Groups ------------------------------------------------------------------------ */

/* A group in which members wait. */
struct standing {
    const struct group_view *view;
    /* the collective call that the verdict is about; NULL if members wait only in messages */
    const struct call_snapshot *call;
    int one_could; /* 1 if at least one waiting member is not held (activity_is_held()) */
};

/* Returns 1 if a member waits for rank `number` of the group in a message.  If members wait in a
 * collective call, returns 1 for each rank. */
static int is_needed(const struct standing *g, int number)
{
    for (int i = 0; i < g->view->in && !g->call; i++) {
        const struct group_member *member = &g->view->member[i];
        const int peer = member->line->now.root;

        if (member->waits && (peer < 0 ? member->line->rank != number : peer == number))
            return 1;
    }
    return g->call != NULL;
}

/* Returns 1 if the member's peer waits in another message of the group.  Then that message shows
 * the reason. */
static int is_behind(const struct group_member *member)
{
    for (int i = 0; i < member->view->in && member_in_message(member); i++)
        if (member_in_message(&member->view->member[i])
            && member_needs(member, member->view->member[i].at))
            return 1;
    return 0;
}

static struct activity waits_there(const struct work *w, const struct group_member *member,
                                   const struct call_snapshot *call)
{
    struct activity does = { .kind = RANK_IN_CALL,
                             .waits = 1,
                             .waited_ns = snapshot_age(w->job, call->begun_ns) };

    if (is_behind(member)) {
        does.kind = RANK_BLOCKED;
        return does;
    }
    does.line = member->line;
    does.call = call;
    return does;
}

/* Returns the member's call that the verdict is about: its message, or its part of the newest
 * collective.  Returns NULL if the member made no such call, or if the call is not known. */
static const struct call_snapshot *part_of(const struct work *w, const struct standing *g,
                                           const struct group_member *member)
{
    if (member_in_message(member))
        return &member->line->now;
    return g->call ? member_call(&w->groups, member, g->call->seq) : NULL;
}

/* Returns what the member does: RANK_IN_CALL, RANK_BLOCKED, RANK_RETURNED, or what it does instead
 * of the call. */
static struct activity does_there(const struct work *w, const struct standing *g,
                                  const struct group_member *member)
{
    const uint64_t seq = g->call && !member_in_message(member) ? g->call->seq : 0;
    const struct call_snapshot *part = part_of(w, g, member);
    struct activity does = activity_of(w->job, member->at, member->line, member->left, seq);

    does.in_call = seq ? member_is_in(member, seq) : member_in_message(member);
    if (does.in_call
        && !(g->one_could && activity_is_held(&does) && is_needed(g, member->line->rank)))
        return waits_there(w, member, part ? part : g->call);
    if (seq && !does.in_call && !member->left && member->line->begun >= seq
        && does.kind != RANK_FAILED)
        return (struct activity){ .kind = RANK_RETURNED, .line = member->line, .call = part };
    return does;
}

/* Returns a word for what differs between the members' calls; NULL if nothing differs. */
static const char *differs(const struct work *w, const struct standing *g)
{
    const char *differ = NULL;

    for (int i = 0; i < g->view->in && !differ; i++) {
        const struct group_member *member = &g->view->member[i];
        const struct call_snapshot *part = part_of(w, g, member);
        const struct call_snapshot *other =
            member_in_message(member) ? member_other_end(member) : g->call;

        differ = part && other && !member->deadlock ? difference(part, other) : NULL;
    }
    return differ;
}

/* Adds the members that wait or made another call, then the members that they wait for.  If all
 * waiting members are stopped or gone, they count as waiting, since they still wait for the other
 * members.  Returns 1 if a member has waited for less than least_ns. */
static int add_members(struct work *w, struct verdict *v, struct standing *g)
{
    int some = 0, young = 0;

    g->one_could = 1;
    for (int i = 0; i < g->view->in; i++)
        some |= does_there(w, g, &g->view->member[i]).waits;
    g->one_could = some;
    for (int blockers = 0; blockers <= !v->differ; blockers++)
        for (int i = 0; i < g->view->count; i++) {
            const struct group_member *member = &g->view->member[i];
            struct activity does = does_there(w, g, member);
            const int blocks = !does.waits && does.kind != RANK_RETURNED;

            if (blocks != blockers || member->deadlock
                || !(blocks ? is_needed(g, member->line->rank)
                            : does.waits || (v->differ && does.call)))
                continue;
            young |= does.waits && !member->waits;
            if (does.call)
                does.peer = groups_name(&w->groups, does.line, does.call->root);
            verdict_add(w, v, member_name(&w->groups, member), member->at, does);
        }
    return young;
}

/* Adds a dead rank of another host, unless it had returned from the call.  Returns 0 if the rank
 * was not in the group, as far as ctrun knows. */
static int add_dead(struct work *w, struct verdict *v, const struct standing *g,
                    const struct death_snapshot *death)
{
    struct activity ended = { .kind = RANK_ENDED, .death = death };
    int known = g->view->is_world, returned = 0;

    for (int i = 0; i < death->tombs; i++)
        if (death->tomb[i].group == g->view->id) {
            known = 1;
            ended.after = death->tomb[i].begun;
            returned = g->call && death->tomb[i].done >= g->call->seq;
        }
    if (known && !returned)
        verdict_add(w, v, death->rank, -1, ended);
    return known;
}

/* Returns the index of a rank in job->rank; -1 if the rank has no page here. */
static int index_of(const struct job_snapshot *job, int rank)
{
    const int at = rank - job->base;

    if (!job->own_memory)
        return at >= 0 && at < job->ranks ? at : -1;
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].rank == rank)
            return i;
    return -1;
}

/* Adds the missing ranks that have no entry here.  In the world, the verdict names them by their
 * rank in the job.  In other groups, only their number is known. */
static void add_without_line(struct work *w, struct verdict *v, const struct standing *g)
{
    const struct job_snapshot *job = w->job;
    const struct activity not_here = { .kind = RANK_NOT_HERE };
    int unnamed = 0;

    for (int number = 0; number < g->view->size; number++) {
        const int at = index_of(job, number);
        const struct death_snapshot *death;

        if (member_numbered(g->view, number) || !is_needed(g, number))
            continue;
        death = g->view->is_world ? snapshot_death_of(job, number) : NULL;
        if (!g->view->is_world)
            unnamed++;
        else if (at >= 0)
            verdict_add(w, v, number, at, activity_of(job, at, NULL, 0, 0));
        else if (job->own_memory || !death)
            verdict_add(w, v, number, -1, not_here);
        else
            add_dead(w, v, g, death);
    }
    for (int i = 0; i < job->deaths && unnamed > 0; i++)
        if (job->death[i].rank < job->base || job->death[i].rank >= job->base + job->local)
            unnamed -= add_dead(w, v, g, &job->death[i]);
    while (unnamed-- > 0)
        verdict_add(w, v, -1, -1, not_here);
}

/* Returns 1 if a member has not begun the collective call number seq. */
static int lacks_member(const struct group_view *view, uint64_t seq)
{
    for (int i = 0; i < view->in; i++)
        if (view->member[i].line->begun < seq)
            return 1;
    return 0;
}

/* Returns 1 if the verdict should rather be about call a than about call b.  A member may wait in
 * an old call for a member that has not begun it, such as the root of a gather, while others have
 * returned from that call.  The old call then tells more.  Else the newest call does. */
static int tells_more(const struct group_view *view, uint64_t a, uint64_t b)
{
    const int lacks_a = lacks_member(view, a), lacks_b = lacks_member(view, b);

    return lacks_a != lacks_b ? lacks_a : lacks_a ? a < b : a > b;
}

static void judge_group(struct work *w, const struct group_view *view)
{
    struct standing g = { .view = view };
    int waits = 0, blockers = 0, others = 0, young;
    struct verdict *v;

    for (int i = 0; i < view->in; i++) {
        const struct group_member *member = &view->member[i];

        if (!member->waits || member->deadlock)
            continue;
        waits = 1;
        if (member->line->now.seq > 0
            && (!g.call || tells_more(view, member->line->now.seq, g.call->seq)))
            g.call = &member->line->now;
    }
    if (!waits)
        return;
    v = verdict_begin(w, VERDICT_TOGETHER);
    snprintf(v->group, sizeof v->group, "%s", view->name);
    v->differ = differs(w, &g);
    young = add_members(w, v, &g);
    if (!v->differ)
        add_without_line(w, v, &g);
    for (int i = 0; i < v->sets; i++) {
        blockers |= !v->set[i].does.waits && v->set[i].does.kind != RANK_NOT_HERE;
        others |= v->set[i].does.kind == RANK_NOT_HERE;
    }
    v->kind = v->differ  ? VERDICT_MISMATCH
              : blockers ? VERDICT_MISSING
              : others   ? VERDICT_HOSTS
                         : VERDICT_TOGETHER;
    if (v->sets == 0 || (v->kind == VERDICT_TOGETHER && young))
        drop_last(w->list);
}

/* ---- Deadlocks --------------------------------------------------------------------- */

static void add_deadlocked(struct work *w, struct verdict *v, const struct group_member *member)
{
    const struct call_snapshot *call = &member->line->now;
    struct activity does = { .kind = member->in_circle ? RANK_IN_CIRCLE : RANK_BLOCKED,
                             .waits = 1,
                             .waited_ns = snapshot_age(w->job, call->begun_ns),
                             .line = member->line,
                             .call = call,
                             .peer = PEER_UNSAID };

    snprintf(does.waits_for, sizeof does.waits_for, member->needed == member ? "itself" : "rank %d",
             member_name(&w->groups, member->needed));
    verdict_add(w, v, member_name(&w->groups, member), member->at, does);
}

/* Lists the circle of waits that the member is in, starting with the lowest rank. */
static void take_circle(struct work *w, struct verdict *v, const struct group_member *member)
{
    const struct group_member *lowest = member, *at = member;
    int count = 0;

    do {
        if (member_name(&w->groups, at) < member_name(&w->groups, lowest))
            lowest = at;
        count++;
    } while ((at = at->needed) != member);
    if (!(v->circle = calloc((size_t)count, sizeof *v->circle))) {
        w->failed = 1;
        return;
    }
    for (at = lowest; v->circled < count; at = at->needed)
        v->circle[v->circled++] = member_name(&w->groups, at);
}

/* Adds the ranks of the circle, then the ranks that wait for the circle.  The verdict has no group
 * name if the circle spans several groups. */
static void judge_deadlock(struct work *w, int number)
{
    struct verdict *v = verdict_begin(w, VERDICT_DEADLOCK);
    const struct group_view *view = NULL;

    for (int circle = 1; circle >= 0; circle--)
        for (int i = 0; i < w->groups.members_used; i++) {
            const struct group_member *member = &w->groups.members[i];

            if (member->deadlock != number || member->in_circle != circle)
                continue;
            if (!view) {
                view = member->view;
                snprintf(v->group, sizeof v->group, "%s", view->name);
                take_circle(w, v, member);
            } else if (circle && view != member->view) {
                *v->group = '\0';
            }
            add_deadlocked(w, v, member);
        }
    if (v->sets == 0)
        drop_last(w->list);
}

/* ---- Without a group --------------------------------------------------------------- */

/* Returns 1 if the rank waits in ct_init_process_group(), or if other ranks wait for it there. */
static int does_in_init(const struct work *w, int i, struct activity *does)
{
    const struct rank_snapshot *rank = &w->job->rank[i];

    *does = activity_of(w->job, i, NULL, 0, 0);
    does->in_call = rank->state == CONTROL_INIT;
    if ((activity_is_held(does) && rank->state <= CONTROL_INIT) || does->kind == RANK_NOT_STARTED
        || does->kind == RANK_NO_INIT || does->kind == RANK_INIT_FAILED || does->kind == RANK_LEFT)
        return 1;
    if (does->in_call)
        *does = activity_noted(RANK_IN_INIT, rank, snapshot_age(w->job, rank->since_ns));
    return does->waits && does->waited_ns >= w->least_ns;
}

/* Returns 1 if the rank waits for what it named with control_waiting(). */
static int does_at_store(const struct work *w, int i, struct activity *does)
{
    const struct rank_snapshot *rank = &w->job->rank[i];

    *does = activity_noted(RANK_AT_STORE, rank, snapshot_age(w->job, rank->waiting_since_ns));
    return *rank->waiting_for && rank->state != CONTROL_INIT && !w->mentioned[i]
           && does->waited_ns >= w->least_ns;
}

/* Returns 1 if the process is stopped or gone, and no other verdict reports it. */
static int does_as_process(const struct work *w, int i, struct activity *does)
{
    const struct rank_snapshot *rank = &w->job->rank[i];
    const struct group_snapshot *line = NULL;

    for (int j = 0; j < CONTROL_GROUPS && !line; j++)
        line = rank->group[j].id ? &rank->group[j] : NULL;
    *does = activity_of(w->job, i, line, 0, 0);
    if (rank->process.state == 'T' && all_stopped(w->job))
        *does = (struct activity){ .kind = ALL_RANKS_STOPPED };
    return does->kind == ALL_RANKS_STOPPED
           || (!w->mentioned[i]
               && (does->kind == RANK_STOPPED || does->kind == RANK_TRACED
                   || (does->kind == RANK_DIED && rank->wrapper.state)));
}

/* Returns 1 if the job is quiet, and no other verdict says why. */
static int does_nothing(const struct work *w, int i, struct activity *does)
{
    (void)i;
    *does = (struct activity){
        .kind = RANK_QUIET, .waits = 1, .waited_ns = w->job->quiet_ns, .peer = -1
    };
    return w->job->quiet_ns > 0 && w->job->quiet_ns >= w->least_ns && w->list->count == 1;
}

/* Makes a verdict with the waiting ranks, then the ranks that they wait for.  VERDICT_PROCESS has
 * no waiting ranks.  Returns NULL if the verdict would be empty. */
static struct verdict *judge_ranks(struct work *w, enum verdict_kind kind,
                                   int (*does_it)(const struct work *w, int i,
                                                  struct activity *does))
{
    const struct job_snapshot *job = w->job;
    struct verdict *v = verdict_begin(w, kind);
    struct activity does;

    for (int waits = kind != VERDICT_PROCESS; waits >= 0; waits--)
        for (int i = 0; i < job->ranks && (waits || v->sets > 0 || kind == VERDICT_PROCESS); i++)
            if (does_it(w, i, &does) && does.waits == waits)
                verdict_add(w, v, job->rank[i].rank, i, does);
    if (v->sets > 0)
        return v;
    drop_last(w->list);
    return NULL;
}

static void judge_all_ranks(struct work *w)
{
    const struct job_snapshot *job = w->job;
    struct verdict *init = judge_ranks(w, VERDICT_INIT, does_in_init);

    for (int rank = 0; rank < job->world && init && !job->own_memory; rank++)
        if ((rank < job->base || rank >= job->base + job->local) && !snapshot_death_of(job, rank))
            verdict_add(w, init, rank, -1, (struct activity){ .kind = RANK_NOT_HERE });
    judge_ranks(w, VERDICT_STORE, does_at_store);
    if (job->launcher_state == 'T' && !job->own_memory)
        verdict_add(w, verdict_begin(w, VERDICT_PROCESS), -1, -1,
                    (struct activity){ .kind = CTRUN_STOPPED });
    judge_ranks(w, VERDICT_PROCESS, does_as_process);
    judge_ranks(w, VERDICT_QUIET, does_nothing);
}

/* ---- The whole --------------------------------------------------------------------- */

static const char *state_of_job(const struct verdict_list *list)
{
    const struct job_snapshot *job = list->job;
    int starts = 0, alive = 0;

    if (all_stopped(job))
        return "stopped";
    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];

        alive += rank->process.state && !snapshot_death_of(job, rank->rank);
        starts += rank->state == CONTROL_INIT;
    }
    return list->stuck > 0 ? "stuck" : alive == 0 ? "ending" : starts > 0 ? "starting" : "running";
}

int verdict_list_make(struct verdict_list *list, const struct job_snapshot *job, uint64_t least_ns)
{
    struct work w = { .list = list, .job = job, .least_ns = least_ns };

    *list = (struct verdict_list){ .job = job };
    w.failed = groups_open(&w.groups, job, least_ns) < 0
               || !(w.mentioned = calloc((size_t)job->ranks + 1, 1))
               /* room for a verdict for each deadlock, each group, init, the store and a quiet job,
                * and two for processes */
               || !(list->verdict = calloc((size_t)w.groups.deadlocks + (size_t)w.groups.count + 5,
                                           sizeof(struct verdict)));
    if (!w.failed) {
        for (int i = 1; i <= w.groups.deadlocks; i++)
            judge_deadlock(&w, i);
        for (int i = 0; i < w.groups.count; i++)
            judge_group(&w, &w.groups.view[i]);
        judge_all_ranks(&w);
    }
    for (int i = 0; i < list->count; i++)
        list->stuck += list->verdict[i].kind != VERDICT_TOGETHER;
    list->state = state_of_job(list);
    groups_close(&w.groups);
    free(w.mentioned);
    return w.failed ? -1 : 0;
}

void verdict_list_free(struct verdict_list *list)
{
    while (list->count > 0)
        drop_last(list);
    free(list->verdict);
    *list = (struct verdict_list){ .state = "unknown" };
}
