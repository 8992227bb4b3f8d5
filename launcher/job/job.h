/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - the workers of one node, from start to verdict. */
#ifndef LAUNCHER_JOB_JOB_H
#define LAUNCHER_JOB_JOB_H

#include "config/rendezvous_options.h"

/* Starts `size` workers and returns ctrun's exit code when the last is gone. */
int job_run(const struct options *options, const struct meeting *meeting, int size);

#endif
