/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - decides which CPUs and GPUs each worker of this node gets.
 *
 * The placement is made before the first worker starts, so that an impossible request ends with one
 * error.  Without an option that needs it, no placement is made, and nothing about the machine is
 * read. */
#ifndef LAUNCHER_PLACEMENT_PLACEMENT_H
#define LAUNCHER_PLACEMENT_PLACEMENT_H

#include <stddef.h>

#include "config/options.h"
#include "launcher/placement/gpu_topology.h"
#include "launcher/placement/gpus.h"
#include "launcher/placement/topology.h"

/* The CPUs, the memory node and the GPU of a worker. */
struct worker_place {
    int bound; /* 1 if the worker is bound to `cpus`; 0 if it has all of ctrun's CPUs */
    struct cpus cpus;
    int memory; /* preferred NUMA node of the worker's memory; -1 for any node */
    /* the GPU with index LOCAL_RANK; NULL if there is no such GPU */
    const struct visible_gpu *device;
};

struct placement {
    int size;
    struct worker_place *place;
    struct topology topology;
    struct gpus gpus;
    struct devices devices; /* the GPUs of this node's workers, in order */
    int own_gpu_only; /* 1 if --virtual-local-rank is given, so that worker i sees only device i */
    /* value of CUDA_VISIBLE_DEVICES for all workers, from --gpus; NULL if they inherit ctrun's
     * value */
    char *visible;
    /* 1 if the list is from HIP_VISIBLE_DEVICES, so that HIP_VISIBLE_DEVICES must be set, too */
    int hip;
    /* filled in by links_report_read() if there are two GPUs or more; otherwise empty */
    struct gpu_links links;
    int unlinked; /* number of GPUs that did not fit into links */
};

/* Creates a placement.  *made is NULL if no option needs a placement.  Returns 0, or ctrun's exit
 * code after it has logged an error.  `root` is "" for this machine. */
int placement_create(struct placement **made, const struct options *options, int size,
                     const char *root);
void placement_destroy(struct placement *placement); /* does nothing if placement is NULL */

/* Returns the value of CUDA_VISIBLE_DEVICES for a worker.  If ->hip is set, HIP_VISIBLE_DEVICES
 * must get the same value.  Returns NULL if the worker inherits ctrun's values. */
const char *placement_visible(const struct placement *placement, int local_rank);

/* ---- How --bind (bind.c) and --numa-binding (numa_binding.c) fill in ->place ---- */

/* These two functions return 0, or ctrun's exit code after they have logged an error. */
int place_bind(struct placement *placement, const char *bind);
int place_numa(struct placement *placement, enum numa_binding mode);

/* Returns part k of n of the physical cores that have CPUs in `within`.  Cores are sorted by NUMA
 * node, then by number.  If the cores can't be divided evenly, each of the first parts has one core
 * more. */
struct cpus place_share(const struct topology *topology, const struct cpus *within, int k, int n);
int place_cores(const struct topology *topology, const struct cpus *within);

/* Logs the error that `option` needs a GPU.  Returns ctrun's exit code. */
int place_no_gpu(const char *option);

/* Logs the error "GPU 3 is at NUMA node 1, of which ctrun may use no CPU".  Returns ctrun's exit
 * code. */
int place_empty(const char *device, int node);

/* Returns the number of workers that --nproc-per-node means here, with the reason in `why` for
 * --explain.  Returns 0 if the machine has nothing of the kind to count, with the error message in
 * `why`. */
int nproc_count(const struct options *options, char *why, size_t size);

/* Logs a warning if ctrun has more workers than processors, and a launcher (such as srun) limited
 * the processors.  The warning tells which option of the launcher gives ctrun more processors. */
void nproc_warn(const struct options *options, int size);

#endif
