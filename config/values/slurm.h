/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.h - what Slurm's variables mean beyond their text. */
#ifndef CONFIG_VALUES_SLURM_H
#define CONFIG_VALUES_SLURM_H

#include <stddef.h>

#define SLURM_FIRST_PORT 20480 /* Linux begins its own at 32768, and few services are here */
#define SLURM_LAST_PORT 28671

/* The port of a step's store, derived from job and step so that all nodes know it; 0: this process
 * is in no step.  Linux gives connections other ports by itself. */
int slurm_step_port(void);

/* A node's name may resolve on no node, and Slurm still knows an address: NodeAddr.  If `host` does
 * not resolve here, it becomes that.  -1: it does not resolve, and scontrol knows no address. */
int slurm_node_address(char *host, size_t size);

/* SLURM_TASKS_PER_NODE, "2(x3),1": the number of this node; 0: not said. */
int slurm_tasks_of_node(const char *text, int node);

#endif
