/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - determines which ranks of a job wait, in which call, and what the awaited ranks do.
 *
 * A verdict is data.  verdict_text.h turns a verdict into a sentence or JSON. */
#ifndef LAUNCHER_INSPECT_VERDICT_H
#define LAUNCHER_INSPECT_VERDICT_H

#include "launcher/inspect/blocker.h"

enum verdict_kind {
    VERDICT_MISSING,  /* ranks wait for others that are not in the call */
    VERDICT_MISMATCH, /* the ranks did not make the same call */
    VERDICT_DEADLOCK, /* ranks wait for each other, in one group or in several groups */
    VERDICT_HOSTS,    /* the missing ranks may be on other hosts */
    VERDICT_INIT,     /* ranks wait in ct_init_process_group() */
    VERDICT_STORE,    /* ranks wait for something that they named with control_waiting() */
    VERDICT_PROCESS,  /* ranks are stopped or gone, and no rank waits for them yet */
    VERDICT_QUIET,    /* no process works, and ctrun does not see the calls of the ranks */
    VERDICT_TOGETHER, /* all ranks are in the call, which takes long but is not stuck */
    VERDICT_KINDS
};

/* A set of ranks with the same activity. */
struct rank_set {
    struct activity does;
    int count;
    struct set_member {
        int rank; /* number by which the verdict names the rank; -1 if not known */
        int at;   /* index in job->rank; -1 if the rank is on another host */
    } * member;   /* [count] */
};

struct verdict {
    enum verdict_kind kind;
    char group[28]; /* name of the group; "" if the verdict is not about one group */
    /* for VERDICT_MISMATCH, what differs between the calls: "sizes", "roots" ...; otherwise NULL */
    const char *differ;
    /* for VERDICT_DEADLOCK, [circled] ranks, each of which waits for the next; otherwise NULL */
    int *circle;
    int circled;
    uint64_t waited_ns;   /* the longest wait of a rank in the verdict */
    struct rank_set *set; /* [sets] sets; the sets of waiting ranks come first */
    int sets;
};

struct verdict_list {
    const struct job_snapshot *job;
    struct verdict *verdict; /* [count] */
    int count;
    int stuck;         /* number of verdicts other than VERDICT_TOGETHER */
    const char *state; /* state of the job: "stuck", "starting", "running" ... */
};

/* Determines the verdicts from waits that last least_ns or longer.  Returns 0, or -1 if memory is
 * exhausted, and then verdicts may be missing.  In both cases the caller must call
 * verdict_list_free(), and must not free the job before that. */
int verdict_list_make(struct verdict_list *list, const struct job_snapshot *job, uint64_t least_ns);
void verdict_list_free(struct verdict_list *list);

#endif
