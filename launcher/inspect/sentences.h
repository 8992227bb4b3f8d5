/* SPDX-License-Identifier: Apache-2.0 */
/* sentences.h - parts of sentences. */
#ifndef LAUNCHER_INSPECT_SENTENCES_H
#define LAUNCHER_INSPECT_SENTENCES_H

#include <stddef.h>

#include "launcher/inspect/snapshot.h"

#define SENTENCE_TEXT 1000 /* ctrun's log takes no longer line */

struct sentence {
    int kind;           /* enum verdict_kind */
    char group[28];     /* "": of none, or of several */
    uint64_t key;       /* of what it says, apart from what grows or flickers by itself */
    uint64_t waited_ns; /* the longest wait in it */
    size_t used;
    char text[SENTENCE_TEXT];
};

/* say(): words that make it another sentence when they change, but for a call's #number.
 * add(): others. */
void say(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "rank 3" or "ranks 0-2,5"; the numbers are in order. */
void words_ranks(const int *ranks, int count, char *text, size_t size);

/* "2.1 s", "3.5 min", "2.0 h" */
void words_time(uint64_t ns, char *text, size_t size);

/* "all_reduce #12 (4 f32, sum)"; of a message "send of 4 f32" */
void words_call(const struct call_snapshot *call, char *text, size_t size);

/* What the process does, as "it sleeps" or "they sleep". */
const char *words_doing(const struct process_snapshot *process, int several);

/* "exited with code 3", "died of SIGKILL", "was lost with its host" */
void words_death(const struct death_snapshot *death, char *text, size_t size);

/* How long ago; 0 for what has not come yet. */
static inline uint64_t words_age(const struct job_snapshot *job, uint64_t then_ns)
{
    return job->now_ns > then_ns ? job->now_ns - then_ns : 0;
}

#endif
