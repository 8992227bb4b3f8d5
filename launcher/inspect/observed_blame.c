/* SPDX-License-Identifier: Apache-2.0 */
/* observed_blame.c - compares what the ranks of a group did when a call of one of them failed.
 *
 * A rank that ended is to blame before a rank that left the group, and that one before a rank that
 * did not come to the call.  A rank that came to the call, or whose own call failed too, is not to
 * blame. */
#include "launcher/inspect/observed_blame.h"

#include <string.h>

#include "launcher/inspect/proc_info.h"

const struct group_snapshot *observed_failure(const struct job_snapshot *job, int at)
{
    const struct group_snapshot *last = NULL;

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct group_snapshot *group = &job->rank[at].group[i];

        if (group->id && group->is_observed && group->now.phase == CONTROL_FAILED
            && (!last || group->now.begun_ns > last->now.begun_ns))
            last = group;
    }
    return last;
}

static const struct group_snapshot *line_of(const struct rank_snapshot *rank, uint64_t id,
                                            int *has_left)
{
    *has_left = 0;
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        if (rank->group[i].id == id)
            return &rank->group[i];
        *has_left |= !rank->group[i].id && rank->group[i].was == id;
    }
    return NULL;
}

/* Returns for what the rank is to blame if the call number seq of the group failed elsewhere. */
static enum blame_reason reason_of(const struct job_snapshot *job, const struct rank_snapshot *rank,
                                   const struct group_snapshot *failed, int is_world)
{
    const struct death_snapshot *death = snapshot_death_of(job, rank->rank);
    /* not rank->pid, which may be of another pid namespace */
    const char state = !death && rank->worker ? process_read(rank->worker).state : 0;
    const int ended = death ? !death->asked : !state || strchr("ZXx", state);
    int has_left;
    const struct group_snapshot *line = line_of(rank, failed->id, &has_left);

    if (line && line->now.phase == CONTROL_FAILED && line->begun >= failed->begun)
        return BLAME_NONE;
    if (ended)
        return line || has_left || is_world ? BLAME_DIED : BLAME_NONE;
    if (has_left || (is_world && rank->state == CONTROL_LEFT))
        return BLAME_LEFT;
    if (!line || (rank->observer == OBSERVER_ANSWERED && line->begun >= failed->begun))
        return BLAME_NONE;
    return state == 'T' ? BLAME_STOPPED : BLAME_LATE;
}

int observed_blame(const struct job_snapshot *job, int at, struct control_blame *blame)
{
    const struct group_snapshot *failed = observed_failure(job, at);
    const int is_world = failed && failed->size == job->world;

    *blame = (struct control_blame){ .on.reason = BLAME_NONE };
    for (int i = 0; i < job->ranks && failed; i++) {
        const struct rank_snapshot *rank = &job->rank[i];
        const enum blame_reason reason =
            i == at ? BLAME_NONE : reason_of(job, rank, failed, is_world);

        if (reason == BLAME_NONE
            || (blame->on.reason != BLAME_NONE && (int)reason >= blame->on.reason))
            continue;
        blame->on = (struct blame){ .rank = rank->rank, .reason = reason };
        blame->group = failed->id;
        blame->at_ns = job->now_ns;
        blame->call = (struct control_call){ .seq = failed->now.seq,
                                             .count = failed->now.count,
                                             .begun_ns = failed->now.begun_ns,
                                             .operation = (uint8_t)failed->now.operation,
                                             .dtype = (uint8_t)failed->now.dtype,
                                             .op = (int8_t)failed->now.op,
                                             .phase = CONTROL_FAILED,
                                             .root = (int16_t)failed->now.root };
        blame->call_hash = control_call_hash(&blame->call);
    }
    return blame->on.reason != BLAME_NONE;
}
