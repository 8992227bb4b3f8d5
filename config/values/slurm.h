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

/* Slurm knows an address of each node (NodeAddr), even if the node's name does not resolve.  If
 * `host` does not resolve here, NodeAddr replaces it.  -1: scontrol knows no address either. */
int slurm_node_address(char *host, size_t size);

/* SLURM_TASKS_PER_NODE, "2(x3),1": the number of this node; 0: not said. */
int slurm_tasks_of_node(const char *text, int node);

#endif
