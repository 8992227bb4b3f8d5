/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - the GPUs of this machine, and what lies between two of them. */
#ifndef TOPOLOGY_MACHINE_H
#define TOPOLOGY_MACHINE_H

#include <stdint.h>

#include "examples/device.h"

enum { GPUS_MOST = 16 };

struct gpu {
    device_context context;
    char name[64];
    char pci[24];   /* "0000:1b:00.0", lower case */
    char path[256]; /* from the host bridge on: "pci0000:17/0000:17:01.0/0000:1b:00.0"; "": unknown
                     */
    char speed[40]; /* of its PCIe link: "32.0 GT/s x16"; "": unknown */
    int node, socket; /* -1: unknown */
};

/* What is between two GPUs, the nearest first: the words of nvidia-smi topo. */
#define WAYS(X)                                             \
    X(SAME, "-", "nothing")                                 \
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
    int links, by_switch;                       /* NVLINK: how many, and whether to an NVSwitch */
    const char *generation;                     /* NVLINK: "4.0"; "?": unknown */
    int access, atomics, partial_atomics, rank; /* the driver's peer-to-peer attributes */
};

struct machine {
    struct driver driver;
    int count;
    struct gpu gpu[GPUS_MOST];
    struct between between[GPUS_MOST][GPUS_MOST]; /* [from][to] */
};

/* The GPUs that the driver shows, at most GPUS_MOST; sys: "/sys", or a copy of another machine's.
 */
void machine_read(struct machine *machine, int count, const char *sys);

/* Ends the program with a sentence unless the driver's call went well. */
void must(const struct machine *machine, int result, const char *what);

/* "NV18", "PIX"; and in words. */
void way_word(const struct between *between, char text[16]);
void way_words(const struct between *between, char text[96]);

/* ---- nvlink.c ---- */

/* Those pairs between which the driver's management library sees NVLinks; without it none. */
void nvlink_read(struct machine *machine);

#endif
