/* SPDX-License-Identifier: Apache-2.0 */
/* libnvml.c - of NVIDIA's management library what launcher/placement/nvlink.c asks.
 *
 *   FAKE_NVML_LINKS=0-1:2,2-s:6   2 links between the fake driver's GPUs 0 and 1, 6 of GPU 2 to
 *                                 switches (without it: none)
 *   FAKE_NVML_VERSION=v           of each link, a value of nvmlNvlinkVersion_t (6, which is 4.0)
 *
 * A GPU's links have numbers in the order of the list; between them and after them are some that
 * are not in use.  The declarations are nvml.h's, which is not part of every toolkit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVML __attribute__((visibility("default")))

enum { GPUS = 16, LINKS = 18, TO_SWITCH = -2, NOBODY = -1 };
enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TYPE_GPU = 0, TYPE_SWITCH = 2 };

typedef struct nvmlDevice_st {
    int number;
    int remote[LINKS]; /* a GPU, TO_SWITCH or NOBODY */
} * nvmlDevice_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

static struct nvmlDevice_st devices[GPUS];

static void add_links(int gpu, int remote, int count)
{
    for (int link = 1; link < LINKS && count > 0; link++) /* link 0 is never in use */
        if (devices[gpu].remote[link] == NOBODY) {
            devices[gpu].remote[link] = remote;
            count--;
        }
}

NVML int nvmlInit_v2(void);
NVML int nvmlInit_v2(void)
{
    const char *list = getenv("FAKE_NVML_LINKS");

    for (int gpu = 0; gpu < GPUS; gpu++) {
        devices[gpu].number = gpu;
        for (int link = 0; link < LINKS; link++)
            devices[gpu].remote[link] = NOBODY;
    }
    while (list && *list) {
        int one, other, count;

        if (sscanf(list, "%d-s:%d", &one, &count) == 2) {
            add_links(one, TO_SWITCH, count);
        } else if (sscanf(list, "%d-%d:%d", &one, &other, &count) == 3) {
            add_links(one, other, count);
            add_links(other, one, count);
        }
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return SUCCESS;
}

NVML int nvmlShutdown(void);
NVML int nvmlShutdown(void)
{
    return SUCCESS;
}

/* As tests/fake/libcuda_peers.c numbers them. */
NVML int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device);
NVML int nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned domain, bus;

    if (sscanf(address, "%x:%x:", &domain, &bus) != 2 || domain || bus < 1 || bus > GPUS)
        return NOT_FOUND;
    *device = &devices[bus - 1];
    return SUCCESS;
}

NVML int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *enabled);
NVML int nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *enabled)
{
    if (link >= LINKS)
        return INVALID;
    *enabled = device->remote[link] != NOBODY;
    return SUCCESS;
}

NVML int nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *version);
NVML int nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *version)
{
    const char *value = getenv("FAKE_NVML_VERSION");

    if (link >= LINKS || device->remote[link] == NOBODY)
        return NOT_SUPPORTED;
    *version = value ? (unsigned)atoi(value) : 6;
    return SUCCESS;
}

NVML int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned *type);
NVML int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned *type)
{
    if (link >= LINKS || device->remote[link] == NOBODY)
        return NOT_SUPPORTED;
    *type = device->remote[link] == TO_SWITCH ? TYPE_SWITCH : TYPE_GPU;
    return SUCCESS;
}

NVML int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                             nvmlPciInfo_t *pci);
NVML int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
    if (link >= LINKS || device->remote[link] == NOBODY)
        return NOT_SUPPORTED;
    memset(pci, 0, sizeof *pci);
    pci->bus = device->remote[link] == TO_SWITCH ? 0xf0 : (unsigned)device->remote[link] + 1;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    return SUCCESS;
}
