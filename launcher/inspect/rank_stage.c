/* SPDX-License-Identifier: Apache-2.0 */
/* rank_stage.c - sums up in one word what a rank does, for the status page and ctctl. */
#include "launcher/inspect/rank_stage.h"

#include <signal.h>

static const struct {
    const char *name;
    char glyph;
    int order;
} stages[STAGES] = {
    [STAGE_BLOCKS] = { "blocking", '!', 0 }, [STAGE_LEFT] = { "left", '<', 1 },
    [STAGE_FAILED] = { "failed", 'x', 2 },   [STAGE_STRAGGLES] = { "straggler", '~', 3 },
    [STAGE_WAITS] = { "waiting", '=', 4 },   [STAGE_STARTS] = { "starting", 'o', 5 },
    [STAGE_RUNS] = { "running", '>', 6 },    [STAGE_STOPPED] = { "stopped", '-', 7 },
    [STAGE_DONE] = { "done", '+', 8 },
};

const char *rank_stage_name(enum rank_stage stage)
{
    return stages[stage].name;
}

char rank_stage_glyph(enum rank_stage stage)
{
    return stages[stage].glyph;
}

int rank_stage_order(enum rank_stage stage)
{
    return stages[stage].order;
}

/* True if another rank has called a collective of the first group, usually the world, after the
 * last call of this rank there. */
static int is_behind_others(const struct job_snapshot *job, const struct rank_snapshot *rank)
{
    const struct group_snapshot *own = rank->group;

    for (int i = 0; i < job->ranks && own->id && rank->state != CONTROL_LEFT; i++)
        if (job->rank[i].group->id == own->id && job->rank[i].group->begun > own->begun)
            return 1;
    return 0;
}

static enum rank_stage stage_alone(const struct job_snapshot *job, const struct rank_snapshot *rank)
{
    const struct death_snapshot *death = snapshot_death_of(job, rank->rank);

    if (!death)
        return rank->state == CONTROL_INIT ? STAGE_STARTS : STAGE_RUNS;
    if (death->how == CLD_EXITED && death->code == 0)
        return is_behind_others(job, rank) ? STAGE_LEFT : STAGE_DONE;
    return death->asked ? STAGE_STOPPED : STAGE_FAILED;
}

static enum rank_stage stage_by(const struct activity *does, enum rank_stage alone)
{
    if (alone == STAGE_FAILED || alone == STAGE_STOPPED)
        return alone;
    if (does->waits)
        return does->kind == RANK_IN_CIRCLE ? STAGE_BLOCKS : STAGE_WAITS;
    return does->kind == RANK_LEFT || does->kind == RANK_ENDED ? STAGE_LEFT : STAGE_BLOCKS;
}

void rank_stages(const struct job_snapshot *job, const struct verdict_list *list,
                 enum rank_stage *stage)
{
    for (int i = 0; i < job->ranks; i++)
        stage[i] = stage_alone(job, &job->rank[i]);
    for (int i = 0; i < list->count; i++) {
        const struct verdict *verdict = &list->verdict[i];

        for (int set = 0; set < verdict->sets && verdict->kind != VERDICT_TOGETHER; set++)
            for (int m = 0; m < verdict->set[set].count; m++) {
                const int at = verdict->set[set].member[m].at;

                if (at >= 0)
                    stage[at] = stage_by(&verdict->set[set].does, stage[at]);
            }
    }
}
