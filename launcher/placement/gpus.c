/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - finds the device files of GPUs, and what the driver and PCI report about the GPUs.
 *
 * The driver's folder in /proc has the address, the UUID and the number of the device file of each
 * GPU.  If that folder is hidden, and there are as many device files as PCI devices, both lists are
 * assumed to be in the same order.
 *
 * CUDA numbers GPUs by speed unless CUDA_DEVICE_ORDER=PCI_BUS_ID.  For GPUs of one model, both
 * orders equal the order of PCI addresses, which this file assumes. */
#include "launcher/placement/gpus.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/placement/sysfs.h"

static int all_digits(const char *text)
{
    if (!*text)
        return 0;
    while (isdigit((unsigned char)*text))
        text++;
    return !*text;
}

/* Reads the value after "name:" from a file of such lines.  Returns 0, or -1 if the file has no
 * such line. */
static int described(const char *path, const char *name, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[256];
    int found = 0;

    *value = '\0';
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');

        if (!colon || strncmp(line, name, strlen(name)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = 1;
    }
    if (file)
        fclose(file);
    return found ? 0 : -1;
}

static void read_node(struct gpu *gpu, const char *root)
{
    char text[32];

    gpu->node = -1;
    if (*gpu->pci
        && sysfs_line(text, sizeof text, "%s/sys/bus/pci/devices/%s/numa_node", root, gpu->pci)
               == 0)
        gpu->node = atoi(text);
}

static int has_file(const char *root, int minor)
{
    char path[300];

    snprintf(path, sizeof path, "%s/dev/nvidia%d", root, minor);
    return access(path, F_OK) == 0;
}

static void by_driver(struct gpus *gpus, const char *root)
{
    char path[600], minor[32];
    DIR *folder;

    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    folder = opendir(path);
    for (const struct dirent *entry;
         folder && gpus->count < GPUS_MOST && (entry = readdir(folder));) {
        struct gpu *gpu = &gpus->gpu[gpus->count];

        snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root,
                 entry->d_name);
        if (*entry->d_name == '.' || described(path, "Device Minor", minor, sizeof minor) < 0
            || !has_file(root, atoi(minor)))
            continue;
        *gpu = (struct gpu){ .minor = atoi(minor) };
        if (described(path, "Bus Location", gpu->pci, sizeof gpu->pci) < 0)
            snprintf(gpu->pci, sizeof gpu->pci, "%.*s", (int)sizeof gpu->pci - 1, entry->d_name);
        for (char *c = gpu->pci; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (described(path, "GPU UUID", gpu->uuid, sizeof gpu->uuid) < 0
            || strncmp(gpu->uuid, "GPU-", 4) != 0 || strchr(gpu->uuid, '?'))
            *gpu->uuid = '\0'; /* the driver writes "GPU-????" for a GPU that is not awake yet */
        gpus->count++;
    }
    if (folder)
        closedir(folder);
}

static int by_address(const void *a, const void *b)
{
    const struct gpu *left = a, *right = b;
    const int order = strcmp(left->pci, right->pci);

    return order ? order : left->minor - right->minor;
}

static void by_device_files(struct gpus *gpus, const char *root)
{
    char path[300];
    DIR *folder;

    snprintf(path, sizeof path, "%s/dev", root);
    folder = opendir(path);
    for (const struct dirent *entry;
         folder && gpus->count < GPUS_MOST && (entry = readdir(folder));)
        if (!strncmp(entry->d_name, "nvidia", 6) && all_digits(entry->d_name + 6))
            gpus->gpu[gpus->count++] = (struct gpu){ .minor = atoi(entry->d_name + 6) };
    if (folder)
        closedir(folder);
    qsort(gpus->gpu, (size_t)gpus->count, sizeof *gpus->gpu, by_address);
}

/* Returns 1 if the device is a display or 3D controller of NVIDIA.  The sound and USB functions of
 * a GPU have other classes. */
static int is_nvidia_gpu(const char *root, const char *address)
{
    char text[32];

    return sysfs_line(text, sizeof text, "%s/sys/bus/pci/devices/%s/vendor", root, address) == 0
           && !strcmp(text, "0x10de")
           && sysfs_line(text, sizeof text, "%s/sys/bus/pci/devices/%s/class", root, address) == 0
           && (!strncmp(text, "0x0300", 6) || !strncmp(text, "0x0302", 6));
}

static void add_addresses(struct gpus *gpus, const char *root)
{
    struct gpus found = { 0 };
    char path[300];
    DIR *folder;

    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", root);
    folder = opendir(path);
    for (const struct dirent *entry;
         folder && found.count < GPUS_MOST && (entry = readdir(folder));)
        if (strlen(entry->d_name) < sizeof found.gpu[0].pci && *entry->d_name != '.'
            && is_nvidia_gpu(root, entry->d_name))
            strcpy(found.gpu[found.count++].pci, entry->d_name);
    if (folder)
        closedir(folder);
    qsort(found.gpu, (size_t)found.count, sizeof *found.gpu, by_address);
    for (int i = 0; found.count == gpus->count && i < gpus->count; i++)
        strcpy(gpus->gpu[i].pci, found.gpu[i].pci);
}

void gpus_read(struct gpus *gpus, const char *root)
{
    *gpus = (struct gpus){ 0 };
    by_driver(gpus, root);
    if (gpus->count == 0) {
        by_device_files(gpus, root);
        if (gpus->count > 0)
            add_addresses(gpus, root);
    }
    qsort(gpus->gpu, (size_t)gpus->count, sizeof *gpus->gpu, by_address);
    for (int i = 0; i < gpus->count; i++)
        read_node(&gpus->gpu[i], root);
}

/* ---- Items --------------------------------------------------------------------- */

static int gpus_is_name(const char *item)
{
    return !strncmp(item, "GPU-", 4) || !strncmp(item, "MIG-", 4);
}

/* Finds the GPU with a UUID that begins with item.  Returns -1 if no GPU or more than one GPU
 * matches. */
static int by_uuid(const struct gpus *gpus, const char *item)
{
    int found = -1;

    for (int i = 0; i < gpus->count; i++)
        if (!strncmp(gpus->gpu[i].uuid, item, strlen(item))) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

static int uuids_are_known(const struct gpus *gpus)
{
    for (int i = 0; i < gpus->count; i++)
        if (!*gpus->gpu[i].uuid)
            return 0;
    return gpus->count > 0;
}

/* Copies the item at *text, without spaces around it, to name.  Moves *text past the comma after
 * the item. */
static void take_item(const char **text, char *name, size_t size)
{
    const char *start = *text + strspn(*text, " \t");
    size_t length = strcspn(start, ",");

    *text = start + length + (start[length] == ',');
    while (length > 0 && isspace((unsigned char)start[length - 1]))
        length--;
    snprintf(name, size, "%.*s", (int)length, start);
}

/* Returns 0 if the item may refer to a GPU or a part of a GPU, or -1 if it refers to no existing
 * device.  Sets device->gpu to the index of the GPU, or to -1 if the index is not known. */
static int find_device(const struct gpus *gpus, struct visible_gpu *device)
{
    device->gpu = -1;
    if (gpus_is_name(device->name)) {
        device->gpu = by_uuid(gpus, device->name);
        return device->gpu >= 0 || *device->name == 'M' || !uuids_are_known(gpus) ? 0 : -1;
    }
    if (!all_digits(device->name))
        return gpus->count == 0 && *device->name && *device->name != '-' ? 0 : -1;
    if (gpus->count > 0) {
        const long number = strtol(device->name, NULL, 10);

        device->gpu = number < gpus->count ? (int)number : -1;
        return device->gpu < 0 ? -1 : 0;
    }
    return 0;
}

void gpus_items(const struct gpus *gpus, const char *value, struct devices *items)
{
    int more = 1;

    *items = (struct devices){ 0 };
    while (more && items->count < GPUS_MOST) {
        struct visible_gpu *device = &items->device[items->count++];

        more = strchr(value, ',') != NULL;
        take_item(&value, device->name, sizeof device->name);
        find_device(gpus, device);
    }
}

void gpus_visible(const struct gpus *gpus, const char *value, struct devices *visible)
{
    int valid = 0;

    *visible = (struct devices){ 0 };
    if (value) {
        gpus_items(gpus, value, visible);
        while (valid < visible->count && find_device(gpus, &visible->device[valid]) == 0)
            valid++;
        visible->count = valid;
        return;
    }
    for (int i = 0; i < gpus->count; i++) {
        snprintf(visible->device[i].name, sizeof visible->device[i].name, "%d", i);
        visible->device[i].gpu = i;
    }
    visible->count = gpus->count;
}

/* Returns the position in `visible` of the GPU that an item of --gpus refers to; -1 if that GPU is
 * not visible. */
static int position_of(const struct gpus *gpus, const struct devices *visible, const char *item)
{
    const int gpu = gpus_is_name(item) ? by_uuid(gpus, item) : -1;

    if (all_digits(item)) {
        const long number = strtol(item, NULL, 10);

        return number < visible->count ? (int)number : -1;
    }
    for (int i = 0; i < visible->count; i++)
        if (!strcmp(visible->device[i].name, item)
            || (gpu >= 0 && visible->device[i].gpu == gpu && gpus_is_name(item)))
            return i;
    return -1;
}

int gpus_choose(const struct gpus *gpus, const struct devices *visible, const char *list,
                struct devices *chosen, char *error, size_t size)
{
    unsigned char taken[GPUS_MOST] = { 0 };

    *chosen = (struct devices){ 0 };
    while (*list) {
        struct visible_gpu item;
        int position;

        take_item(&list, item.name, sizeof item.name);
        position = position_of(gpus, visible, item.name);
        /* A MIG device, a part of a GPU, is not in the list of visible GPUs. */
        if (position < 0 && !strncmp(item.name, "MIG-", 4) && find_device(gpus, &item) == 0
            && chosen->count < GPUS_MOST) {
            chosen->device[chosen->count++] = item;
            continue;
        }
        if (position < 0) {
            snprintf(error, size, "--gpus: there is no GPU %s here: %d %s visible", item.name,
                     visible->count, visible->count == 1 ? "is" : "are");
            return -1;
        }
        if (taken[position]++) {
            snprintf(error, size, "--gpus: GPU %s is named twice", item.name);
            return -1;
        }
        chosen->device[chosen->count++] = visible->device[position];
    }
    return 0;
}
