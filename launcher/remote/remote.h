/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - ctrun starts itself once on each node of a job.  The ctruns on the nodes run the job
 * together (launcher/nodes).  Each of them reads the addresses of the other nodes and its own
 * number from variables (config/surroundings.c). */
#ifndef LAUNCHER_REMOTE_REMOTE_H
#define LAUNCHER_REMOTE_REMOTE_H

#include <stdio.h>

#include "config/options.h"
#include "launcher/remote/start.h"

/* Runs `srun ctrun ...` in a Slurm allocation, with one task on each node, and waits for srun to
 * end.  `argv` is ctrun's own argv.  Returns ctrun's exit code. */
int remote_srun(const struct options *options, char **argv);

/* Prints the command that remote_srun() would run, for --explain and --dry-run. */
void remote_srun_print(FILE *out, const struct options *options, char **argv);

/* Starts ctrun on the hosts of --hosts or --hostfile, shows the output of those ctruns, and returns
 * the job's exit code.  remote_hosts_print() only prints the commands, and returns 0 or an exit
 * code. */
int remote_hosts(const struct options *options);
int remote_hosts_print(FILE *out, const struct options *options);

/* Fills in the members that ctrun and ctctl set in the same way, which are the hosts of --hosts or
 * --hostfile, this program, the working directory and a random run id.  The caller sets the other
 * members and frees the hosts.  Returns 0, or an exit code after an error is logged. */
int remote_start(struct start *start, const struct options *options);

/* Returns this environment without the variables that describe this host or login.  The list ends
 * with NULL, and has room for `room` more entries.  The caller frees the strings and the list.
 * Returns NULL if memory runs out. */
char **remote_environment(int room);

/* True if a variable is only for the ctrun that the user starts, not for the ctruns on the
 * hosts. */
int remote_is_for_front(const char *entry);

/* Runs a relay, `ctrun --hosts-node`, which remote_hosts() starts on a host.  Returns the exit
 * code. */
int remote_node(void);

/* Sets SLURM_JOB_END_TIME if Slurm did not set it and squeue prints the time.  Returns 0, or -1
 * after an error is logged, if the job of SLURM_JOB_ID is over, so that ctrun can't start srun. */
int remote_slurm_ask(const struct options *options);

#endif
