/* SPDX-License-Identifier: Apache-2.0 */
/* numa_binding.c - implements --numa-binding, torchrun's four ways to choose CPUs near a GPU.
 *
 *     node           all CPUs of the GPU's NUMA node
 *     socket         all CPUs of all nodes in the same socket
 *     exclusive      the node's cores, divided among the GPUs there
 *     core-complex   the CPUs of the node that share one last-level cache
 *
 * torchrun starts each worker under numactl.  ctrun itself sets the affinity, to the same CPUs.
 * Neither torchrun nor ctrun binds memory, so a page comes from the node that first touches it. */
#include "launcher/placement/placement.h"

#include <stdlib.h>

#include "runtime/util/log.h"

int place_no_gpu(const char *option)
{
    log_line(LOG_ERROR,
             "%s: No accelerator available: no /dev/nvidia0, or CUDA_VISIBLE_DEVICES hides it; "
             "--bind=numa and --bind=core need none",
             option);
    return 1;
}

int place_empty(const char *device, int node)
{
    log_line(LOG_ERROR,
             "GPU %s is at NUMA node %d, of which ctrun may use no CPU (taskset, a cpuset)", device,
             node);
    return 1;
}

/* Returns the NUMA node of a GPU.  If the kernel does not know the node, returns 0, as torchrun
 * does. */
static int node_of(const struct placement *placement, int device)
{
    const int node = placement->gpus.gpu[placement->devices.device[device].gpu].node;

    return node < 0 ? 0 : node;
}

static int numa_socket_of(const struct topology *topology, int node)
{
    const struct cpus cpus = topology_node(topology, node);
    const int lowest = cpus_next(&cpus, 0);

    return lowest < 0 ? -2 : topology->cpu[lowest].socket;
}

/* Returns the CPUs of all nodes that are in the same socket as `node`.  The lowest CPU of a node
 * determines the node's socket. */
static struct cpus socket_cpus(const struct topology *topology, int node)
{
    const int socket = numa_socket_of(topology, node);
    struct cpus all = { { 0 } };

    for (int other = 0; other <= topology_last_node(topology); other++) {
        const struct cpus cpus = topology_node(topology, other);

        if (numa_socket_of(topology, other) == socket)
            cpus_add_all(&all, &cpus);
    }
    return all;
}

static struct cpus behind_cache(const struct topology *topology, const struct cpus *within,
                                int cache)
{
    struct cpus found = { { 0 } };

    for (int cpu = cpus_next(within, 0); cpu >= 0; cpu = cpus_next(within, cpu + 1))
        if (topology->cpu[cpu].cache == cache)
            cpus_add(&found, cpu);
    return found;
}

struct complex {
    struct cpus cpus;
    int count, lowest;
};

static int larger_first(const void *a, const void *b)
{
    const struct complex *left = a, *right = b;

    return left->count != right->count ? right->count - left->count : left->lowest - right->lowest;
}

/* Returns the CPUs of core complex number k in `within`.  Larger complexes have lower numbers.
 * Returns an empty set if memory is exhausted. */
static struct cpus complex_cpus(const struct topology *topology, const struct cpus *within, int k)
{
    struct complex *complexes = calloc((size_t)cpus_count(within) + 1, sizeof *complexes);
    struct cpus seen = { { 0 } }, chosen = { { 0 } };
    int count = 0;

    for (int cpu = cpus_next(within, 0); complexes && cpu >= 0; cpu = cpus_next(within, cpu + 1)) {
        struct complex *next = &complexes[count];

        if (cpus_has(&seen, cpu))
            continue;
        next->cpus = behind_cache(topology, within, topology->cpu[cpu].cache);
        next->count = cpus_count(&next->cpus);
        next->lowest = cpu;
        cpus_add_all(&seen, &next->cpus);
        count++;
    }
    if (count > 0) {
        qsort(complexes, (size_t)count, sizeof *complexes, larger_first);
        chosen = complexes[k % count].cpus;
    }
    free(complexes);
    return chosen;
}

/* Chooses the CPUs of worker i, which has GPU number `index` of the `together` GPUs at its node.
 * Returns 0, or 1 after it has logged an error. */
static int cpus_for(const struct placement *placement, enum numa_binding mode, int i, int index,
                    int together, struct cpus *cpus)
{
    const struct topology *topology = &placement->topology;
    const int node = node_of(placement, i);
    const struct cpus near = topology_node(topology, node);

    switch (mode) {
    case NUMA_SOCKET:
        *cpus = socket_cpus(topology, node);
        break;
    case NUMA_EXCLUSIVE:
        *cpus = place_share(topology, &near, index, together);
        break;
    case NUMA_CORE_COMPLEX:
        *cpus = complex_cpus(topology, &near, index);
        break;
    default:
        *cpus = near;
    }
    if (cpus_count(&near) == 0)
        return place_empty(placement->devices.device[i].name, node);
    if (cpus_count(cpus) == 0
        || (mode == NUMA_EXCLUSIVE && place_cores(topology, &near) < together)) {
        log_line(LOG_ERROR,
                 "--numa-binding=exclusive: %d GPUs are at NUMA node %d, of which ctrun may use %d "
                 "cores only",
                 together, node, place_cores(topology, &near));
        return 1;
    }
    return 0;
}

int place_numa(struct placement *placement, enum numa_binding mode)
{
    const struct devices *devices = &placement->devices;

    if (placement->gpus.count == 0 || devices->count == 0)
        return place_no_gpu("--numa-binding");
    for (int i = 0; i < devices->count; i++)
        if (devices->device[i].gpu < 0) {
            log_line(LOG_ERROR, "--numa-binding: where GPU %s is, is not known",
                     devices->device[i].name);
            return 1;
        }
    if (devices->count < placement->size) {
        log_line(LOG_ERROR, "--numa-binding: local rank %d has no GPU: %d %s visible",
                 devices->count, devices->count, devices->count == 1 ? "is" : "are");
        return 1;
    }
    for (int i = 0; i < placement->size; i++) {
        struct worker_place *place = &placement->place[i];
        int index = 0, together = 0, code;

        for (int j = 0; j < devices->count; j++)
            if (node_of(placement, j) == node_of(placement, i)) {
                together++;
                index += j < i;
            }
        if ((code = cpus_for(placement, mode, i, index, together, &place->cpus)) != 0)
            return code;
        place->bound = 1;
    }
    return 0;
}
