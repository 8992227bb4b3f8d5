/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - finds the GPUs of this machine, and those that CUDA would show a worker.  CUDA is not
 * loaded: that would take half a second and a context. */
#ifndef LAUNCHER_PLACEMENT_GPUS_H
#define LAUNCHER_PLACEMENT_GPUS_H

#include <stddef.h>

#define GPUS_MOST 128

struct gpu {
    int minor;     /* of its device file */
    char pci[24];  /* "0000:1b:00.0"; "": unknown */
    char uuid[64]; /* "GPU-..."; "": unknown */
    int node;      /* NUMA; -1: unknown */
};

/* In the order of PCI addresses, which is CUDA's order for equal GPUs. */
struct gpus {
    int count;
    struct gpu gpu[GPUS_MOST];
};

/* Finds the GPUs.  root: "" for this machine.  A GPU counts only if its device file is there: in a
 * container, the driver also lists GPUs of others. */
void gpus_read(struct gpus *gpus, const char *root);

/* One item of CUDA_VISIBLE_DEVICES. */
struct visible_gpu {
    char name[96]; /* as the user wrote it: "2", "GPU-...", "MIG-..." */
    int gpu;       /* index in struct gpus; -1: it is not there, or no GPU was found */
};

struct devices {
    int count;
    struct visible_gpu device[GPUS_MOST];
};

/* Splits a value of CUDA_VISIBLE_DEVICES into its items.  "" gives one empty item. */
void gpus_items(const struct gpus *gpus, const char *value, struct devices *items);

/* Gives the GPUs that CUDA shows with that value (NULL: unset; "": none).  The list stops at the
 * first item that names no GPU.  If no GPU was found, it takes all items as they are. */
void gpus_visible(const struct gpus *gpus, const char *value, struct devices *visible);

/* Puts the GPUs that --gpus lists, by their position in `visible` or by name, into *chosen.
 * -1: error names the first item that is wrong. */
int gpus_choose(const struct gpus *gpus, const struct devices *visible, const char *list,
                struct devices *chosen, char *error, size_t size);

#endif
