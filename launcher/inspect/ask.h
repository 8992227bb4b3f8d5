/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - asks the observers of a control page what their processes do
 * (runtime/monitor/observer.c).
 *
 * An observer answers in some milliseconds, unless its process is stopped or holds Python's lock.
 */
#ifndef LAUNCHER_INSPECT_ASK_H
#define LAUNCHER_INSPECT_ASK_H

#include "launcher/inspect/snapshot.h"

/* How long a reader waits for answers.  After that an observer counts as silent. */
#define ASK_LIMIT_MS 2000

/* Returns 1 if a rank has an observer. */
int ask_is_possible(const struct job_snapshot *job);

/* Wakes the observers of the page in file fd, which must be open for writing.  Their answers appear
 * on the page. */
void ask_observers(int fd);

/* Asks, waits for the answers until the deadline, and then copies the page as page_read() does. */
int ask_and_read(int fd, int64_t deadline, struct job_snapshot *job);

/* Returns 1 if an observer may still answer, since its process is neither stopped nor gone. */
int ask_is_open(const struct job_snapshot *job);

#endif
