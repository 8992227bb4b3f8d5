/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - which ranks of a job wait, in which call, and what the ranks do that they wait for.
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
    VERDICT_STORE,    /* ranks wait for what they noted by control_waiting() */
    VERDICT_PROCESS,  /* ranks are stopped, or gone, and no rank waits for them yet */
    VERDICT_TOGETHER, /* all ranks are in the call: it takes long, but nothing is stuck */
    VERDICT_KINDS
};

/* Ranks that do the same. */
struct rank_set {
    struct activity does;
    int count;
    struct set_member {
        int rank; /* as the verdict names it; -1: its number is unknown */
        int at;   /* index in job->rank; -1: it is not of this host */
    } * member;   /* [count] */
};

struct verdict {
    enum verdict_kind kind;
    char group[28];     /* its name; "": the verdict is not about one group */
    const char *differ; /* MISMATCH: "sizes", "roots" ...; else NULL */
    int *circle;        /* [circled] DEADLOCK: ranks, each of which waits for the next; else NULL */
    int circled;
    uint64_t waited_ns;   /* the longest wait in it */
    struct rank_set *set; /* [sets]: first those that wait */
    int sets;
};

struct verdict_list {
    const struct job_snapshot *job;
    struct verdict *verdict; /* [count] */
    int count;
    int stuck;         /* how many, but for VERDICT_TOGETHER */
    const char *state; /* of the job: "stuck", "starting", "moving" ... */
};

/* Waits of less than least_ns are left out.  0; -1: out of memory, and verdicts may be missing. The
 * caller owes verdict_list_free() in both cases, and keeps the job until then. */
int verdict_list_make(struct verdict_list *list, const struct job_snapshot *job, uint64_t least_ns);
void verdict_list_free(struct verdict_list *list);

#endif
