/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - see machine.h.  PCI's tree is the one of sysfs, where a device's folder lies in that
 * of the bridge before it. */
#include "examples/topology/machine.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Of enum CUdevice_P2PAttribute. */
enum { RANK = 1, ACCESS = 2, ATOMICS = 3, PARTIAL_ATOMICS = 5 };

void must(const struct machine *machine, int result, const char *what)
{
    if (result == DEVICE_OK)
        return;
    fprintf(stderr, "topology: %s: %s\n", what, driver_text(&machine->driver, result));
    exit(1);
}

/* ---- sysfs ----------------------------------------------------------------------------- */

static int first_line(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    const int found = file && fgets(text, (int)size, file);

    if (file)
        fclose(file);
    if (!found)
        *text = '\0';
    text[strcspn(text, "\n")] = '\0';
    return *text != '\0';
}

static int number_in(const char *path, int otherwise)
{
    char text[32];

    return first_line(path, text, sizeof text) ? atoi(text) : otherwise;
}

/* The socket of the node's first processor. */
static int socket_of(const char *sys, int node)
{
    char path[PATH_MAX], text[64];

    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node);
    if (node < 0 || !first_line(path, text, sizeof text))
        return -1;
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/physical_package_id", sys,
             atoi(text));
    return number_in(path, -1);
}

/* "pci0000:17/..." in "/sys/devices/pci0000:17/..."; NULL: it is not in the tree of PCI. */
static const char *host_bridge_in(const char *folder)
{
    const char *at = folder;

    while ((at = strstr(at, "/pci")) != NULL) {
        at++;
        if (isxdigit((unsigned char)at[3]) && strchr(at, ':') == at + 7)
            return at;
    }
    return NULL;
}

static void read_sysfs(struct gpu *gpu, const char *sys)
{
    char folder[PATH_MAX], path[PATH_MAX + 64], speed[24], width[8];
    const char *tree;

    gpu->node = gpu->socket = -1;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, gpu->pci);
    if (!realpath(path, folder))
        return;
    tree = host_bridge_in(folder);
    if (tree)
        snprintf(gpu->path, sizeof gpu->path, "%s", tree);
    snprintf(path, sizeof path, "%s/numa_node", folder);
    gpu->node = number_in(path, -1);
    gpu->socket = socket_of(sys, gpu->node);
    snprintf(path, sizeof path, "%s/current_link_speed", folder);
    if (!first_line(path, speed, sizeof speed))
        return;
    snprintf(path, sizeof path, "%s/current_link_width", folder);
    if (strstr(speed, " PCIe")) /* "32.0 GT/s PCIe"; older kernels leave it out */
        *strstr(speed, " PCIe") = '\0';
    if (first_line(path, width, sizeof width))
        snprintf(gpu->speed, sizeof gpu->speed, "%s x%s", speed, width);
}

static int folders_in(const char *path)
{
    int folders = 1;

    for (; *path; path++)
        folders += *path == '/';
    return folders;
}

/* How many folders both are in, and how many at most are below those: the device's own, too. */
static int common_folders(const char *one, const char *other, int *below)
{
    int common = 0, more[2];

    for (;;) {
        const size_t length = strcspn(one, "/");

        if (one[length] != '/' || strncmp(one, other, length + 1) != 0)
            break;
        one += length + 1;
        other += length + 1;
        common++;
    }
    more[0] = folders_in(one);
    more[1] = folders_in(other);
    *below = more[0] > more[1] ? more[0] : more[1];
    return common;
}

static enum way way_by_pci(const struct gpu *one, const struct gpu *other)
{
    int below, common;

    if (!*one->path || !*other->path)
        return WAY_UNKNOWN;
    common = common_folders(one->path, other->path, &below);
    if (common > 1) /* the host bridge and a switch, whose port is a folder of its own */
        return below <= 2 ? WAY_PIX : WAY_PXB;
    if (common == 1)
        return WAY_PHB;
    if (one->socket >= 0 && other->socket >= 0)
        return one->socket == other->socket ? WAY_NODE : WAY_SYS;
    return one->node == other->node ? WAY_NODE : WAY_SYS;
}

/* ---- The driver ---------------------------------------------------------------------------- */

static int attribute(const struct machine *machine, int which, int from, int to)
{
    int value;

    return machine->driver.p2p_attribute(&value, which, from, to) == DEVICE_OK ? value : 0;
}

static void read_pair(struct machine *machine, int from, int to)
{
    struct between *between = &machine->between[from][to];

    if (from == to) {
        between->way = WAY_SAME;
        return;
    }
    between->way = way_by_pci(&machine->gpu[from], &machine->gpu[to]);
    must(machine, machine->driver.can_access(&between->access, from, to),
         "to ask which GPU reaches which");
    between->access = between->access && attribute(machine, ACCESS, from, to);
    between->atomics = attribute(machine, ATOMICS, from, to);
    between->partial_atomics = attribute(machine, PARTIAL_ATOMICS, from, to);
    between->rank = attribute(machine, RANK, from, to);
}

void machine_read(struct machine *machine, int count, const char *sys)
{
    machine->count = count < GPUS_MOST ? count : GPUS_MOST;
    for (int i = 0; i < machine->count; i++) {
        struct gpu *gpu = &machine->gpu[i];
        const struct driver *driver = &machine->driver;

        *gpu = (struct gpu){ .node = -1 };
        must(machine, driver->device_name(gpu->name, sizeof gpu->name, i), "a GPU's name");
        must(machine, driver->device_pci(gpu->pci, sizeof gpu->pci, i), "a GPU's PCI address");
        for (char *c = gpu->pci; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        must(machine, driver->retain(&gpu->context, i), "to begin with a GPU");
        read_sysfs(gpu, sys); /* awake now: a sleeping GPU's link is slower */
    }
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            read_pair(machine, from, to);
    nvlink_read(machine);
}

/* ---- Words ----------------------------------------------------------------------------------- */

void way_word(const struct between *between, char text[16])
{
    static const char *const word[] = {
#define WAY_WORD(name, word, words) word,
        WAYS(WAY_WORD)
#undef WAY_WORD
    };

    if (between->way == WAY_NVLINK)
        snprintf(text, 16, "NV%d", between->links);
    else
        snprintf(text, 16, "%s", word[between->way]);
}

void way_words(const struct between *between, char text[96])
{
    static const char *const sentence[] = {
#define WAY_SENTENCE(name, word, words) words,
        WAYS(WAY_SENTENCE)
#undef WAY_SENTENCE
    };

    if (between->way == WAY_NVLINK)
        snprintf(text, 96, "%d NVLink%s %s%s", between->links, between->links == 1 ? "" : "s",
                 between->generation, between->by_switch ? " by NVSwitch" : "");
    else
        snprintf(text, 96, "%s", sentence[between->way]);
}
