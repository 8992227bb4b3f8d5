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
    const char *source;  /* "hwloc", "sysfs" */
    struct cpus allowed; /* that ctrun may use: its affinity mask, which a cpuset narrows */
    int cpus;            /* length of cpu[]: the highest of them, plus 1 */
    struct cpu *cpu;     /* filled in for those that are allowed */
};

/* What `allowed` looks like on the machine whose files are under root ("" for this
 * one): asks hwloc, if it is installed, else reads sysfs.  -1: out of memory. */
int topology_read(struct topology *topology, const char *root, const struct cpus *allowed);
void topology_free(struct topology *topology);

/* Those of a NUMA node that are allowed; node -1: all. */
struct cpus topology_node(const struct topology *topology, int node);

/* The highest node that has an allowed CPU. */
int topology_last_node(const struct topology *topology);

/* ---- For topology_hwloc.c and tests ------------------------------------------- */

/* Each fills in topology->cpu[].  -1: it can't. */
int topology_by_sysfs(struct topology *topology, const char *root);
int topology_by_hwloc(struct topology *topology, const char *root);

/* The first line of the file that the words name, without its end.  -1: there is none. */
int topology_line(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
