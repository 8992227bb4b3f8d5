/* SPDX-License-Identifier: Apache-2.0 */
/* rank_stage.h - one word for what a rank does, with the glyph that goes with the word.  ctctl and
 * the page of --status use the same words, glyphs and order. */
#ifndef LAUNCHER_INSPECT_RANK_STAGE_H
#define LAUNCHER_INSPECT_RANK_STAGE_H

#include "launcher/inspect/verdict.h"

/* The numbers are a part of the text that nodes exchange (launcher/status/rank_row.h). */
enum rank_stage {
    STAGE_STARTS,    /* the rank is in ct_init_process_group() */
    STAGE_RUNS,      /* the rank computes, or is in a call */
    STAGE_WAITS,     /* the rank has waited too long for other ranks */
    STAGE_BLOCKS,    /* other ranks have waited too long for the rank */
    STAGE_DONE,      /* the rank ended with exit code 0 */
    STAGE_STOPPED,   /* the rank ended because ctrun stopped it */
    STAGE_FAILED,    /* the rank ended by itself, by a signal or with another exit code */
    STAGE_LEFT,      /* the rank left its group or ended with 0, before calls that others made */
    STAGE_STRAGGLES, /* the rank runs, and is the last in each collective */
    STAGES
};

const char *rank_stage_name(enum rank_stage stage);
char rank_stage_glyph(enum rank_stage stage);
/* Returns the place of the stage in a list that shows problems first, from 0. */
int rank_stage_order(enum rank_stage stage);

/* Sets stage[i] for each rank of the job, from the verdicts on the job. */
void rank_stages(const struct job_snapshot *job, const struct verdict_list *list,
                 enum rank_stage *stage);

#endif
