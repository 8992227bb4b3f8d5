/* SPDX-License-Identifier: Apache-2.0 */
/* deaths.h - one death, and when each survivor knew. */
#ifndef DETECTION_BENCH_DEATHS_H
#define DETECTION_BENCH_DEATHS_H

#include "bench/detection_bench/systems.h"

struct limits {
    int runs;     /* of ours; the others have fewer, see systems.c */
    int limit_ms; /* who does not know by then never does */
};

/* Starts the row's ranks under the system, has the victim of that run die, and prints a line for
 * each survivor:
 *
 *   PLACE,LAYOUT,SYSTEM,RUN,VICTIM,RANK,MS,STATUS,NAMED,SENTENCE
 *
 * MS is "never" behind the limit.  STATUS and NAMED (the sentence has the victim's name) are of
 * the call that returned; of who is told by a launcher, STATUS is SIGTERM or killed.  RANK is
 * -1 for the end of the launcher, -2 for that of the victim, as a pidfd tells it.
 * The number of survivors that never knew; -1 when the run did not come to the death. */
int death_run(struct system *system, const struct row *row, int run, struct page *page,
              const char *path, int limit_ms);

#endif
