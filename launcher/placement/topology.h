/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - finds which CPUs of this machine share a core, a cache, a socket, or a NUMA node.
 * Nothing is read unless an option needs it. */
#ifndef LAUNCHER_PLACEMENT_TOPOLOGY_H
#define LAUNCHER_PLACEMENT_TOPOLOGY_H

#include "runtime/util/cpu_set.h"

struct cpu {
    int core;   /* the lowest CPU of the same physical core, which identifies the core */
    int cache;  /* the lowest CPU with the same last-level cache; -1 if unknown */
    int socket; /* number of the processor socket; -1 if unknown */
    int node;   /* NUMA node; 0 if the machine has no NUMA */
};

struct topology {
    struct cpus allowed; /* CPUs that ctrun may use, which its affinity mask and a cpuset limit */
    struct cpu cpu[CPUS_MOST]; /* filled in for the allowed CPUs */
};

/* Reads which cores, caches, sockets and nodes the allowed CPUs belong to, from the files under
 * root ("" for this machine). */
void topology_read(struct topology *topology, const char *root, const struct cpus *allowed);

/* Returns the allowed CPUs of a NUMA node, or of all nodes if node is -1. */
struct cpus topology_node(const struct topology *topology, int node);

/* Returns the highest number of a NUMA node that has an allowed CPU. */
int topology_last_node(const struct topology *topology);

#endif
