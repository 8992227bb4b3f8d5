/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_text.h - verdicts, and what they speak of, as text and as JSON. */
#ifndef LAUNCHER_INSPECT_VERDICT_TEXT_H
#define LAUNCHER_INSPECT_VERDICT_TEXT_H

#include "launcher/inspect/verdict.h"
#include "runtime/util/json_writer.h"

#define VERDICT_TEXT 1000 /* ctrun's log takes no longer line */

/* Writes one sentence, which ends in "..." if it is cut.  Gives a key of the sentence.  Times,
 * process states and a call's #number do not change the key. */
uint64_t verdict_text(const struct verdict *verdict, const struct job_snapshot *job, char *text,
                      size_t size);

/* An object of an array, with that text in it; `seconds` is the name of how long it waited. */
void verdict_json(struct json_text *json, const struct verdict *verdict,
                  const struct job_snapshot *job, const char *seconds);

/* "2.1 s", "3.5 min", "2.0 h" */
void describe_time(uint64_t ns, char *text, size_t size);

/* "all_reduce #12 (4 f32, sum)", "send of 4 f32 to rank 1 (tag 0)"; peer: that rank, -1: any;
 * PEER_UNSAID: "send (4 f32, tag 0)" */
void describe_call(const struct call_snapshot *call, int peer, char *text, size_t size);

/* "exited with code 3", "died of SIGKILL", "was lost with its host" */
void describe_death(const struct death_snapshot *death, char *text, size_t size);

/* What the rank does now: "all_reduce #12 (4 f32, sum) on group world at train.c:88", "waits for
 * key x of the store", "exited with code 3", "(futex)"; "": it computes. */
#define RANK_TEXT 512
void describe_rank(const struct job_snapshot *job, const struct rank_snapshot *rank, char *text,
                   size_t size);

/* It is in a call of a group, or in another wait that it noted. */
int rank_is_in_call(const struct rank_snapshot *rank);

#endif
