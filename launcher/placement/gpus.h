/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.h - the GPUs of this machine and those that CUDA would show a worker,
 * without loading CUDA, which would cost half a second and a context. */
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

/* In CUDA's order for equal GPUs, that of PCI addresses. */
struct gpus {
    int count;
    struct gpu gpu[GPUS_MOST];
};

/* root: "" for this machine.  A GPU counts if its device file is there: in a
 * container the driver lists those of others too. */
void gpus_read(struct gpus *gpus, const char *root);

/* One item of CUDA_VISIBLE_DEVICES. */
struct visible_gpu {
    char name[96]; /* as it is written: "2", "GPU-...", "MIG-..." */
    int gpu;       /* index in struct gpus; -1: not among those, or none was found */
};

struct devices {
    int count;
    struct visible_gpu device[GPUS_MOST];
};

/* The items of a value of CUDA_VISIBLE_DEVICES as they are written; one empty item in "". */
void gpus_items(const struct gpus *gpus, const char *value, struct devices *items);

/* What CUDA shows under that value (NULL: unset; "": nothing).  It stops at the first
 * item that names nothing.  Where no GPU was found all items are taken as they are. */
void gpus_visible(const struct gpus *gpus, const char *value, struct devices *visible);

/* Puts the GPUs that --gpus lists, by their position in `visible` or by name, into *chosen.
 * -1: error names the first item that is wrong. */
int gpus_choose(const struct gpus *gpus, const struct devices *visible, const char *list,
                struct devices *chosen, char *error, size_t size);

#endif
