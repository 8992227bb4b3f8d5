/* SPDX-License-Identifier: Apache-2.0 */
/* placement.h - which worker of this node gets which CPUs and sees which GPUs.
 *
 * Decided once, before the first worker starts, so that what can't be is one
 * sentence.  Without an option that asks for it there is no placement, and nothing of
 * the machine is read. */
#ifndef LAUNCHER_PLACEMENT_PLACEMENT_H
#define LAUNCHER_PLACEMENT_PLACEMENT_H

#include <stddef.h>

#include "config/options.h"
#include "launcher/placement/gpu_topology.h"
#include "launcher/placement/gpus.h"
#include "launcher/placement/topology.h"

/* One worker's. */
struct worker_place {
    int bound; /* to cpus; else it has ctrun's */
    struct cpus cpus;
    int memory; /* the NUMA node that its memory is taken from first; -1: any */
    const struct visible_gpu *device; /* the GPU that is number LOCAL_RANK for it; NULL: none */
};

struct placement {
    int size;
    struct worker_place *place;
    struct topology topology;
    struct gpus gpus;
    struct devices devices; /* of this node's workers, in order */
    int own_gpu_only;       /* --virtual-local-rank: worker i sees device i and no other */
    char *visible;          /* CUDA_VISIBLE_DEVICES of all, by --gpus; NULL: as inherited */
    int hip;                /* the list came from HIP_VISIBLE_DEVICES, which is set too */
    struct gpu_links links; /* by links_report_read(); none, or two at least */
    int unlinked;           /* GPUs for which there was no room in it */
};

/* *made is NULL where no option asks for one.  0, or ctrun's exit code and the sentence
 * is said.  root: "" for this machine. */
int placement_create(struct placement **made, const struct options *options, int size,
                     const char *root);
void placement_destroy(struct placement *placement); /* NULL is fine */

/* The value of CUDA_VISIBLE_DEVICES (and HIP_VISIBLE_DEVICES, if ->hip) for one
 * worker; NULL: it inherits ours. */
const char *placement_visible(const struct placement *placement, int local_rank);

/* ---- How --bind (bind.c) and --numa-binding (numa_binding.c) fill in ->place ---- */

/* Both: 0, or ctrun's exit code and the error is logged. */
int place_bind(struct placement *placement, const char *bind);
int place_numa(struct placement *placement, enum numa_binding mode);

/* Part k of n of the physical cores that have CPUs in `within`: by NUMA node, in a node
 * by number; the first parts get one more where n does not divide them. */
struct cpus place_share(const struct topology *topology, const struct cpus *within, int k, int n);
int place_cores(const struct topology *topology, const struct cpus *within);

/* What --numa-binding and --bind=gpu can't do without. */
int place_no_gpu(const char *option);

/* "GPU 3 is at NUMA node 1, of which ..." */
int place_empty(const char *device, int node);

/* The number of workers that --nproc-per-node means here, and why, for
 * --explain.  0: there is none of what was asked for; why is the sentence. */
int nproc_count(const struct options *options, char *why, size_t size);

/* Warns if the launcher that started ctrun gave it fewer processors than it has workers, and names
 * the option that gives more. */
void nproc_warn(const struct options *options, int size);

#endif
