/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_text.h - writes verdicts, and parts of verdicts, as text and as JSON. */
#ifndef LAUNCHER_INSPECT_VERDICT_TEXT_H
#define LAUNCHER_INSPECT_VERDICT_TEXT_H

#include "launcher/inspect/verdict.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/text.h"

/* longest text of a verdict, in bytes; a line of ctrun's log can't be longer */
#define VERDICT_TEXT 1000

/* Writes the verdict as one sentence, which ends in "..." if it does not fit into size.  Returns
 * the sentence's key, a hash that does not depend on times, process states and a call's #number. */
uint64_t verdict_text(const struct verdict *verdict, const struct job_snapshot *job, char *text,
                      size_t size);

/* The parts of a verdict, from which one sentence about the verdicts of several hosts is made. */
struct verdict_parts {
    /* the call in which ranks wait, the same on each host; "" if the verdict can't be joined with
     * another host's, as it is about a message, a deadlock or calls that differ */
    char key[40];
    char call[240], where[160];   /* that call or message, such as "barrier #8"; its place */
    struct text waiting, awaited; /* "0-2,5": ranks that wait; ranks that are not here */
    int unnamed;                  /* number of ranks that are not here and have no known rank */
    char culprits[VERDICT_TEXT];  /* clauses about the ranks here that are waited for */
};

/* The caller must call verdict_parts_free().  The lists end with a NUL; without memory they have no
 * data. */
void verdict_parts(const struct verdict *verdict, const struct job_snapshot *job,
                   struct verdict_parts *parts);
void verdict_parts_free(struct verdict_parts *parts);

/* Writes the verdict as an object of an array, with its text.  `seconds` is the name of the JSON
 * field for the waiting time. */
void verdict_json(struct json_text *json, const struct verdict *verdict,
                  const struct job_snapshot *job, const char *seconds);

/* Writes "2.1 s", "3.5 min", or "2.0 h". */
void describe_time(uint64_t ns, char *text, size_t size);

/* Writes "all_reduce #12 (4 f32, sum)" or "send of 4 f32 to rank 1 (tag 0)".  `peer` is the other
 * rank of a message, or -1 for any rank.  If `peer` is PEER_UNSAID, the text has no peer, such as
 * "send (4 f32, tag 0)". */
void describe_call(const struct call_snapshot *call, int peer, char *text, size_t size);

/* Writes "exited with code 3", "was killed by SIGKILL", or "was lost with its host". */
void describe_death(const struct death_snapshot *death, char *text, size_t size);

/* Writes what the rank does now, such as "all_reduce #12 (4 f32, sum) on group world at
 * train.c:88", "waits for key x of the store", "exited with code 3", "(futex)" or "computing". */
#define RANK_TEXT 512
void describe_rank(const struct job_snapshot *job, const struct rank_snapshot *rank, char *text,
                   size_t size);

/* Returns 1 if the rank is in a call of a group, or in another wait that it announced. */
int rank_is_in_call(const struct rank_snapshot *rank);

#endif
