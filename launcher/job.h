/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - the workers of one node, from start to verdict. */
#ifndef LAUNCHER_JOB_H
#define LAUNCHER_JOB_H

#include "config/options.h"

/* Blocks what ctrun handles, from the first moment on: a signal that comes
 * before the workers waits until they can be told. */
void job_block_signals(const struct options *options);

/* Starts `size` workers and returns ctrun's exit code when the last is gone. */
int job_run(const struct options *options, int size);

#endif
