/* SPDX-License-Identifier: Apache-2.0 */
/* placement_report.c - reports where each worker runs.
 *
 * The report shows the CPUs that the kernel lets the worker use, which may differ from the CPUs
 * that ctrun asked for.  The GPU is number LOCAL_RANK in the worker's list of GPUs, which most
 * programs use.  The transport is the one that libct would choose.  Other libraries choose by
 * themselves. */
#include "launcher/report/placement_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/report/gpu_topology_report.h"
#include "runtime/util/json_writer.h"

/* ---- Facts ----------------------------------------------------------------------- */

static void nodes_of(const struct topology *topology, const struct cpus *cpus, char *text)
{
    struct cpus nodes = { { 0 } };

    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
        if (cpus_has(&topology->allowed, cpu))
            cpus_add(&nodes, topology->cpu[cpu].node);
    cpus_write(&nodes, text);
}

/* Returns the transport that libct would choose, which is the value of CT_LINK if that is set, else
 * shared memory within a host and TCP between hosts. */
static const char *transport_of(const struct worker_env *env)
{
    const struct round *round = env->round;
    const char *link = worker_env_get(env, "CT_LINK");

    if (round->world == 1)
        return "none";
    if (link && *link)
        return link;
    return round->size == round->world ? "shm" : round->size == 1 ? "tcp" : "shm+tcp";
}

static void fill_row(struct place_row *row, const struct worker *worker,
                     const struct worker_env *env, const char *host)
{
    const struct placement *placement = env->round->placement;
    const struct worker_place *place = &placement->place[worker->local_rank];
    const struct gpu *gpu =
        place->device && place->device->gpu >= 0 ? &placement->gpus.gpu[place->device->gpu] : NULL;
    struct cpus cpus;

    *row = (struct place_row){ .rank = worker->rank,
                               .local_rank = worker->local_rank,
                               .pid = (int)worker->pid,
                               .host = host,
                               .gpu = place->device ? place->device->name : "",
                               .pci = gpu ? gpu->pci : "",
                               .uuid = gpu ? gpu->uuid : "",
                               .threads = worker_env_get(env, "OMP_NUM_THREADS"),
                               .transport = transport_of(env) };
    if (cpus_of_process((int)worker->pid, &cpus) < 0) /* already reaped */
        cpus = place->bound ? place->cpus : placement->topology.allowed;
    cpus_write(&cpus, row->cpus);
    nodes_of(&placement->topology, &cpus, row->nodes);
}

/* ---- Text ------------------------------------------------------------------------ */

enum { COLUMNS = 11 };

static void cells_of(const struct place_row *row, const char *cells[COLUMNS], char numbers[3][12])
{
    const char *const all[COLUMNS] = { numbers[0], numbers[1],   numbers[2],    row->host,
                                       row->gpu,   row->pci,     row->uuid,     row->nodes,
                                       row->cpus,  row->threads, row->transport };

    snprintf(numbers[0], 12, "%d", row->rank);
    snprintf(numbers[1], 12, "%d", row->local_rank);
    snprintf(numbers[2], 12, "%d", row->pid);
    for (int i = 0; i < COLUMNS; i++)
        cells[i] = all[i] && *all[i] ? all[i] : "-";
}

static void add_line(struct text *out, const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        if (widths[i] > 0)
            text_print(out, i < COLUMNS - 1 ? "%-*s  " : "%.*s\n", i < COLUMNS - 1 ? widths[i] : 99,
                       cells[i]);
}

/* Sets each column's width to that of its widest cell.  Sets the width of a GPU column (GPU, PCI,
 * UUID) to 0 if all of its cells are empty, so that the column is left out. */
static void measure(const struct place_row *rows, int count, const char *const names[COLUMNS],
                    int widths[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        int said = i < 4 || i > 6;

        widths[i] = (int)strlen(names[i]);
        for (int j = 0; j < count; j++) {
            const char *cells[COLUMNS];
            char numbers[3][12];
            int length;

            cells_of(&rows[j], cells, numbers);
            length = (int)strlen(cells[i]);
            widths[i] = length > widths[i] ? length : widths[i];
            said |= strcmp(cells[i], "-") != 0;
        }
        if (!said)
            widths[i] = 0;
    }
}

void place_report_text(struct text *out, const struct place_row *rows, int count)
{
    static const char *const names[COLUMNS] = { "RANK", "LOCAL",   "PID",      "HOST",
                                                "GPU",  "PCI",     "UUID",     "NUMA",
                                                "CPUS", "THREADS", "TRANSPORT" };
    int widths[COLUMNS];

    measure(rows, count, names, widths);
    add_line(out, names, widths);
    for (int i = 0; i < count; i++) {
        const char *cells[COLUMNS];
        char numbers[3][12];

        cells_of(&rows[i], cells, numbers);
        add_line(out, cells, widths);
    }
}

/* ---- JSON ------------------------------------------------------------------------ */

static void json_word(struct json_text *json, const char *name, const char *value)
{
    json_string(json, name, value && *value ? value : NULL);
}

void place_report_json(struct text *out, const struct place_row *rows, int count)
{
    for (const struct place_row *row = rows; row < rows + count; row++) {
        struct json_text json = { .to = out, .gap = "" };

        json_open(&json, NULL, '{');
        json_number(&json, "rank", row->rank);
        json_number(&json, "local_rank", row->local_rank);
        json_number(&json, "pid", row->pid);
        json_word(&json, "host", row->host);
        json_word(&json, "gpu", row->gpu);
        json_word(&json, "pci", row->pci);
        json_word(&json, "uuid", row->uuid);
        json_word(&json, "numa", row->nodes);
        json_word(&json, "cpus", row->cpus);
        json_word(&json, "omp_num_threads", row->threads);
        json_word(&json, "transport", row->transport);
        json_close(&json, '}');
        text_add(out, "\n", 1);
    }
}

/* ---- The whole ------------------------------------------------------------------- */

void place_report(enum report_form form, const struct worker *workers, const struct worker_env *env)
{
    const int count = env->round->size;
    struct place_row *rows = calloc((size_t)count, sizeof *rows);
    struct text all = { 0 };
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    for (int i = 0; rows && i < count; i++)
        fill_row(&rows[i], &workers[i], env, host);
    if (rows)
        (form == REPORT_JSON ? place_report_json : place_report_text)(&all, rows, count);
    (form == REPORT_JSON ? links_report_json : links_report_text)(&all, env->round->placement,
                                                                  env->round->base, host);
    /* A failed write is ignored, since the job continues without a reader of stderr. */
    if (write(STDERR_FILENO, all.data, all.used) < 0)
        all.used = 0;
    free(all.data);
    free(rows);
}
