/* SPDX-License-Identifier: Apache-2.0 */
/* observed_blame.h - finds because of which rank a call of another library failed.
 *
 * libct knows that rank and writes it to the control page (struct control_blame).  PyTorch's gloo
 * only says "Connection closed by peer" or "Timed out".  But observers show which rank did not come
 * to the failed call. */
#ifndef LAUNCHER_INSPECT_OBSERVED_BLAME_H
#define LAUNCHER_INSPECT_OBSERVED_BLAME_H

#include "launcher/inspect/snapshot.h"

/* Returns the failed call that the observer of job->rank[at] showed last; NULL if there is none. */
const struct group_snapshot *observed_failure(const struct job_snapshot *job, int at);

/* Finds the rank because of which that call failed, and writes it with the call to *blame.  Returns
 * 1, or 0 if no rank of this host is to blame. */
int observed_blame(const struct job_snapshot *job, int at, struct control_blame *blame);

#endif
