/* SPDX-License-Identifier: Apache-2.0 */
/* blocker.c - finds why a rank keeps others waiting.
 *
 * Facts from ctrun and the kernel come first: whether the rank has ended, or its process is
 * stopped.  Next comes what the rank wrote to the control page: its state, and the call that it is
 * in. */
#include "launcher/inspect/blocker.h"

#include <stdio.h>
#include <string.h>

static int is_gone(const struct process_snapshot *process)
{
    return process->state == 0 || strchr("ZXx", process->state);
}

int all_stopped(const struct job_snapshot *job)
{
    int stopped = 0;

    for (int i = 0; i < job->ranks; i++) {
        if (job->rank[i].process.state == 'T')
            stopped++;
        else if (!is_gone(&job->rank[i].process))
            return 0;
    }
    return stopped > 1;
}

/* Finds the group of the oldest call that the rank is in, except call number seq of `line`.
 * Returns NULL if the rank is in no other call.  The oldest call is the best guess, since younger
 * calls may be asynchronous. */
static const struct group_snapshot *other_call(const struct rank_snapshot *rank,
                                               const struct group_snapshot *line, uint64_t seq)
{
    const struct group_snapshot *found = NULL;

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct group_snapshot *group = &rank->group[i];

        if (group->id == 0 || group->moving || group->now.phase != CONTROL_IN
            || (group == line && seq > 0 && group->now.seq == seq))
            continue;
        if (!found || group->now.begun_ns < found->now.begun_ns)
            found = group;
    }
    return found;
}

/* Returns what a running rank does while it is in no call. */
static enum activity_kind blocker_state_of(const struct job_snapshot *job,
                                           const struct rank_snapshot *rank,
                                           const struct group_snapshot *line, int left)
{
    if (*rank->waiting_for && rank->state != CONTROL_INIT)
        return RANK_AT_STORE;
    if (left || rank->state == CONTROL_LEFT)
        return RANK_LEFT;
    if (line)
        return line->now.phase == CONTROL_FAILED ? RANK_FAILED
               : line->begun > 0                 ? RANK_IDLE
                                                 : RANK_NO_CALL;
    if (rank->state == CONTROL_INIT)
        return RANK_IN_INIT;
    if (rank->state == CONTROL_OUTSIDE)
        return RANK_INIT_FAILED;
    /* without ctrun, a rank of libct makes its page after its init */
    return rank->state == CONTROL_STARTED && (!job->own_memory || rank->observer != OBSERVER_NONE)
               ? RANK_NO_INIT
               : RANK_NOT_IN_GROUP;
}

struct activity activity_of(const struct job_snapshot *job, int at,
                            const struct group_snapshot *line, int left, uint64_t seq)
{
    const struct rank_snapshot *rank = &job->rank[at];
    const struct group_snapshot *other = other_call(rank, line, seq);
    const char state = rank->process.state;
    /* what a silent observer showed before can be out of date */
    const int is_known = line && !(line->is_observed && rank->observer == OBSERVER_SILENT);
    struct activity does = { .after = is_known ? line->begun : 0 };

    does.death = job->own_memory ? NULL : snapshot_death_of(job, rank->rank);
    if (does.death)
        does.kind = RANK_ENDED;
    else if (rank->process.pid == 0)
        does.kind = RANK_NOT_STARTED;
    else if (is_gone(&rank->process)) /* a rank without a group may end at any time */
        does.kind = rank->state == CONTROL_LEFT || left || (!line && rank->state != CONTROL_INIT)
                        ? RANK_LEFT
                        : RANK_DIED;
    else if (state == 't')
        does.kind = RANK_TRACED;
    else if (state == 'T' && !all_stopped(job))
        does.kind = RANK_STOPPED;
    else if (line && !left && seq > 0 && line->now.seq == seq && line->now.phase == CONTROL_IN)
        does.kind = RANK_IN_CALL;
    else
        does.kind = other                               ? RANK_IN_OTHER_CALL
                    : rank->observer == OBSERVER_SILENT ? RANK_SILENT
                                                        : blocker_state_of(job, rank, line, left);
    does.line = does.kind == RANK_IN_OTHER_CALL ? other : does.kind == RANK_FAILED ? line : NULL;
    does.call = does.line ? &does.line->now : NULL;
    if (does.kind == RANK_AT_STORE || does.kind == RANK_IN_INIT)
        snprintf(does.waits_for, sizeof does.waits_for, "%s", rank->waiting_for);
    return does;
}

struct activity activity_noted(enum activity_kind kind, const struct rank_snapshot *rank,
                               uint64_t waited_ns)
{
    struct activity does = { .kind = kind, .waits = 1, .waited_ns = waited_ns };

    snprintf(does.waits_for, sizeof does.waits_for, "%s", rank->waiting_for);
    return does;
}
