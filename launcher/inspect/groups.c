/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - finds the entries of several ranks that belong to the same group.
 *
 * All members of a group have the same id, and no other group has it.  When a rank leaves a group,
 * its entry stores the old id in ->was until another group uses the entry.
 *
 * A collective waits for all members that have not begun it.  A message waits for its peer, but a
 * receive from any rank waits for no rank in particular.  A circle of waits is a deadlock: no rank
 * of the circle can be the first to return, whatever the other processes do. */
#include "launcher/inspect/groups.h"

#include <stdlib.h>

#include "runtime/types/call_signature.h"

static int is_of(const struct group_view *view, const struct group_snapshot *line)
{
    return line->id == view->id && line->size == view->size;
}

static int was_of(const struct group_view *view, const struct group_snapshot *line)
{
    return line->id == 0 && line->was == view->id && line->size == view->size;
}

static struct group_view *find_view(const struct groups *groups, const struct group_snapshot *line)
{
    for (int i = 0; i < groups->count; i++)
        if (is_of(&groups->view[i], line))
            return &groups->view[i];
    return NULL;
}

/* Finds the member that is job->rank[at]; NULL if that rank has no entry for the group. */
static const struct group_member *member_of(const struct group_view *view, int at)
{
    int low = 0, high = view->in;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (view->member[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < view->in && view->member[low].at == at)
        return &view->member[low];
    for (int i = view->in; i < view->count; i++)
        if (view->member[i].at == at)
            return &view->member[i];
    return NULL;
}

/* Stores the members of the group in groups->members, from index `used` on: first the members in
 * the group, then the members that left.  Returns their number. */
static int gather(struct groups *groups, struct group_view *view, int used)
{
    const struct job_snapshot *job = groups->job;

    view->member = &groups->members[used];
    for (int left = 0; left <= 1; left++)
        for (int i = 0; i < job->ranks; i++)
            for (int j = 0; j < CONTROL_GROUPS; j++) {
                const struct group_snapshot *line = &job->rank[i].group[j];

                if (left ? was_of(view, line) && !member_of(view, i) : is_of(view, line))
                    view->member[view->count++] =
                        (struct group_member){ .view = view, .at = i, .line = line, .left = left };
                view->in = left ? view->in : view->count;
            }
    return view->count;
}

static void groups_describe(const struct groups *groups, struct group_view *view)
{
    const struct job_snapshot *job = groups->job;

    view->is_world = view->size == job->world;
    for (int i = 0; i < view->count; i++) {
        const struct group_member *member = &view->member[i];

        if (member->line->rank != job->rank[member->at].rank)
            view->is_world = 0;
        for (int j = 0; j < i && !view->by_group_rank; j++)
            view->by_group_rank = view->member[j].at == member->at;
    }
}

const struct group_member *member_numbered(const struct group_view *view, int rank)
{
    const int guess = view->count > 0 ? rank - view->member[0].line->rank : -1;

    if (guess >= 0 && guess < view->count && view->member[guess].line->rank == rank)
        return &view->member[guess];
    for (int i = 0; i < view->count; i++)
        if (view->member[i].line->rank == rank)
            return &view->member[i];
    return NULL;
}

static const struct group_member *peer_of(const struct group_member *member)
{
    const struct call_snapshot *call = &member->line->now;

    return call->seq == 0 && call->root >= 0 ? member_numbered(member->view, call->root) : NULL;
}

const struct call_snapshot *member_other_end(const struct group_member *member)
{
    const struct group_member *peer = peer_of(member);
    const struct call_snapshot *its = peer ? &peer->line->now : NULL;

    return its && !peer->left && its->phase == CONTROL_IN && its->seq == 0
                   && its->operation != member->line->now.operation
                   && (its->root == member->line->rank
                       || (its->root < 0 && its->operation == OPERATION_RECV))
               ? its
               : NULL;
}

int member_needs(const struct group_member *member, int at)
{
    const struct call_snapshot *call = &member->line->now;
    const struct group_member *other = call->seq ? member_of(member->view, at) : peer_of(member);

    if (call->seq == 0)
        return other && other->at == at && !member_other_end(member);
    return other && !other->left && other->line->begun < call->seq;
}

static void find_waits(struct groups *groups, uint64_t least_ns)
{
    for (int i = 0; i < groups->members_used; i++) {
        struct group_member *member = &groups->members[i];
        const struct group_snapshot *line = member->line;

        member->waits = !member->left && line->now.phase == CONTROL_IN && !line->moving
                        && snapshot_age(groups->job, line->now.begun_ns) >= least_ns;
        member->needed = member->waits ? groups->members : NULL;
    }
}

/* Finds which waits never end.  A wait is free if every waiting member that it needs is free.  Free
 * waits have NULL in ->needed.  Members that never become free are in a deadlock.  The loop ends,
 * since each ->needed only moves forward, at most members_used times. */
static void find_deadlocks(struct groups *groups)
{
    const struct group_member *end = groups->members + groups->members_used;

    for (int more = 1; more;) {
        more = 0;
        for (struct group_member *own = groups->members; own < end; own++) {
            const struct group_member *other = own->needed;

            if (!other)
                continue;
            while (other < end && (!other->needed || !member_needs(own, other->at)))
                other++;
            own->needed = other < end ? other : NULL;
            more |= other == end;
        }
    }
}

/* Numbers the deadlocks.  From each member in a deadlock, the chain of ->needed leads into one
 * circle.  A chain that reaches a deadlock with a number gets the same number. */
static void number_deadlocks(struct groups *groups)
{
    struct group_member *members = groups->members, *at;

    for (int i = 0; i < groups->members_used; i++) {
        const int number = groups->deadlocks + 1;

        if (!members[i].needed || members[i].deadlock)
            continue;
        for (at = &members[i]; !at->deadlock; at = &members[at->needed - members])
            at->deadlock = number;
        if (at->deadlock == number) {
            groups->deadlocks = number;
            for (; !at->in_circle; at = &members[at->needed - members])
                at->in_circle = 1;
        } else {
            const int known = at->deadlock;

            for (at = &members[i]; at->deadlock == number; at = &members[at->needed - members])
                at->deadlock = known;
        }
    }
}

int groups_open(struct groups *groups, const struct job_snapshot *job, uint64_t least_ns)
{
    size_t lines = 1;

    *groups = (struct groups){ .job = job };
    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++)
            lines += job->rank[i].group[j].size > 0;
    groups->view = calloc(lines, sizeof *groups->view);
    groups->members = calloc(lines, sizeof *groups->members);
    if (!groups->view || !groups->members)
        return -1;
    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++) {
            const struct group_snapshot *line = &job->rank[i].group[j];

            if (line->id == 0 || find_view(groups, line))
                continue;
            groups->view[groups->count++] =
                (struct group_view){ .id = line->id, .name = line->name, .size = line->size };
        }
    for (int i = 0; i < groups->count; i++) {
        groups->members_used += gather(groups, &groups->view[i], groups->members_used);
        groups_describe(groups, &groups->view[i]);
    }
    find_waits(groups, least_ns);
    find_deadlocks(groups);
    number_deadlocks(groups);
    return 0;
}

void groups_close(struct groups *groups)
{
    free(groups->view);
    free(groups->members);
    *groups = (struct groups){ .count = 0 };
}

int member_name(const struct groups *groups, const struct group_member *member)
{
    return member->view->by_group_rank ? member->line->rank : groups->job->rank[member->at].rank;
}

int groups_name(const struct groups *groups, const struct group_snapshot *line, int rank)
{
    const struct group_view *view = find_view(groups, line);
    const struct group_member *member = view ? member_numbered(view, rank) : NULL;

    return member ? member_name(groups, member) : rank;
}

const struct call_snapshot *member_call(const struct groups *groups,
                                        const struct group_member *member, uint64_t seq)
{
    const struct rank_snapshot *rank = &groups->job->rank[member->at];

    if (member->left)
        return NULL;
    if (member->line->now.seq == seq)
        return &member->line->now;
    for (int i = 0; i < rank->ring_used; i++)
        if (rank->ring[i].group == member->line->now.group && rank->ring[i].seq == seq)
            return &rank->ring[i];
    return NULL;
}
