/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - lines of several ranks that speak of the same group.
 *
 * Ids are the same on all members, and no other group's.  A rank that has left a group still has
 * its line, marked with what its id was, until another group takes its place. */
#include "launcher/inspect/groups.h"

#include <stdlib.h>

static int is_of(const struct group_view *view, const struct group_snapshot *line)
{
    return line->id == view->id && line->size == view->size;
}

static int was_of(const struct group_view *view, const struct group_snapshot *line)
{
    return line->id == 0 && line->was == view->id && line->size == view->size;
}

static struct group_view *find_view(struct groups *groups, const struct group_snapshot *line)
{
    for (int i = 0; i < groups->count; i++)
        if (is_of(&groups->view[i], line))
            return &groups->view[i];
    return NULL;
}

const struct member *member_of(const struct group_view *view, int at)
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

/* Members behind groups->members[used]; those that left come after those that are in it. */
static int gather(struct groups *groups, struct group_view *view, int used)
{
    const struct job_snapshot *job = groups->job;

    view->member = &groups->members[used];
    for (int left = 0; left <= 1; left++)
        for (int i = 0; i < job->ranks; i++)
            for (int j = 0; j < CONTROL_GROUPS; j++) {
                const struct group_snapshot *line = &job->rank[i].group[j];

                if (left ? was_of(view, line) && !member_of(view, i) : is_of(view, line))
                    view->member[view->count++] = (struct member){ i, line, left };
                view->in = left ? view->in : view->count;
            }
    return view->count;
}

static void describe(const struct groups *groups, struct group_view *view)
{
    const struct job_snapshot *job = groups->job;

    view->is_world = view->size == job->world;
    for (int i = 0; i < view->count; i++) {
        const struct member *member = &view->member[i];

        if (member->line->rank != job->rank[member->at].rank)
            view->is_world = 0;
        for (int j = 0; j < i && !view->by_group_rank; j++)
            view->by_group_rank = view->member[j].at == member->at;
    }
}

int groups_open(struct groups *groups, const struct job_snapshot *job)
{
    size_t lines = 0;

    *groups = (struct groups){ .job = job };
    for (int i = 0; i < job->ranks; i++)
        for (int j = 0; j < CONTROL_GROUPS; j++)
            lines += job->rank[i].group[j].size > 0;
    if (lines == 0)
        return 0;
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
        describe(groups, &groups->view[i]);
    }
    return 0;
}

void groups_close(struct groups *groups)
{
    free(groups->view);
    free(groups->members);
    *groups = (struct groups){ .count = 0 };
}

int member_name(const struct groups *groups, const struct group_view *view,
                const struct member *member)
{
    return view->by_group_rank ? member->line->rank : groups->job->rank[member->at].rank;
}

const struct member *member_numbered(const struct group_view *view, int rank)
{
    for (int i = 0; i < view->count; i++)
        if (view->member[i].line->rank == rank)
            return &view->member[i];
    return NULL;
}

const struct call_snapshot *member_call(const struct groups *groups, const struct member *member,
                                        uint64_t seq)
{
    const struct rank_snapshot *rank = &groups->job->rank[member->at];

    if (member->line->now.seq == seq)
        return &member->line->now;
    for (int i = 0; i < rank->ring_used; i++)
        if (rank->ring[i].group == member->line->now.group && rank->ring[i].seq == seq)
            return &rank->ring[i];
    return NULL;
}
