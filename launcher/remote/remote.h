/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - ctrun starts itself on the nodes of a job, once on each.  The ctruns there are the
 * nodes of a job (launcher/nodes).  Each finds the other nodes and its own number in variables
 * (config/surroundings.c). */
#ifndef LAUNCHER_REMOTE_REMOTE_H
#define LAUNCHER_REMOTE_REMOTE_H

#include <stdio.h>

#include "config/options.h"
#include "launcher/remote/start.h"

/* Runs `srun ctrun ...` in a Slurm allocation, with one task on each node, and waits for it.  argv:
 * ctrun's own.  Returns ctrun's exit code. */
int remote_srun(const struct options *options, char **argv);

/* Prints the same command, for --explain and --dry-run. */
void remote_srun_print(FILE *out, const struct options *options, char **argv);

/* Starts ctrun on the hosts of --hosts or --hostfile, shows their output, and returns the job's
 * exit code. */
int remote_hosts(const struct options *options);
int remote_hosts_print(FILE *out, const struct options *options);

/* Fills in what the starts of ctrun and of ctctl have in common: the hosts of --hosts or
 * --hostfile, this program, this folder and a random run id.  The caller sets the rest and frees
 * the hosts.  0; or the exit code, after an error in the log. */
int remote_start(struct start *start, const struct options *options);

/* Gives this environment without the variables of this host or login.  The list ends with NULL, and
 * has room for so many more entries.  The caller frees strings and list.  NULL: out of memory. */
char **remote_environment(int room);

/* Says whether a variable is only for the ctrun that the user starts, not for those that it starts.
 */
int remote_is_for_front(const char *entry);

/* Runs `ctrun --hosts-node`, which remote_hosts() starts on a host. */
int remote_node(void);

/* Sets SLURM_JOB_END_TIME if Slurm did not, and squeue knows it.  -1, after an error in the log:
 * the job of SLURM_JOB_ID is over, so ctrun can't start srun. */
int remote_slurm_ask(const struct options *options);

#endif
