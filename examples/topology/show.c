/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - see show.h. */
#include "examples/topology/show.h"

#include <math.h>

const char *const kind_titles[KINDS_COUNT] = {
#define KIND_TITLE(name, title) title,
    KINDS(KIND_TITLE)
#undef KIND_TITLE
};

void cell_text(double value, char text[16])
{
    if (isnan(value))
        snprintf(text, 16, "-");
    else if (value < 0)
        snprintf(text, 16, "WRONG");
    else
        snprintf(text, 16, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
}

static void show_columns(const struct machine *machine, const char *title)
{
    printf("\n%s\n     ", title);
    for (int to = 0; to < machine->count; to++)
        printf("%8d", to);
    printf("\n");
}

static void show_number(int number)
{
    if (number >= 0)
        printf("%6d", number);
    else
        printf("%6s", "?");
}

static void show_ways(const struct machine *machine)
{
    show_columns(machine, "What lies between the GPU of a row and that of a column");
    for (int from = 0; from < machine->count; from++) {
        printf("%5d", from);
        for (int to = 0; to < machine->count; to++) {
            char word[16];

            way_word(&machine->links.between[from][to], word);
            printf("%8s", word);
        }
        printf("\n");
    }
}

static void show_word(void *to, const char *word, const char *words)
{
    fprintf(to, "     %s: %s\n", word, words);
}

static void show_attributes(const struct machine *machine)
{
    show_columns(machine, "Peer access of the row's GPU to the column's (D: direct, A: atomics, "
                          "a: some of them; performance rank)");
    for (int from = 0; from < machine->count; from++) {
        printf("%5d", from);
        for (int to = 0; to < machine->count; to++) {
            const struct peer *p = &machine->peer[from][to];
            char text[16];

            snprintf(text, sizeof text, "D%s%d",
                     p->atomics           ? "A"
                     : p->partial_atomics ? "a"
                                          : "",
                     p->rank);
            printf("%8s", from == to ? "-" : p->access ? text : "none");
        }
        printf("\n");
    }
}

void show_machine(const struct machine *machine)
{
    printf("%d GPU%s\n  GPU  %-28s%-14s%-17s  node socket\n", machine->count,
           machine->count == 1 ? "" : "s", "name", "PCI address", "its PCIe link");
    for (int i = 0; i < machine->count; i++) {
        const struct linked_gpu *gpu = &machine->links.gpu[i];

        printf("%5d  %-28s%-14s%-17s", i, machine->gpu[i].name, gpu->pci,
               *gpu->speed ? gpu->speed : "?");
        show_number(gpu->node);
        show_number(gpu->socket);
        printf("\n");
    }
    if (machine->count == 1)
        return;
    show_ways(machine);
    gpu_links_legend(&machine->links, show_word, stdout);
    if (!machine->links.nvlinks_known)
        printf("     NVLinks are not shown: libnvidia-ml.so.1 is missing or does not work\n");
    show_attributes(machine);
}

int kind_is_measured(const struct machine *machine, const struct measured *measured, int kind)
{
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            if (!isnan(measured->value[kind][from][to]))
                return 1;
    return 0;
}

/* The better of the two, peer access on or off. */
static double best_way(const struct measured *measured, int from, int to)
{
    return fmax(measured->value[ONE_WAY][from][to], measured->value[ONE_WAY_OFF][from][to]);
}

/* Those that have less than half of what the pair in the middle has. */
static void show_outliers(const struct machine *machine, const struct measured *measured)
{
    double values[GPUS_MOST * GPUS_MOST], middle;
    int count = 0, slow = 0;

    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            if (from != to)
                values[count++] = best_way(measured, from, to);
    middle = median(values, count);
    printf("\n");
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++)
            if (from != to && best_way(measured, from, to) < middle / 2) {
                printf("%s%d -> %d", slow++ ? ", " : "Slow: ", from, to);
            }
    if (slow)
        printf("; less than half of the middle, %.3g GB/s.\n", middle);
    else
        printf("No pair has less than half of the middle, %.3g GB/s.\n", middle);
}

static void show_one(const struct measured *measured)
{
    const double rate = measured->value[ONE_WAY][0][0], small = measured->value[LATENCY][0][0];
    char text[16];

    printf("\nThere is one GPU, so what can be measured are copies within its memory:\n");
    cell_text(rate, text);
    printf("  %s GB/s copied, %.4g GB/s read and written", text, 2 * rate);
    cell_text(small, text);
    printf("; %s us for 16 bytes\n", text);
}

void show_measured(const struct machine *machine, const struct measured *measured)
{
    if (machine->count == 1) {
        show_one(measured);
        return;
    }
    for (int kind = 0; kind < KINDS_COUNT; kind++) {
        if (!kind_is_measured(machine, measured, kind))
            continue;
        show_columns(machine, kind_titles[kind]);
        for (int from = 0; from < machine->count; from++) {
            printf("%5d", from);
            for (int to = 0; to < machine->count; to++) {
                char text[16];

                cell_text(measured->value[kind][from][to], text);
                printf("%8s", text);
            }
            printf("\n");
        }
    }
    show_outliers(machine, measured);
}
