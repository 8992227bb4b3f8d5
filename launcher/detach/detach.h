/* SPDX-License-Identifier: Apache-2.0 */
/* detach.h - runs ctrun in the background, where it outlives the terminal or ssh (--detach). */
#ifndef LAUNCHER_DETACH_DETACH_H
#define LAUNCHER_DETACH_DETACH_H

#include "config/options.h"

/* Returned by detach() in the process that must run the job. */
enum { DETACHED = -1 };

/* Starts a keeper and, as its child, the ctrun that runs the job.  Returns DETACHED in that child.
 * In the calling process it waits until the workers run, or the nodes of --hosts and srun have been
 * started.  Then it prints the child's pid and returns ctrun's exit code.  If the job ends before
 * that, it prints the job's output and returns the job's exit code.
 * words: the command line, NULL at the end; the child's has no --detach any more. */
int detach(struct options *options, char **words);

/* Tells ctrun --detach that the job has begun, so that it ends.  Does nothing in other
 * jobs. */
void detach_tell_began(const struct options *options);

#endif
