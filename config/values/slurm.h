/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - values that are derived from Slurm's variables and from scontrol. */
#ifndef CONFIG_VALUES_SLURM_H
#define CONFIG_VALUES_SLURM_H

#include <stddef.h>

/* The range of slurm_step_port().  Few services listen here, and Linux's ephemeral ports begin at
 * 32768. */
#define SLURM_FIRST_PORT 20480
#define SLURM_LAST_PORT 28671

/* Returns the port of a step's store, which each node derives from the ids of the job and the step.
 * Returns 0 if this process is not in a step.  Linux does not give the port to other connections by
 * itself. */
int slurm_step_port(void);

/* Replaces `host` by the node's address in Slurm (NodeAddr) if `host` does not resolve here.  Slurm
 * knows that address even if the node's name does not resolve.  Returns 0, or -1 if Slurm knows no
 * address that resolves. */
int slurm_node_address(char *host, size_t size);

/* Returns the number of tasks of node number `node` from text, the value of SLURM_TASKS_PER_NODE
 * ("2(x3),1").  Returns 0 if text does not give the number. */
int slurm_tasks_of_node(const char *text, int node);

#endif
