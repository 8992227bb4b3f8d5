/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - says which ranks of a job wait and in which call, and what the awaited ranks do.
 *
 * A verdict is data; verdict_text.h makes a sentence or JSON of it. */
#ifndef LAUNCHER_INSPECT_VERDICT_H
#define LAUNCHER_INSPECT_VERDICT_H

#include "launcher/inspect/blocker.h"

enum verdict_kind {
    VERDICT_MISSING,  /* ranks wait for others that are not in the call */
    VERDICT_MISMATCH, /* the ranks do not make the same call */
    VERDICT_DEADLOCK, /* ranks wait for each other, in one group or in several */
    VERDICT_HOSTS,    /* the ranks that are missing may be on other hosts */
    VERDICT_INIT,     /* ranks wait in ct_init_process_group() */
    VERDICT_STORE,    /* ranks wait for what they named by control_waiting() */
    VERDICT_PROCESS,  /* ranks are stopped or gone, and no rank waits for them yet */
    VERDICT_TOGETHER, /* all ranks are in the call: it takes long, but is not stuck */
    VERDICT_KINDS
};

/* Ranks that all do the same. */
struct rank_set {
    struct activity does;
    int count;
    struct set_member {
        int rank; /* its number in the verdict; -1: not known */
        int at;   /* index in job->rank; -1: it is on another host */
    } * member;   /* [count] */
};

struct verdict {
    enum verdict_kind kind;
    char group[28];     /* name of the group; "": the verdict is not about one group */
    const char *differ; /* MISMATCH: "sizes", "roots" ...; NULL in other verdicts */
    int *circle;        /* [circled] DEADLOCK: each rank waits for the next; NULL in others */
    int circled;
    uint64_t waited_ns;   /* the longest wait in the verdict */
    struct rank_set *set; /* [sets]: the waiting ranks come first */
    int sets;
};

struct verdict_list {
    const struct job_snapshot *job;
    struct verdict *verdict; /* [count] */
    int count;
    int stuck;         /* verdicts, without VERDICT_TOGETHER */
    const char *state; /* of the job: "stuck", "starting", "moving" ... */
};

/* Makes the verdicts, without waits that are shorter than least_ns.  0; -1: out of memory, and
 * verdicts may be missing.  In both cases the caller must call verdict_list_free(), and must keep
 * the job until then. */
int verdict_list_make(struct verdict_list *list, const struct job_snapshot *job, uint64_t least_ns);
void verdict_list_free(struct verdict_list *list);

#endif
