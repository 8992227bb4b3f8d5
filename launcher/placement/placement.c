/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - chooses a place for each worker according to the options.
 *
 * First come the GPUs.  CUDA_VISIBLE_DEVICES limits them, or HIP_VISIBLE_DEVICES, which takes
 * precedence.  Then --gpus chooses by number among the visible GPUs.  Next come the CPUs, chosen
 * only among those that ctrun itself may use, because taskset, a cpuset or a batch system may have
 * limited them for a reason. */
#include "launcher/placement/placement.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/util/cgroup.h"
#include "runtime/util/log.h"

/* ---- GPUs ---------------------------------------------------------------------- */

/* Returns the variable's value in the worker's environment, where a value of job.ini replaces an
 * empty or missing variable. */
static const char *placement_variable(const struct options *options, const char *name)
{
    const char *there = getenv(name);

    for (int i = 0; i < options->file.count && !(there && *there); i++)
        if (!strcmp(options->file.entries[i].section, "env")
            && !strcmp(options->file.entries[i].key, name))
            return options->file.entries[i].value;
    return there;
}

/* Returns the list of visible GPUs by torchrun's rule; NULL if no list is set.  Sets *hip to 1 if
 * the list is from HIP_VISIBLE_DEVICES. */
static const char *visible_list(const struct options *options, int *hip)
{
    const char *list = placement_variable(options, "HIP_VISIBLE_DEVICES");

    *hip = list && *list;
    return *hip ? list : placement_variable(options, "CUDA_VISIBLE_DEVICES");
}

/* Finds the GPUs that the options and the environment leave to the workers.  Returns 0, or -1 if
 * --gpus lists a GPU that does not exist, with the error message in `error`. */
static int placement_devices(const struct options *options, const char *root, struct gpus *gpus,
                             struct devices *devices, char *error, size_t size)
{
    struct devices visible;
    int hip;

    gpus_read(gpus, root);
    gpus_visible(gpus, visible_list(options, &hip), &visible);
    if (options->gpus)
        return gpus_choose(gpus, &visible, options->gpus, devices, error, size);
    *devices = visible;
    return 0;
}

/* Fills in placement->devices with each item of the list, whether or not that GPU exists.  Without
 * a list, worker i gets GPU number i, by torchrun's rule. */
static void own_devices(struct placement *placement, const char *list)
{
    char number[12];

    if (list) {
        gpus_items(&placement->gpus, list, &placement->devices);
        return;
    }
    for (int i = 0; i < placement->size && i < GPUS_MOST; i++) {
        struct devices one;

        snprintf(number, sizeof number, "%d", i);
        gpus_items(&placement->gpus, number, &one);
        placement->devices.device[i] = one.device[0];
        placement->devices.count = i + 1;
    }
}

static int join_names(struct placement *placement)
{
    const struct devices *devices = &placement->devices;
    char *at = malloc(GPUS_MOST * sizeof devices->device->name);

    placement->visible = at;
    for (int i = 0; at && i < devices->count; i++)
        at += sprintf(at, "%s%s", i ? "," : "", devices->device[i].name);
    return at ? 0 : -1;
}

static int take_gpus(struct placement *placement, const struct options *options, const char *root)
{
    const char *list = visible_list(options, &placement->hip);
    struct devices *devices = &placement->devices;
    char error[256];

    if (placement_devices(options, root, &placement->gpus, devices, error, sizeof error) < 0) {
        log_line(LOG_ERROR, "%s", error);
        return 1;
    }
    placement->own_gpu_only = options->virtual_local_rank;
    if (placement->own_gpu_only && !options->gpus)
        own_devices(placement, list);
    if (placement->own_gpu_only && devices->count < placement->size) {
        log_line(LOG_ERROR, "local_rank %d exceeds available GPUs in %s=%s", devices->count,
                 options->gpus    ? "--gpus"
                 : placement->hip ? "HIP_VISIBLE_DEVICES"
                                  : "CUDA_VISIBLE_DEVICES",
                 options->gpus ? options->gpus
                 : list        ? list
                               : "");
        return options->gpus ? 2 : 1; /* 2 means wrong usage, whatever the environment is */
    }
    for (int i = 0; i < placement->size && i < devices->count; i++)
        placement->place[i].device = &devices->device[i];
    return options->gpus && join_names(placement) < 0 ? 1 : 0;
}

const char *placement_visible(const struct placement *placement, int local_rank)
{
    if (!placement)
        return NULL;
    return placement->own_gpu_only ? placement->place[local_rank].device->name : placement->visible;
}

/* ---- CPUs ---------------------------------------------------------------------- */

