/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - ctrun starts itself on the nodes of a job, once on each.  Those ctruns are the nodes
 * of a fixed job (launcher/nodes); where they are and which one each is, they find in variables
 * (config/surroundings.c). */
#ifndef LAUNCHER_REMOTE_REMOTE_H
#define LAUNCHER_REMOTE_REMOTE_H

#include <stdio.h>

#include "config/options.h"

/* In a Slurm allocation: becomes `srun ctrun ...`, one task a node.  argv is ctrun's own.  Returns
 * an exit code, with the error logged, if that fails. */
int remote_srun(const struct options *options, char **argv);

/* The same command, for --explain and --dry-run. */
void remote_srun_print(FILE *out, const struct options *options, char **argv);

/* --hosts or --hostfile: starts ctrun on these hosts, shows what they write, and returns the job's
 * exit code. */
int remote_hosts(const struct options *options);
void remote_hosts_print(FILE *out, const struct options *options);

/* This environment without what belongs to this host or login, NULL-ended, with room for so many
 * more; strings and list are for free().  NULL: out of memory. */
char **remote_environment(int room);

/* `ctrun --hosts-node`, by which remote_hosts() starts it on a host. */
int remote_node(void);

#endif
