/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - the CPUs of this machine: which share a core, a cache, a socket, a
 * NUMA node.  Read only when an option asks for it. */
#ifndef LAUNCHER_PLACEMENT_TOPOLOGY_H
#define LAUNCHER_PLACEMENT_TOPOLOGY_H

#include "runtime/util/cpu_set.h"

struct cpu {
    int core;   /* the lowest CPU of its physical core, which names the core */
    int cache;  /* the lowest CPU of those that share its last-level cache; -1: unknown */
    int socket; /* -1: unknown */
    int node;   /* NUMA node; 0 where there are none */
};

struct topology {
    struct cpus allowed;       /* that ctrun may use: its affinity mask, which a cpuset narrows */
    struct cpu cpu[CPUS_MOST]; /* filled in for those that are allowed */
};

/* What `allowed` looks like on the machine whose files are under root ("" for this one). */
void topology_read(struct topology *topology, const char *root, const struct cpus *allowed);

/* Those of a NUMA node that are allowed; node -1: all. */
struct cpus topology_node(const struct topology *topology, int node);

/* The highest node that has an allowed CPU. */
int topology_last_node(const struct topology *topology);

#endif