static int take_cpus(struct placement *placement, const struct options *options, const char *root)
{
    struct cpus allowed;

    if (cpus_of_process(0, &allowed) < 0) {
        log_line(LOG_ERROR, "cannot find out which CPUs there are: %s", strerror(errno));
        return 1;
    }
    topology_read(&placement->topology, root, &allowed);
    if (options->numa_binding != NUMA_NOT)
        return place_numa(placement, options->numa_binding);
    return options->bind && strcmp(options->bind, "none") != 0
               ? place_bind(placement, options->bind)
               : 0;
}

/* Removes the preferred memory node of each worker that can't use it.  That is the case if the
 * kernel has no NUMA, a container's filter forbids the choice, the user has set a policy (numactl),
 * or the node has no memory for this process.  Then the kernel chooses where memory comes from. */
static void check_memory(struct placement *placement)
{
    unsigned long allowed[1024 / (8 * sizeof(unsigned long))] = { 0 };
    const int bits = 8 * sizeof *allowed;
    int mode = MPOL_DEFAULT;
    const int known = syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) == 0
                      && syscall(SYS_get_mempolicy, NULL, allowed, 8 * sizeof allowed, NULL,
                                 (unsigned long)MPOL_F_MEMS_ALLOWED)
                             == 0;

    for (int i = 0; i < placement->size; i++) {
        const int node = placement->place[i].memory;

        if (node >= 0
            && (!known || mode != MPOL_DEFAULT || node >= 8 * (int)sizeof allowed
                || !(allowed[node / bits] >> node % bits & 1)))
            placement->place[i].memory = -1;
    }
    if (!known)
        log_line(LOG_INFO, "the kernel does not let ctrun choose NUMA nodes for memory: %s",
                 strerror(errno));
}

/* ---- The whole ----------------------------------------------------------------- */

static int is_bound(const struct options *options)
{
    return options->numa_binding != NUMA_NOT
           || (options->bind && strcmp(options->bind, "none") != 0);
}

static int placement_fill(struct placement *placement, const struct options *options,
                          const char *root)
{
    int code = take_gpus(placement, options, root);

    if (code == 0 && (is_bound(options) || options->report != REPORT_NOT))
        code = take_cpus(placement, options, root);
    if (code == 0 && is_bound(options))
        check_memory(placement);
    return code;
}

int placement_create(struct placement **made, const struct options *options, int size,
                     const char *root)
{
    struct placement *placement;
    int code;

    *made = NULL;
    if (!is_bound(options) && !options->gpus && !options->virtual_local_rank
        && options->report == REPORT_NOT)
        return 0;
    if (!(placement = calloc(1, sizeof *placement))
        || !(placement->place = calloc((size_t)size, sizeof *placement->place))) {
        log_line(LOG_ERROR, "out of memory for the places of %d workers", size);
        placement_destroy(placement);
        return 1;
    }
    placement->size = size;
    for (int i = 0; i < size; i++)
        placement->place[i].memory = -1;
    if ((code = placement_fill(placement, options, root)) != 0) {
        placement_destroy(placement);
        return code;
    }
    *made = placement;
    return 0;
}

void placement_destroy(struct placement *placement)
{
    if (!placement)
        return;
    free(placement->visible);
    free(placement->place);
    free(placement);
}

/* ---- How many workers? ------------------------------------------------------- */

/* Counts the CPUs.  "cpu" counts the CPUs in the affinity mask, as torchrun and nproc(1) do.  For
 * "auto" without a GPU, ctrun's own rule also limits the number to the CPU time that the container
 * gets. */

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

/* Counts the GPUs.  If there is no GPU, returns 0 with *why empty. */
static int count_gpus(const struct options *options, char *why, size_t size)
{
    struct devices devices;
    struct gpus gpus;

    *why = '\0';
    if (placement_devices(options, "", &gpus, &devices, why, size) < 0)
        return 0;
    /* --gpus counts even if no GPU was found: other vendors' GPUs have other device files */
    if (options->gpus)
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

void nproc_warn(const struct options *options, int size)
{
    const int online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const char *more_cpus = options->surroundings.more_cpus;
    char how[64];
    struct cpus cpus;
    int allowed;

    if (!more_cpus || cpus_of_process(0, &cpus) < 0)
        return;
    allowed = cpus_count(&cpus);
    if (size <= allowed || allowed >= online)
        return;
    snprintf(how, sizeof how, more_cpus, size);
    log_line(LOG_WARN,
             "%d workers share %d of the %d processors here, since ctrun was given no more: %s "
             "gives more",
             size, allowed, online, how);
}
