/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - finds the GPUs of this machine, and the GPUs that CUDA would show to a worker.  CUDA is
 * not loaded, since that would take half a second and create a context. */
#ifndef LAUNCHER_PLACEMENT_GPUS_H
#define LAUNCHER_PLACEMENT_GPUS_H

#include <stddef.h>

#define GPUS_MOST 128

struct gpu {
    int minor;     /* number of the GPU's device file */
    char pci[24];  /* PCI address, "0000:1b:00.0"; "" if unknown */
    char uuid[64]; /* UUID, "GPU-..."; "" if unknown */
    int node;      /* NUMA node; -1 if unknown */
};

/* The GPUs, in the order of PCI addresses, which is CUDA's order for equal GPUs. */
struct gpus {
    int count;
    struct gpu gpu[GPUS_MOST];
};

/* Finds the GPUs.  `root` is "" for this machine.  Only a GPU with a device file counts, since
 * inside a container the driver also lists the GPUs of other containers. */
void gpus_read(struct gpus *gpus, const char *root);

/* One item of CUDA_VISIBLE_DEVICES. */
struct visible_gpu {
    char name[96]; /* the item as the user wrote it: "2", "GPU-...", "MIG-..." */
    int gpu;       /* index in gpus.gpu; -1 if the item matches no GPU there */
};

struct devices {
    int count;
    struct visible_gpu device[GPUS_MOST];
};

/* Splits a value of CUDA_VISIBLE_DEVICES into its items.  An empty value results in one empty item.
 */
void gpus_items(const struct gpus *gpus, const char *value, struct devices *items);

/* Finds the GPUs that CUDA shows if CUDA_VISIBLE_DEVICES has that value.  If the value is NULL, the
 * variable is unset, and all GPUs are visible.  Like CUDA, stops at the first item that refers to
 * no GPU.  If this machine shows no GPU, accepts all items that are not empty and don't begin with
 * '-'. */
void gpus_visible(const struct gpus *gpus, const char *value, struct devices *visible);

/* Stores the GPUs that --gpus lists in *chosen.  An item is a position in `visible` or a name.
 * Returns 0, or -1 and an error message about the first wrong item. */
int gpus_choose(const struct gpus *gpus, const struct devices *visible, const char *list,
                struct devices *chosen, char *error, size_t size);

#endif
