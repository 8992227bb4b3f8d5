/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_internal.h - the verdict as its three files see it. */
#ifndef LAUNCHER_INSPECT_VERDICT_INTERNAL_H
#define LAUNCHER_INSPECT_VERDICT_INTERNAL_H

#include "launcher/inspect/blocker.h"
#include "launcher/inspect/verdict.h"
#include "launcher/inspect/wait_graph.h"

struct verdict_in_work {
    struct verdict *verdict;
    const struct job_snapshot *job;
    struct groups groups;
    struct waits waits;
    uint64_t least_ns;
    struct blame *blames; /* [room], for one sentence after the other */
    int room;
    int *numbers;    /* [ranks and members], likewise */
    char *mentioned; /* [ranks]: a sentence speaks of it */
    int failed;      /* out of memory */
};

/* verdict_group.c, verdict_message.c: what is not explained yet. */
void verdict_group(struct verdict_in_work *work, const struct group_view *view);
void verdict_messages(struct verdict_in_work *work, const struct group_view *view);

/* A new sentence; NULL: out of memory, noted. */
struct sentence *verdict_add(struct verdict_in_work *work, enum verdict_kind kind);
/* work->blames with room for so many; NULL: likewise. */
struct blame *verdict_blames(struct verdict_in_work *work, int count);
/* The first `count` of work->blames, after `gap`. */
void verdict_say_blames(struct verdict_in_work *work, struct sentence *sentence, const char *gap,
                        int count);
/* "; ranks 4-7 are on other hosts: run ctctl there", if there are such. */
void verdict_say_other_hosts(struct verdict_in_work *work, struct sentence *sentence);

#endif
