/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.c - counting CPUs and GPUs without loading CUDA, which would cost ctrun
 * half a second and a context. */
#include "launcher/nproc.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The CPUs this process may use, as nproc(1) counts them. */
static int cpu_count(void)
{
    const int most = 1 << 16;
    cpu_set_t *set = CPU_ALLOC(most);
    int count = 1;

    if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0)
        count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
    CPU_FREE(set);
    return count;
}

static int all_digits(const char *text)
{
    if (!*text)
        return 0;
    while (isdigit((unsigned char)*text))
        text++;
    return !*text;
}

static int device_files(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;

    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (!strncmp(entry->d_name, "nvidia", 6) && all_digits(entry->d_name + 6))
            count++;
    if (dir)
        closedir(dir);
    return count;
}

int gpu_count(const char *devices, const char *visible)
{
    const int there = device_files(devices);
    int count = 0;

    if (!visible || there == 0)
        return there;
    /* CUDA stops at the first item that names nothing.  GPU-... and MIG-... are
     * names by themselves. */
    while (*visible) {
        char *end;
        const long number = strtol(visible, &end, 10);

        while (isspace((unsigned char)*visible))
            visible++;
        if (strncmp(visible, "GPU-", 4) != 0 && strncmp(visible, "MIG-", 4) != 0
            && (end == visible || number < 0 || number >= there))
            break;
        count++;
        visible += strcspn(visible, ",");
        visible += *visible == ',';
    }
    return count;
}

int nproc_count(const struct nproc *nproc, char *why, size_t size)
{
    const int gpus = nproc->kind == NPROC_AUTO || nproc->kind == NPROC_GPU
                         ? gpu_count("/dev", getenv("CUDA_VISIBLE_DEVICES"))
                         : 0;

    *why = '\0';
    if (nproc->kind == NPROC_NUMBER)
        return nproc->number;
    if (gpus > 0) {
        snprintf(why, size, "GPUs (/dev/nvidia*, CUDA_VISIBLE_DEVICES)");
        return gpus;
    }
    if (nproc->kind == NPROC_GPU) {
        snprintf(why, size,
                 "Cuda is not available: no /dev/nvidia0, or CUDA_VISIBLE_DEVICES hides "
                 "it; --nproc-per-node=cpu counts CPUs");
        return 0;
    }
    snprintf(why, size, "%sCPUs this process may use", nproc->kind == NPROC_AUTO ? "no GPU; " : "");
    return cpu_count();
}
