/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - reads the machine's topology from sysfs.
 *
 * Each allowed CPU starts as its own core, in an unknown socket, at node 0.  Values from sysfs
 * replace these defaults.  So if a kernel or a container hides a file, only the values in that file
 * are unknown.  Numbers are never assumed to be in order: on many machines CPU 0's sibling is CPU
 * 64, and on some machines GPU 0 is at node 3.
 *
 * On Linux, hwloc reads the same files.  If they are complete, hwloc finds the same topology. */
#include "launcher/placement/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/values/parse_placement.h"
#include "launcher/placement/sysfs.h"

/* Returns the lowest CPU of a list such as "3,67", or `otherwise` if the list is not valid. */
static int lowest_of(const char *list, int otherwise)
{
    struct cpus cpus;

    return cpu_list(list, cpus.bytes, sizeof cpus.bytes) ? cpus_next(&cpus, 0) : otherwise;
}

/* Returns the lowest CPU that shares the highest-level cache for data; -1 if unknown. */
static int last_cache(const char *folder)
{
    char text[2048];
    int best = 0, cache = -1;

    for (int i = 0; sysfs_line(text, sizeof text, "%s/cache/index%d/level", folder, i) == 0; i++) {
        const int level = atoi(text);

        sysfs_line(text, sizeof text, "%s/cache/index%d/type", folder, i);
        if (level <= best || !strcmp(text, "Instruction"))
            continue;
        sysfs_line(text, sizeof text, "%s/cache/index%d/shared_cpu_list", folder, i);
        best = level;
        cache = lowest_of(text, -1);
    }
    return cache;
}

static struct cpu read_cpu(const char *root, int number)
{
    struct cpu cpu = { .core = number, .cache = -1, .socket = -1, .node = 0 };
    char folder[256], text[2048];

    snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpu%d", root, number);
    if (sysfs_line(text, sizeof text, "%s/topology/thread_siblings_list", folder) == 0)
        cpu.core = lowest_of(text, number);
    if (sysfs_line(text, sizeof text, "%s/topology/physical_package_id", folder) == 0)
        cpu.socket = atoi(text);
    cpu.cache = last_cache(folder);
    return cpu;
}

/* Reads the nodes.  Their numbers may have gaps, so the file "online" lists them, in the format of
 * a list of CPUs. */
static void read_nodes(struct topology *topology, const char *root)
{
    struct cpus nodes, cpus;
    char text[4096];

    if (sysfs_line(text, sizeof text, "%s/sys/devices/system/node/online", root) < 0
        || !cpu_list(text, nodes.bytes, sizeof nodes.bytes))
        return;
    for (int node = cpus_next(&nodes, 0); node >= 0; node = cpus_next(&nodes, node + 1)) {
        if (sysfs_line(text, sizeof text, "%s/sys/devices/system/node/node%d/cpulist", root, node)
                < 0
            /* such a node has memory, but no CPUs */
            || !cpu_list(text, cpus.bytes, sizeof cpus.bytes))
            continue;
        for (int cpu = cpus_next(&cpus, 0); cpu >= 0; cpu = cpus_next(&cpus, cpu + 1))
            topology->cpu[cpu].node = node;
    }
}

void topology_read(struct topology *topology, const char *root, const struct cpus *allowed)
{
    topology->allowed = *allowed;
    for (int cpu = cpus_next(allowed, 0); cpu >= 0; cpu = cpus_next(allowed, cpu + 1))
        topology->cpu[cpu] = read_cpu(root, cpu);
    read_nodes(topology, root);
}

struct cpus topology_node(const struct topology *topology, int node)
{
    struct cpus found = { { 0 } };

    for (int cpu = cpus_next(&topology->allowed, 0); cpu >= 0;
         cpu = cpus_next(&topology->allowed, cpu + 1))
        if (node < 0 || topology->cpu[cpu].node == node)
            cpus_add(&found, cpu);
    return found;
}

int topology_last_node(const struct topology *topology)
{
    int last = 0;

    for (int cpu = cpus_next(&topology->allowed, 0); cpu >= 0;
         cpu = cpus_next(&topology->allowed, cpu + 1))
        if (topology->cpu[cpu].node > last)
            last = topology->cpu[cpu].node;
    return last;
}
