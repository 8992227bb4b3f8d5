/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - who waits for whom in a job, a sentence for each group that stands. */
#ifndef LAUNCHER_INSPECT_VERDICT_H
#define LAUNCHER_INSPECT_VERDICT_H

#include "launcher/inspect/sentences.h"

enum verdict_kind {
    VERDICT_MISSING,  /* ranks wait for others that are not there */
    VERDICT_MISMATCH, /* the ranks do not make the same call */
    VERDICT_DEADLOCK, /* ranks wait for each other */
    VERDICT_HOSTS,    /* those that are missing are not here */
    VERDICT_INIT,     /* somebody has not called ct_init_process_group() */
    VERDICT_STORE,    /* a rank waits for what it noted by control_waiting() */
    VERDICT_PROCESS,  /* ranks are stopped, or gone, and nobody waits for them yet */
    VERDICT_TOGETHER, /* all are in the call: it takes long; nothing is stuck */
};

struct verdict {
    struct sentence *sentence; /* [count] */
    int count;
    int stuck;        /* sentences but those of VERDICT_TOGETHER */
    const char *word; /* of the job: "stuck", "starting", "moving" ... */
};

/* Of what has not moved for least_ns.  0; -1: out of memory.  verdict_free() is owed in both
 * cases.  Looks at nothing but the job. */
int verdict_make(struct verdict *verdict, const struct job_snapshot *job, uint64_t least_ns);
void verdict_free(struct verdict *verdict);

/* "missing", "deadlock", ... for programs. */
const char *verdict_kind_name(int kind);

#endif
