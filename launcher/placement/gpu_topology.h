/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology.h - finds what is between the GPUs of a host: PCI's tree and the sockets from sysfs,
 * NVLinks from the driver's management library.  CUDA is not loaded.
 *
 * ctrun --report and examples/topology show it.  The example builds with gpu_topology.c, nvlink.c
 * and sysfs.c alone, so these need no other file of ctrun. */
#ifndef LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H
#define LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H

#include <stddef.h>

enum { LINKED_GPUS_MOST = 16 };

/* The ways between two GPUs, the nearest first, in the words of nvidia-smi topo. */
#define WAYS(X)                                             \
    X(SAME, "X", "itself")                                  \
    X(NVLINK, "NV", "NVLink")                               \
    X(PIX, "PIX", "one PCIe switch")                        \
    X(PXB, "PXB", "several PCIe switches")                  \
    X(PHB, "PHB", "a PCIe host bridge (the processor)")     \
    X(NODE, "NODE", "two host bridges of one socket")       \
    X(SYS, "SYS", "the link between the processor sockets") \
    X(UNKNOWN, "?", "something that sysfs does not show")

enum way {
#define WAY_ENUM(name, word, words) WAY_##name,
    WAYS(WAY_ENUM)
#undef WAY_ENUM
};

struct between {
    enum way way;
    int links, by_switch;   /* NVLINK: number of links; 1: they go to an NVSwitch */
    const char *generation; /* NVLINK: "4.0"; "?": unknown */
};

struct linked_gpu {
    char pci[24];   /* "0000:1b:00.0", lower case */
    char path[256]; /* from the host bridge on: "pci0000:17/0000:17:01.0/0000:1b:00.0"; "": unknown
                     */
    char speed[40]; /* "32.0 GT/s x16", of its PCIe link; lower while it sleeps; "": unknown */
    int node, socket; /* -1: unknown */
};

struct gpu_links {
    int count, nvlinks_known; /* nvlinks_known: the library answered */
    struct linked_gpu gpu[LINKED_GPUS_MOST];
    struct between between[LINKED_GPUS_MOST][LINKED_GPUS_MOST]; /* [from][to] */
};

/* Reads what is between the GPUs with the addresses gpu[].pci, count of them.  sys: "/sys", or a
 * copy from another machine. */
void gpu_links_read(struct gpu_links *links, const char *sys);

/* Writes the short word, "NV18" or "PIX"; way_words() writes a description. */
void way_word(const struct between *between, char text[16]);
void way_words(const struct between *between, char text[96]);

/* Calls say() for each word that occurs.  A word that means several kinds of NVLinks gets a call
 * for each kind. */
void gpu_links_legend(const struct gpu_links *links,
                      void (*say)(void *to, const char *word, const char *words), void *to);

/* ---- nvlink.c ---- */

/* Fills in the pairs that have NVLinks between them, and leaves the others. */
void gpu_nvlinks_read(struct gpu_links *links);

#endif
