/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - see machine.h.  What CUDA's driver shows; what lies between GPUs is found out as
 * ctrun does it. */
#include "examples/topology/machine.h"

#include <ctype.h>
#include <stdlib.h>

/* Of enum CUdevice_P2PAttribute. */
enum { RANK = 1, ACCESS = 2, ATOMICS = 3, PARTIAL_ATOMICS = 5 };

void must(const struct machine *machine, int result, const char *what)
{
    if (result == DEVICE_OK)
        return;
    fprintf(stderr, "topology: %s: %s\n", what, driver_text(&machine->driver, result));
    exit(1);
}

static int attribute(const struct machine *machine, int which, int from, int to)
{
    int value;

    return machine->driver.p2p_attribute(&value, which, from, to) == DEVICE_OK ? value : 0;
}

static void read_pair(struct machine *machine, int from, int to)
{
    struct peer *peer = &machine->peer[from][to];

    if (from == to)
        return;
    must(machine, machine->driver.can_access(&peer->access, from, to),
         "to ask which GPU reaches which");
    peer->access = peer->access && attribute(machine, ACCESS, from, to);
    peer->atomics = attribute(machine, ATOMICS, from, to);
    peer->partial_atomics = attribute(machine, PARTIAL_ATOMICS, from, to);
    peer->rank = attribute(machine, RANK, from, to);
}

static void begin_with(struct machine *machine, int i)
{
    const struct driver *driver = &machine->driver;
    struct gpu *gpu = &machine->gpu[i];
    char *pci = machine->links.gpu[i].pci;

    must(machine, driver->device_name(gpu->name, sizeof gpu->name, i), "a GPU's name");
    must(machine, driver->device_pci(pci, sizeof machine->links.gpu[i].pci, i),
         "a GPU's PCI address");
    for (; *pci; pci++)
        *pci = (char)tolower((unsigned char)*pci);
    must(machine, driver->retain(&gpu->context, i), "to begin with a GPU");
}

void machine_read(struct machine *machine, int count, const char *sys)
{
    machine->count = machine->links.count = count < GPUS_MOST ? count : GPUS_MOST;
    for (int i = 0; i < machine->count; i++)
        begin_with(machine, i);
    gpu_links_read(&machine->links, sys); /* they are awake now: a sleeping GPU's link is slower */
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            read_pair(machine, from, to);
}
