/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology.h - what lies between the GPUs of a host: PCI's tree and the sockets as sysfs shows
 * them, NVLinks as the driver's management library does.  CUDA is not loaded.
 *
 * ctrun --report and examples/topology say it: so gpu_topology.c and nvlink.c need no other file of
 * ctrun's than sysfs.c. */
#ifndef LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H
#define LAUNCHER_PLACEMENT_GPU_TOPOLOGY_H

#include <stddef.h>

enum { LINKED_GPUS_MOST = 16 };

/* What is between two GPUs, the nearest first: the words of nvidia-smi topo. */
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
    int links, by_switch;   /* NVLINK: how many, and whether to an NVSwitch */
    const char *generation; /* NVLINK: "4.0"; "?": unknown */
};

struct linked_gpu {
    char pci[24];   /* "0000:1b:00.0", lower case */
    char path[256]; /* from the host bridge on: "pci0000:17/0000:17:01.0/0000:1b:00.0"; "": unknown
                     */
    char speed[40]; /* of its PCIe link, now: asleep it is slower.  "32.0 GT/s x16"; "": unknown */
    int node, socket; /* -1: unknown */
};

struct gpu_links {
    int count, nvlinks_known; /* known: the library was asked */
    struct linked_gpu gpu[LINKED_GPUS_MOST];
    struct between between[LINKED_GPUS_MOST][LINKED_GPUS_MOST]; /* [from][to] */
};

/* Of count GPUs whose addresses are in gpu[].pci.  sys: "/sys", or a copy of another machine's. */
void gpu_links_read(struct gpu_links *links, const char *sys);

/* "NV18", "PIX"; and in words. */
void way_word(const struct between *between, char text[16]);
void way_words(const struct between *between, char text[96]);

/* Calls say() for each word that occurs, and again where it means another kind of NVLinks. */
void gpu_links_legend(const struct gpu_links *links,
                      void (*say)(void *to, const char *word, const char *words), void *to);

/* ---- nvlink.c ---- */

/* The pairs between which there are NVLinks; the others stay as they are. */
void gpu_nvlinks_read(struct gpu_links *links);

#endif
