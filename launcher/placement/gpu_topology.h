/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology.h - finds the connections between the GPUs of a host.  sysfs shows the PCI tree and
 * the sockets, and the driver's management library shows NVLinks.  CUDA is not loaded.
 *
 * ctrun --report and examples/topology print the connections.  The example builds with
 * gpu_topology.c, nvlink.c and sysfs.c alone, so these files must not need any other file of ctrun.
 */
#ifndef LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H
#define LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H

#include <stddef.h>

enum { LINKED_GPUS_MOST = 16 };

/* The kinds of connections between two GPUs, the nearest first, with the abbreviations of
 * nvidia-smi topo. */
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
    /* for WAY_NVLINK, links is the number of links, and by_switch is 1 if they go to an NVSwitch */
    int links, by_switch;
    /* for WAY_NVLINK, the version of NVLink, such as "4.0"; "?" if unknown */
    const char *generation;
};

struct linked_gpu {
    char pci[24]; /* PCI address in lower case, "0000:1b:00.0" */
    /* path in sysfs from the host bridge on, "pci0000:17/0000:17:01.0/0000:1b:00.0"; "" if unknown
     */
    char path[256];
    /* speed of the PCIe link, "32.0 GT/s x16", lower while the GPU sleeps; "" if unknown */
    char speed[40];
    int node, socket; /* NUMA node and processor socket of the GPU; -1 if unknown */
};

struct gpu_links {
    int count, nvlinks_known; /* nvlinks_known is 1 if the management library could be used */
    struct linked_gpu gpu[LINKED_GPUS_MOST];
    struct between between[LINKED_GPUS_MOST][LINKED_GPUS_MOST]; /* [from][to] */
};

/* Finds the connections between links->count GPUs, which have the PCI addresses links->gpu[].pci.
 * `sys` is "/sys", or a copy from another machine. */
void gpu_links_read(struct gpu_links *links, const char *sys);

/* way_word() writes the abbreviation, "NV18" or "PIX".  way_words() writes a description. */
void way_word(const struct between *between, char text[16]);
void way_words(const struct between *between, char text[96]);

/* Calls say() for each abbreviation that occurs.  If an abbreviation means several kinds of
 * NVLinks, calls say() for each kind. */
void gpu_links_legend(const struct gpu_links *links,
                      void (*say)(void *to, const char *word, const char *words), void *to);

/* ---- nvlink.c ---- */

/* Sets links->between for pairs of GPUs that are connected by NVLinks, and does not change other
 * pairs. */
void gpu_nvlinks_read(struct gpu_links *links);

#endif
