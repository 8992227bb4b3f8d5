/* SPDX-License-Identifier: Apache-2.0 */
/* nvlink.c - finds NVLinks with libnvidia-ml.so.1.
 *
 * The driver contains this library, but neither the driver nor every toolkit contains its header.
 * So this file has its own copy of the few declarations that it needs.  A link ends at a GPU or at
 * an NVSwitch.  If switches connect two GPUs, the number of links between them is the smaller of
 * the two GPUs' numbers of links.  The library is never unloaded, since it belongs to a driver. */
#include "launcher/placement/gpu_topology.h"

#include <dlfcn.h>
#include <stdio.h>

enum { LINKS_MOST = 18, ENABLED = 1, AT_SWITCH = 2 };

struct nvml_pci {
    char legacy_address[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char address[32];
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_address)(const char *address, void **device);
    int (*state)(void *device, unsigned link, unsigned *enabled);
    int (*version)(void *device, unsigned link, unsigned *version);
    int (*remote_type)(void *device, unsigned link, unsigned *type);
    int (*remote_pci)(void *device, unsigned link, struct nvml_pci *pci);
};

/* Counts the other ends of a GPU's links: at_gpu[i] links end at GPU i, and at_switch links end at
 * NVSwitches. */
struct ends {
    int at_gpu[LINKED_GPUS_MOST], at_switch;
    const char *generation;
};

static int open_library(struct nvml *nvml)
{
    const struct {
        void **function;
        const char *name;
    } places[] = {
        { (void **)&nvml->init, "nvmlInit_v2" },
        { (void **)&nvml->shutdown, "nvmlShutdown" },
        { (void **)&nvml->by_address, "nvmlDeviceGetHandleByPciBusId_v2" },
        { (void **)&nvml->state, "nvmlDeviceGetNvLinkState" },
        { (void **)&nvml->version, "nvmlDeviceGetNvLinkVersion" },
        { (void **)&nvml->remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType" },
        { (void **)&nvml->remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2" },
    };
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof places / sizeof *places; i++)
        if (!(*places[i].function = dlsym(library, places[i].name)))
            return 0;
    return library && nvml->init() == 0;
}

static const char *generation_of(const struct nvml *nvml, void *device, unsigned link)
{
    static const char *const generations[] = {
        "?", "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0", "6.0",
    };
    unsigned version = 0;

    if (nvml->version(device, link, &version) != 0
        || version >= sizeof generations / sizeof *generations)
        version = 0;
    return generations[version];
}

/* Finds the GPU with that PCI address; -1 if it is not in the list. */
static int gpu_at(const struct gpu_links *links, const struct nvml_pci *pci)
{
    for (int i = 0; i < links->count; i++) {
        unsigned domain, bus, device;

        if (sscanf(links->gpu[i].pci, "%x:%x:%x", &domain, &bus, &device) == 3
            && domain == pci->domain && bus == pci->bus && device == pci->device)
            return i;
    }
    return -1;
}

static void read_ends(const struct gpu_links *links, const struct nvml *nvml, int gpu,
                      struct ends *ends)
{
    void *device;

    *ends = (struct ends){ .generation = "?" };
    if (nvml->by_address(links->gpu[gpu].pci, &device) != 0)
        return;
    for (unsigned link = 0; link < LINKS_MOST; link++) {
        struct nvml_pci pci = { .domain = 0 };
        unsigned enabled = 0, type = 0;
        int at;

        if (nvml->state(device, link, &enabled) != 0 || enabled != ENABLED)
            continue;
        ends->generation = generation_of(nvml, device, link);
        if (nvml->remote_type(device, link, &type) == 0 && type == AT_SWITCH)
            ends->at_switch++;
        else if (nvml->remote_pci(device, link, &pci) == 0 && (at = gpu_at(links, &pci)) >= 0)
            ends->at_gpu[at]++;
    }
}

static void connect(struct gpu_links *links, const struct ends *ends, int from, int to)
{
    const int a = ends[from].at_switch, b = ends[to].at_switch;
    const int by_switch = a < b ? a : b, direct = ends[from].at_gpu[to];

    if (from != to && (direct > 0 || by_switch > 0))
        links->between[from][to] = (struct between){ .way = WAY_NVLINK,
                                                     .links = direct > 0 ? direct : by_switch,
                                                     .by_switch = direct == 0,
                                                     .generation = ends[from].generation };
}

void gpu_nvlinks_read(struct gpu_links *links)
{
    struct ends ends[LINKED_GPUS_MOST];
    struct nvml nvml;

    links->nvlinks_known = open_library(&nvml);
    if (!links->nvlinks_known)
        return;
    for (int i = 0; i < links->count; i++)
        read_ends(links, &nvml, i, &ends[i]);
    for (int from = 0; from < links->count; from++)
        for (int to = 0; to < links->count; to++)
            connect(links, ends, from, to);
    nvml.shutdown();
}
