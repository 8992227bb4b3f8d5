/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - implements --bind, which binds workers to CPUs near a GPU, CPUs of a NUMA node, whole
 * cores, or listed CPUs.
 *
 *     gpu     the cores of the GPU's node, divided among the workers with GPUs at that node
 *     numa    all CPUs of a node; consecutive workers share a node, as in 0 0 1 1
 *     core    all physical cores, divided among the workers
 *     LIST    the CPUs that the user wrote for each local rank
 *
 * With gpu and core, a worker gets whole cores with all their hardware threads, since two workers
 * on the threads of one core would slow each other.  gpu and numa also prefer the memory of the
 * node.  They do not force it, since a worker that needs more memory than the node has would be
 * killed. */
#include "launcher/placement/placement.h"

#include <stdio.h>
#include <string.h>

#include "config/values/parse_placement.h"
#include "runtime/util/log.h"

/* Returns the cores that have CPUs in `within`.  The lowest CPU of a core represents the core. */
static struct cpus core_names(const struct topology *topology, const struct cpus *within)
{
    struct cpus names = { { 0 } };

    for (int cpu = cpus_next(within, 0); cpu >= 0; cpu = cpus_next(within, cpu + 1))
        cpus_add(&names, topology->cpu[cpu].core);
    return names;
}

int place_cores(const struct topology *topology, const struct cpus *within)
{
    const struct cpus names = core_names(topology, within);

    return cpus_count(&names);
}

struct cpus place_share(const struct topology *topology, const struct cpus *within, int k, int n)
{
    const int cores = place_cores(topology, within), each = cores / n, rest = cores % n;
    const int first = k * each + (k < rest ? k : rest), end = first + each + (k < rest);
    struct cpus share = { { 0 } };

    for (int node = 0, core = 0; node <= topology_last_node(topology); node++) {
        struct cpus here = topology_node(topology, node), names;

        here = cpus_both(&here, within);
        names = core_names(topology, &here);
        for (int name = cpus_next(&names, 0); name >= 0; name = cpus_next(&names, name + 1)) {
            const int mine = core >= first && core < end;

            core++;
            for (int cpu = mine ? cpus_next(&here, name) : -1; cpu >= 0;
                 cpu = cpus_next(&here, cpu + 1))
                if (topology->cpu[cpu].core == name)
                    cpus_add(&share, cpu);
        }
    }
    return share;
}

static void bind_to(struct worker_place *place, const struct cpus *cpus, int memory)
{
    place->bound = 1;
    place->cpus = *cpus;
    place->memory = memory;
}

static int bind_to_cores(struct placement *placement)
{
    const struct cpus *all = &placement->topology.allowed;
    const int cores = place_cores(&placement->topology, all);

    if (cores < placement->size) {
        log_line(LOG_ERROR,
                 "--bind=core: %d workers, but ctrun may use %d %s only (%d CPUs); start fewer, or "
                 "let them share with --bind=numa or none",
                 placement->size, cores, cores == 1 ? "core" : "cores", cpus_count(all));
        return 1;
    }
    for (int i = 0; i < placement->size; i++) {
        const struct cpus share = place_share(&placement->topology, all, i, placement->size);

        bind_to(&placement->place[i], &share, -1);
    }
    return 0;
}

static int bind_to_nodes(struct placement *placement)
{
    const struct topology *topology = &placement->topology;
    int nodes[CPUS_MOST], count = 0;

    for (int node = 0; node <= topology_last_node(topology); node++) {
        const struct cpus cpus = topology_node(topology, node);

        if (cpus_count(&cpus) > 0)
            nodes[count++] = node;
    }
    for (int i = 0; i < placement->size; i++) {
        const int node = nodes[(long)i * count / placement->size];
        const struct cpus cpus = topology_node(topology, node);

        bind_to(&placement->place[i], &cpus, node);
    }
    return 0;
}

/* Returns the NUMA node of worker i's GPU.  If there are more workers than GPUs, several workers
 * share a GPU.  Returns -1 if the kernel does not know the node, or the name of the GPU is not
 * known. */
static int gpu_node(const struct placement *placement, int i)
{
    const struct devices *devices = &placement->devices;
    const int gpu = devices->device[i % devices->count].gpu;

    return gpu < 0 ? -1 : placement->gpus.gpu[gpu].node;
}

static int bind_to_gpus(struct placement *placement)
{
    const struct topology *topology = &placement->topology;

    if (placement->gpus.count == 0 || placement->devices.count == 0)
        return place_no_gpu("--bind=gpu");
    for (int i = 0; i < placement->size; i++) {
        const int node = gpu_node(placement, i);
        const struct cpus near = topology_node(topology, node);
        struct cpus share = near;
        int before = 0, together = 0;

        for (int j = 0; j < placement->size; j++)
            if (gpu_node(placement, j) == node) {
                together++;
                before += j < i;
            }
        if (cpus_count(&near) == 0)
            return place_empty(placement->devices.device[i % placement->devices.count].name, node);
        /* if there are fewer cores than workers, each worker gets all cores */
        if (together <= place_cores(topology, &near))
            share = place_share(topology, &near, before, together);
        bind_to(&placement->place[i], &share, node);
    }
    return 0;
}

static int bind_to_list(struct placement *placement, const char *list)
{
    const struct cpus *allowed = &placement->topology.allowed;
    const char *at = list;

    for (int i = 0; i < placement->size; i++) {
        struct cpus cpus;
        char text[CPUS_TEXT], may[CPUS_TEXT];

        if (!*at) {
            log_line(LOG_ERROR, "--bind=%s has CPUs for %d %s, but there are %d workers", list, i,
                     i == 1 ? "worker" : "workers", placement->size);
            return 2; /* 2 means wrong usage, since the list is too short on any machine */
        }
        at = cpu_list(at, cpus.bytes, sizeof cpus.bytes);
        if (!cpus_within(&cpus, allowed)) {
            cpus_write(&cpus, text);
            cpus_write(allowed, may);
            log_line(LOG_ERROR, "--bind gives local rank %d the CPUs %s, but ctrun may use %s only",
                     i, text, may);
            return 1;
        }
        bind_to(&placement->place[i], &cpus, -1);
        at += *at == ';';
    }
    return 0;
}

int place_bind(struct placement *placement, const char *bind)
{
    if (!strcmp(bind, "core"))
        return bind_to_cores(placement);
    if (!strcmp(bind, "numa"))
        return bind_to_nodes(placement);
    if (!strcmp(bind, "gpu"))
        return bind_to_gpus(placement);
    return bind_to_list(placement, bind);
}
