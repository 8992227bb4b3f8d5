/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_topology_report.c - writes the connections between GPUs as a matrix like that of nvidia-smi
 * topo, or as JSON.
 *
 * GPUs are numbered as in nvidia-smi, in the order of their PCI addresses, and independently of
 * their names in CUDA_VISIBLE_DEVICES.  The line of each GPU ends with the ranks that use the
 * GPU. */
#include "launcher/report/gpu_topology_report.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/placement/placement.h"
#include "runtime/util/json_writer.h"

/* ---- Reading ----------------------------------------------------------------- */

/* ctrun reads the links only once, before the first worker starts, and does not read them again
 * when workers are restarted.  The management library may take a while, since it wakes GPUs, and
 * before the first start nothing waits for ctrun's event loop. */

/* Lists the GPUs that workers use in placement->links, in the order of struct gpus.  Leaves out a
 * GPU with an unknown PCI address, since its place in the PCI tree is not known. */
static void choose(struct placement *placement)
{
    struct gpu_links *links = &placement->links;
    unsigned char used[GPUS_MOST] = { 0 };

    for (int i = 0; i < placement->size; i++) {
        const struct visible_gpu *device = placement->place[i].device;

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

void links_report_read(struct placement *placement, const char *root)
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

/* Returns the index in struct gpus of the GPU links.gpu[i]. */
static int links_number_of(const struct placement *placement, int i)
{
    int number = 0;

    while (strcmp(placement->gpus.gpu[number].pci, placement->links.gpu[i].pci) != 0)
        number++;
    return number;
}

static int uses(const struct placement *placement, int local_rank, int number)
{
    const struct visible_gpu *device = placement->place[local_rank].device;

    return device && device->gpu == number;
}

/* ---- Text ------------------------------------------------------------------------ */

static void add_cell(struct text *out, const char *word)
{
    text_print(out, "%-6s ", word);
}

static void add_label(struct text *out, const struct placement *placement, int i)
{
    char label[24];

    snprintf(label, sizeof label, "GPU%d", links_number_of(placement, i));
    add_cell(out, label);
}

static void links_add_ranks(struct text *out, const struct placement *placement, int i, int base)
{
    const int number = links_number_of(placement, i);
    int said = 0;

    for (int local_rank = 0; local_rank < placement->size; local_rank++)
        if (uses(placement, local_rank, number))
            text_print(out, "%s%d", said++ ? "," : "", base + local_rank);
}

static void add_word(void *to, const char *word, const char *words)
{
    text_print(to, "  %s: %s\n", word, words);
}

void links_report_text(struct text *out, const struct placement *placement, int base,
                       const char *host)
{
    const struct gpu_links *links = &placement->links;

    if (links->count == 0)
        return;
    text_print(out, "Between the GPUs of %s", host);
    if (placement->unlinked)
        text_print(out, " (the first %d of %d)", links->count, links->count + placement->unlinked);
    text_print(out, ":\n");
    add_cell(out, "");
    for (int i = 0; i < links->count; i++)
        add_label(out, placement, i);
    text_print(out, "RANK\n");
    for (int from = 0; from < links->count; from++) {
        add_label(out, placement, from);
        for (int to = 0; to < links->count; to++) {
            char word[16];

            way_word(&links->between[from][to], word);
            add_cell(out, word);
        }
        links_add_ranks(out, placement, from, base);
        text_print(out, "\n");
    }
    gpu_links_legend(links, add_word, out);
    if (!links->nvlinks_known)
        text_print(out, "  NVLinks are not shown: libnvidia-ml.so.1 is missing or does not work\n");
}

/* ---- JSON ------------------------------------------------------------------------ */

static void json_ranks(struct json_text *json, const struct placement *placement, int number,
                       int base)
{
    json_open(json, "ranks", '[');
    for (int local_rank = 0; local_rank < placement->size; local_rank++)
        if (uses(placement, local_rank, number))
            json_number(json, NULL, base + local_rank);
    json_close(json, ']');
}

/* Adds the generation of a GPU's NVLinks, which is the same for all of them, and whether they lead
 * to an NVSwitch. */
static void json_nvlink(struct json_text *json, const struct gpu_links *links, int gpu)
{
    const char *generation = NULL;
    int by_switch = 0;

    for (int to = 0; to < links->count; to++)
        if (links->between[gpu][to].way == WAY_NVLINK) {
            generation = links->between[gpu][to].generation;
            by_switch |= links->between[gpu][to].by_switch;
        }
    json_string(json, "nvlink", generation);
    json_bool(json, "nvswitch", by_switch);
}

static void json_gpus(struct json_text *json, const struct placement *placement, int base)
{
    json_open(json, "gpus", '[');
    for (int i = 0; i < placement->links.count; i++) {
        const int number = links_number_of(placement, i);

        json_open(json, NULL, '{');
        json_number(json, "number", number);
        json_string(json, "pci", placement->links.gpu[i].pci);
        json_ranks(json, placement, number, base);
        json_nvlink(json, &placement->links, i);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_between(struct json_text *json, const struct gpu_links *links)
{
    json_open(json, "between", '[');
    for (int from = 0; from < links->count; from++) {
        json_open(json, NULL, '[');
        for (int to = 0; to < links->count; to++) {
            char word[16];

            way_word(&links->between[from][to], word);
            json_string(json, NULL, word);
        }
        json_close(json, ']');
    }
    json_close(json, ']');
}

void links_report_json(struct text *out, const struct placement *placement, int base,
                       const char *host)
{
    struct json_text json = { .to = out, .gap = "" };

    if (placement->links.count == 0)
        return;
    json_open(&json, NULL, '{');
    json_string(&json, "host", host);
    json_gpus(&json, placement, base);
    json_number(&json, "left_out", placement->unlinked);
    json_bool(&json, "nvlinks_known", placement->links.nvlinks_known);
    json_between(&json, &placement->links);
    json_close(&json, '}');
    text_add(out, "\n", 1);
}
