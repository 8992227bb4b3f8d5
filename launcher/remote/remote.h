/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - ctrun starts itself on the nodes of a job, once on each.  Those ctruns are the nodes
 * of a job (launcher/nodes); where they are and which one each is, they find in variables
 * (config/surroundings.c). */
#ifndef LAUNCHER_REMOTE_REMOTE_H
#define LAUNCHER_REMOTE_REMOTE_H

#include <stdio.h>

#include "config/options.h"
#include "launcher/remote/start.h"

/* In a Slurm allocation: runs `srun ctrun ...`, one task a node, and stays in front of it.  argv is
 * ctrun's own.  Returns ctrun's exit code. */
int remote_srun(const struct options *options, char **argv);

/* The same command, for --explain and --dry-run. */
void remote_srun_print(FILE *out, const struct options *options, char **argv);

/* --hosts or --hostfile: starts ctrun on these hosts, shows what they write, and returns the job's
 * exit code. */
int remote_hosts(const struct options *options);
int remote_hosts_print(FILE *out, const struct options *options);

/* Fills in what a start of ctrun and one of ctctl have in common: the hosts of --hosts or
 * --hostfile, this program, this folder and a random run id.  The caller sets the rest and frees
 * the hosts.  0, or the exit code and the error is logged. */
int remote_start(struct start *start, const struct options *options);

/* This environment without what belongs to this host or login, NULL-ended, with room for so many
 * more; strings and list are for free().  NULL: out of memory. */
char **remote_environment(int room);

/* An entry of the environment that is for the ctrun that the user starts, and for none that it
 * starts. */
int remote_is_for_front(const char *entry);

/* `ctrun --hosts-node`, by which remote_hosts() starts it on a host. */
int remote_node(void);

/* Sets SLURM_JOB_END_TIME if Slurm did not and squeue knows it.  -1, with the error logged: ctrun
 * would start srun, but the job of SLURM_JOB_ID is over. */
int remote_slurm_ask(const struct options *options);

#endif
