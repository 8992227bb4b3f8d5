/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - decides which worker of this node gets which CPUs and sees which GPUs.
 *
 * It decides before the first worker starts, so that an impossible request ends with one error.
 * Without an option that asks for it, no placement is made, and nothing of the machine is read. */
#ifndef LAUNCHER_PLACEMENT_PLACEMENT_H
#define LAUNCHER_PLACEMENT_PLACEMENT_H

#include <stddef.h>

#include "config/options.h"
#include "launcher/placement/gpu_topology.h"
#include "launcher/placement/gpus.h"
#include "launcher/placement/topology.h"

/* The place of one worker. */
struct worker_place {
    int bound; /* 1: to cpus; 0: the worker has ctrun's CPUs */
    struct cpus cpus;
    int memory;                       /* the NUMA node that is preferred for its memory; -1: any */
    const struct visible_gpu *device; /* the GPU that is its number LOCAL_RANK; NULL: none */
};

struct placement {
    int size;
    struct worker_place *place;
    struct topology topology;
    struct gpus gpus;
    struct devices devices; /* of this node's workers, in order */
    int own_gpu_only;       /* --virtual-local-rank: worker i sees only device i */
    char *visible;          /* CUDA_VISIBLE_DEVICES of all workers, by --gpus; NULL: inherited */
    int hip;                /* the list came from HIP_VISIBLE_DEVICES, so that is set, too */
    struct gpu_links links; /* read by links_report_read(): of two GPUs or more; else empty */
    int unlinked;           /* number of GPUs that did not fit into links */
};

/* Makes a placement; *made is NULL if no option asks for one.  0; or ctrun's exit code, after an
 * error in the log.  root: "" for this machine. */
int placement_create(struct placement **made, const struct options *options, int size,
                     const char *root);
void placement_destroy(struct placement *placement); /* NULL is fine */

/* Gives the value of CUDA_VISIBLE_DEVICES (and HIP_VISIBLE_DEVICES, if ->hip) for one worker; NULL:
 * it inherits ctrun's. */
const char *placement_visible(const struct placement *placement, int local_rank);

/* ---- How --bind (bind.c) and --numa-binding (numa_binding.c) fill in ->place ---- */

/* Both return 0; or ctrun's exit code, after an error in the log. */
int place_bind(struct placement *placement, const char *bind);
int place_numa(struct placement *placement, enum numa_binding mode);

/* Gives part k of n of the physical cores that have CPUs in `within`.  Cores are sorted by NUMA
 * node, then by number.  If n does not divide them, the first parts have one core more. */
struct cpus place_share(const struct topology *topology, const struct cpus *within, int k, int n);
int place_cores(const struct topology *topology, const struct cpus *within);

/* Logs that --numa-binding and --bind=gpu need a GPU; returns ctrun's exit code. */
int place_no_gpu(const char *option);

/* Logs "GPU 3 is at NUMA node 1, of which ..."; returns ctrun's exit code. */
int place_empty(const char *device, int node);

/* Gives the number of workers that --nproc-per-node means here.  why: the reason, for --explain. 0:
 * nothing of the kind that it counts is here; why is the error. */
int nproc_count(const struct options *options, char *why, size_t size);

/* Warns if the launcher that started ctrun gave it fewer processors than ctrun has workers; names
 * the option that gives more. */
void nproc_warn(const struct options *options, int size);

#endif
