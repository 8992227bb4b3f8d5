/* SPDX-License-Identifier: Apache-2.0 */
/* placement_report.c - who runs where.
 *
 * CPUs are asked of the kernel, for each worker: the report says what is, not what was
 * meant.  The GPU is the one that is number LOCAL_RANK for the worker, which most
 * programs take.  The transport is what libct would choose; other libraries have their
 * own ways. */
#include "launcher/report/placement_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/report/gpu_topology_report.h"

/* ---- Facts ----------------------------------------------------------------------- */

static void nodes_of(const struct topology *topology, const struct cpus *cpus, char *text)
{
    struct cpus nodes = { { 0 } };

    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
        if (cpu < topology->cpus && cpus_has(&topology->allowed, cpu))
            cpus_add(&nodes, topology->cpu[cpu].node);
    cpus_write(&nodes, text);
}

/* runtime/: within a host by shared memory, between hosts by TCP, unless CT_LINK says. */
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
    const struct place *place = &placement->place[worker->local_rank];
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
    if (cpus_of_process((int)worker->pid, &cpus) < 0) /* it has ended already, and is reaped */
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

static void print_line(FILE *out, const char *const cells[COLUMNS], const int widths[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        if (widths[i] > 0)
            fprintf(out, i < COLUMNS - 1 ? "%-*s  " : "%.*s\n", i < COLUMNS - 1 ? widths[i] : 99,
                    cells[i]);
}

/* As wide as its widest cell; a column of a GPU's that nobody has anything in is left out. */
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

char *place_report_text(const struct place_row *rows, int count)
{
    static const char *const names[COLUMNS] = { "RANK", "LOCAL",   "PID",      "HOST",
                                                "GPU",  "PCI",     "UUID",     "NUMA",
                                                "CPUS", "THREADS", "TRANSPORT" };
    int widths[COLUMNS];
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    measure(rows, count, names, widths);
    print_line(out, names, widths);
    for (int i = 0; i < count; i++) {
        const char *cells[COLUMNS];
        char numbers[3][12];

        cells_of(&rows[i], cells, numbers);
        print_line(out, cells, widths);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* ---- JSON ------------------------------------------------------------------------ */

/* null where nothing is known.  A host's name and a user's words may hold anything. */
static void print_string(FILE *out, const char *name, const char *value)
{
    fprintf(out, ",\"%s\":", name);
    if (!value || !*value) {
        fprintf(out, "null");
        return;
    }
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ')
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    fputc('"', out);
}

char *place_report_json(const struct place_row *rows, int count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (int i = 0; i < count; i++) {
        const struct place_row *row = &rows[i];

        fprintf(out, "{\"rank\":%d,\"local_rank\":%d,\"pid\":%d", row->rank, row->local_rank,
                row->pid);
        print_string(out, "host", row->host);
        print_string(out, "gpu", row->gpu);
        print_string(out, "pci", row->pci);
        print_string(out, "uuid", row->uuid);
        print_string(out, "numa", row->nodes);
        print_string(out, "cpus", row->cpus);
        print_string(out, "omp_num_threads", row->threads);
        print_string(out, "transport", row->transport);
        fprintf(out, "}\n");
    }
    return fclose(out) == 0 ? text : NULL;
}

/* ---- The whole ------------------------------------------------------------------- */

void place_report(enum report_form form, const struct worker *workers, const struct worker_env *env)
{
    const int count = env->round->size;
    struct place_row *rows = calloc((size_t)count, sizeof *rows);
    struct text all = { 0 };
    char host[256] = "", *text = NULL;

    gethostname(host, sizeof host - 1);
    for (int i = 0; rows && i < count; i++)
        fill_row(&rows[i], &workers[i], env, host);
    if (rows)
        text = (form == REPORT_JSON ? place_report_json : place_report_text)(rows, count);
    if (text)
        text_add(&all, text, strlen(text));
    (form == REPORT_JSON ? links_report_json : links_report_text)(&all, env->round->placement,
                                                                  env->round->base, host);
    if (write(STDERR_FILENO, all.data, all.used) < 0) /* nobody listens: not our business */
        all.used = 0;
    free(all.data);
    free(text);
    free(rows);
}
