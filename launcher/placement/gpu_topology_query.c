/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology_query.c - what lies between the GPUs that the workers of this node have.
 *
 * Found out before the first of them starts, and once, however often they are restarted: the
 * driver's library may take a while (it wakes GPUs), and nobody waits for ctrun's loop yet. */
#include "launcher/placement/placement.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* In the order of struct gpus.  One whose address is hidden has no place in PCI's tree. */
static void choose(struct placement *placement)
{
    struct gpu_links *links = &placement->links;
    unsigned char used[GPUS_MOST] = { 0 };

    for (int i = 0; i < placement->size; i++) {
        const struct device *device = placement->place[i].device;

        if (device && device->gpu >= 0)
            used[device->gpu] = 1;
    }
    for (int i = 0; i < placement->gpus.count; i++) {
        if (!used[i] || !*placement->gpus.gpu[i].pci)
            continue;
        if (links->count < LINKED_GPUS_MOST)
            strcpy(links->gpu[links->count++].pci, placement->gpus.gpu[i].pci);
        else
            placement->unlinked++;
    }
}

void place_links(struct placement *placement, const char *root)
{
    char sys[PATH_MAX];

    choose(placement);
    if (placement->links.count < 2) {
        placement->links.count = 0;
        return;
    }
    snprintf(sys, sizeof sys, "%s/sys", root);
    gpu_links_read(&placement->links, sys);
}
