/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.c - how many workers a word means.
 *
 * cpu is torchrun's and nproc(1)'s number, the affinity mask.  auto is ours to
 * choose where there is no GPU: no more workers than a container is given time for. */
#include "launcher/placement/nproc.h"

#include <stdio.h>

#include "launcher/placement/placement.h"
#include "runtime/util/cgroup.h"

static int count_cpus(int kind, char *why, size_t size)
{
    const int quota = kind == NPROC_AUTO ? cgroup_cpus("") : 0;
    struct cpus cpus;
    const int allowed = cpus_of_process(0, &cpus) == 0 ? cpus_count(&cpus) : 1;

    if (quota > 0 && quota < allowed) {
        snprintf(why, size,
                 "no GPU; the control group (cpu.max) gives the time of %d of the %d CPUs this "
                 "process may use",
                 quota, allowed);
        return quota;
    }
    snprintf(why, size, "%sCPUs this process may use", kind == NPROC_AUTO ? "no GPU; " : "");
    return allowed;
}

/* 0 with *why empty: there is none. */
static int count_gpus(const struct options *options, char *why, size_t size)
{
    struct devices devices;
    struct gpus gpus;

    *why = '\0';
    if (placement_devices(options, "", &gpus, &devices, why, size) < 0)
        return 0;
    if (options->gpus) /* named by the user: those of other makers have other device files */
        snprintf(why, size, "GPUs of --gpus");
    else if (gpus.count == 0 || devices.count == 0)
        return 0;
    else
        snprintf(why, size, "GPUs (/dev/nvidia*, CUDA_VISIBLE_DEVICES)");
    return devices.count;
}

int nproc_count(const struct options *options, char *why, size_t size)
{
    const struct nproc *nproc = &options->nproc;
    int count;

    *why = '\0';
    if (nproc->kind == NPROC_NUMBER)
        return nproc->number;
    if (nproc->kind == NPROC_CPU)
        return count_cpus(nproc->kind, why, size);
    count = count_gpus(options, why, size);
    if (count > 0 || *why)
        return count;
    if (nproc->kind == NPROC_AUTO)
        return count_cpus(nproc->kind, why, size);
    snprintf(why, size,
             "--nproc-per-node=gpu: Cuda is not available: no /dev/nvidia0, or "
             "CUDA_VISIBLE_DEVICES hides it; --nproc-per-node=cpu counts CPUs");
    return 0;
}
