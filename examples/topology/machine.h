/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - the GPUs of this machine, and what lies between two of them. */
#ifndef TOPOLOGY_MACHINE_H
#define TOPOLOGY_MACHINE_H

#include "examples/device.h"
#include "launcher/placement/gpu_topology.h"

enum { GPUS_MOST = LINKED_GPUS_MOST };

struct gpu {
    device_context context;
    char name[64];
};

/* The driver's peer-to-peer attributes. */
struct peer {
    int access, atomics, partial_atomics, rank;
};

struct machine {
    struct driver driver;
    int count;
    struct gpu gpu[GPUS_MOST];
    struct gpu_links links;
    struct peer peer[GPUS_MOST][GPUS_MOST]; /* [from][to] */
};

/* The GPUs that the driver shows, at most GPUS_MOST; sys: "/sys", or a copy of another machine's.
 */
void machine_read(struct machine *machine, int count, const char *sys);

/* Ends the program with a sentence unless the driver's call went well. */
void must(const struct machine *machine, int result, const char *what);

#endif
