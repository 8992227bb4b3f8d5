/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology.c - finds the connections between GPUs.  sysfs shows the PCI tree: the folder of a
 * device is inside the folder of the bridge that connects the device.  NVLinks, which nvlink.c
 * finds, take precedence over PCI. */
#include "launcher/placement/gpu_topology.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/placement/sysfs.h"

/* ---- sysfs ----------------------------------------------------------------------------- */

/* Returns the socket of the node's first processor; -1 if unknown. */
static int gpu_topology_socket_of(const char *sys, int node)
{
    char cpus[64], socket[16];

    if (node < 0
        || sysfs_line(cpus, sizeof cpus, "%s/devices/system/node/node%d/cpulist", sys, node) < 0
        || sysfs_line(socket, sizeof socket,
                      "%s/devices/system/cpu/cpu%d/topology/physical_package_id", sys, atoi(cpus))
               < 0)
        return -1;
    return atoi(socket);
}

/* Returns the part of the path from the host bridge on, such as "pci0000:17/..." in
 * "/sys/devices/pci0000:17/...".  Returns NULL if the folder is not in the PCI tree. */
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

static void read_speed(struct linked_gpu *gpu, const char *folder)
{
    char speed[24], width[8];

    if (sysfs_line(speed, sizeof speed, "%s/current_link_speed", folder) < 0)
        return;
    if (strstr(speed, " PCIe")) /* older kernels omit " PCIe" */
        *strstr(speed, " PCIe") = '\0';
    if (sysfs_line(width, sizeof width, "%s/current_link_width", folder) == 0)
        snprintf(gpu->speed, sizeof gpu->speed, "%s x%s", speed, width);
}

static void read_sysfs(struct linked_gpu *gpu, const char *sys)
{
    char folder[PATH_MAX], path[PATH_MAX + 64], node[16];
    const char *tree;

    *gpu->path = *gpu->speed = '\0';
    gpu->node = gpu->socket = -1;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, gpu->pci);
    if (!realpath(path, folder))
        return;
    tree = host_bridge_in(folder);
    if (tree)
        snprintf(gpu->path, sizeof gpu->path, "%s", tree);
    if (sysfs_line(node, sizeof node, "%s/numa_node", folder) == 0)
        gpu->node = atoi(node);
    gpu->socket = gpu_topology_socket_of(sys, gpu->node);
    read_speed(gpu, folder);
}

/* ---- Between two ------------------------------------------------------------------------ */

static int folders_in(const char *path)
{
    int folders = 1;

    for (; *path; path++)
        folders += *path == '/';
    return folders;
}

/* Returns the number of leading folders that both paths share.  Sets *below to the number of
 * folders in the longer rest, including the device's own folder. */
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

static enum way way_by_pci(const struct linked_gpu *one, const struct linked_gpu *other)
{
    int below, common;

    if (!*one->path || !*other->path)
        return WAY_UNKNOWN;
    common = common_folders(one->path, other->path, &below);
    /* the paths share the host bridge and a switch; a port of a switch is a folder, too */
    if (common > 1)
        return below <= 2 ? WAY_PIX : WAY_PXB;
    if (common == 1)
        return WAY_PHB;
    if (one->socket >= 0 && other->socket >= 0)
        return one->socket == other->socket ? WAY_NODE : WAY_SYS;
    return one->node == other->node ? WAY_NODE : WAY_SYS;
}

void gpu_links_read(struct gpu_links *links, const char *sys)
{
    for (int i = 0; i < links->count; i++)
        read_sysfs(&links->gpu[i], sys);
    for (int from = 0; from < links->count; from++)
        for (int to = 0; to < links->count; to++)
            links->between[from][to] = (struct between){
                .way = from == to ? WAY_SAME : way_by_pci(&links->gpu[from], &links->gpu[to]),
            };
    gpu_nvlinks_read(links);
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

static int are_alike(const struct between *one, const struct between *other)
{
    return one->way == other->way
           && (one->way != WAY_NVLINK
               || (one->links == other->links && one->by_switch == other->by_switch
                   && !strcmp(one->generation, other->generation)));
}

void gpu_links_legend(const struct gpu_links *links,
                      void (*say)(void *to, const char *word, const char *words), void *to)
{
    const struct between *said[LINKED_GPUS_MOST * LINKED_GPUS_MOST];
    int count = 0;

    for (int i = 0; i < links->count * links->count; i++) {
        const struct between *between = &links->between[i / links->count][i % links->count];
        char word[16], words[96];
        int before = 0;

        while (before < count && !are_alike(said[before], between))
            before++;
        if (before < count || between->way == WAY_SAME)
            continue;
        said[count++] = between;
        way_word(between, word);
        way_words(between, words);
        say(to, word, words);
    }
}
