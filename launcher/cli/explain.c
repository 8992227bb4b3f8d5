/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - prints what a run would do, and why.  Nothing is run. */
#include "launcher/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/help.h"
#include "launcher/placement/placement.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/program.h"
#include "launcher/workers/worker_env.h"

/* Prints a cell of a table.  If the text is too long for the cell, the next cell starts in its own
 * column on the next line. */
static void cell(const char *text, int width, int next_column)
{
    if ((int)strlen(text) < width)
        printf("%-*s", width, text);
    else
        printf("%s\n%*s", text, next_column, "");
}

/* Prints a row.  `why` is a text of which the row has the first sentence, or words without a full
 * stop. */
static void line(const char *name, const char *value, const char *source, const char *why)
{
    cell(name, 25, 25);
    cell(value, 31, 56);
    if (*why)
        cell(source, 29, 85);
    if (*why)
        printf("%.*s\n", first_sentence(why), why);
    else
        printf("%s\n", source);
}

static void explain_options(const struct options *options, int is_alone, int size,
                            const char *why_size)
{
    char source[300], value[256];

    line("option", "value", "from", "why");

    for (int i = 0; i < OPTIONS; i++) {
        const struct option_row *row = option_row(i);
        const char *text = options->settings[i].text;

        if (i == OPTION_EXPLAIN || !row->parse)
            continue;
        setting_source(options, i, source, sizeof source);
        if (options->settings[i].set_by)
            snprintf(source + strlen(source), sizeof source - strlen(source), " (%s)",
                     options->settings[i].set_by);
        if (i == OPTION_RDZV_ID && is_alone) {
            line(row->name, "<a new UUID>", "one node alone",
                 options->settings[i].from == FROM_DEFAULT ? row->help
                                                           : "ctctl knows the job by yours");
            continue;
        }
        snprintf(value, sizeof value, "%s", text ? text : "-");
        if (!row->value)
            snprintf(value, sizeof value, "%s",
                     *(const int *)((const char *)options + row->field) ? "on" : "off");
        if (i == OPTION_NPROC_PER_NODE && *why_size)
            snprintf(value, sizeof value, "%s = %d", text, size);
        line(row->name, value, source,
             i == OPTION_NPROC_PER_NODE && *why_size ? why_size : row->help);
    }
}

static void explain_variables(const struct options *options, int size)
{
    char source[300];

    if (worker_env_sets_omp(options, size))
        line("OMP_NUM_THREADS", "1", "torchrun's rule", "several workers, and you did not set it");
    if (worker_env_sets_connections(options))
        line("CUDA_DEVICE_MAX_CONNECTIONS", "32", "ctrun's rule", "you did not set it");
    for (int i = 0; i < options->file.count; i++) {
        const struct jobfile_entry *entry = &options->file.entries[i];
        char name[WORKER_ENV_NAME];

        if (!strcmp(entry->section, "ctrun"))
            continue;
        worker_env_name(entry, name, sizeof name);
        snprintf(source, sizeof source, "%s:%d", options->file.path, entry->line);
        if (getenv(name) && *getenv(name))
            line(name, getenv(name), "environment", "overrides job.ini");
        else
            line(name, entry->value, source, "given to the workers");
    }
}

static void print_word(const char *word)
{
    putchar(' ');
    shell_quote(stdout, word);
}

/* Prints where each worker would run, if an option determines it.  Returns 0, or ctrun's exit code.
 */
static int explain_places(const struct options *options, int size)
{
    struct placement *placement;
    const char *bound_by = options->numa_binding != NUMA_NOT ? "--numa-binding" : "--bind";
    const char *shown_by = options->virtual_local_rank ? "--virtual-local-rank" : "--gpus";
    const int code = placement_create(&placement, options, size, "");

    for (int i = 0; placement && i < size; i++) {
        const struct worker_place *place = &placement->place[i];
        const char *visible = placement_visible(placement, i);
        char name[32], cpus[CPUS_TEXT], where[CPUS_TEXT + 8] = "ctrun's CPUs", gpus[256] = "";

        cpus_write(&place->cpus, cpus);
        if (place->bound)
            snprintf(where, sizeof where, "CPUs %s", cpus);
        if (visible)
            snprintf(gpus, sizeof gpus, "sees GPU %s", visible);
        else if (place->device)
            snprintf(gpus, sizeof gpus, "GPU %s is its own", place->device->name);
        snprintf(name, sizeof name, "local rank %d", i);
        line(name, where, place->bound ? bound_by : visible ? shown_by : "inherited", gpus);
    }
    placement_destroy(placement);
    return code;
}

void explain_before(const struct options *options)
{
    explain_options(options, 0, 0, "");
    line("executes", "the commands below", "",
         "the ctruns there take the rest from where they are");
}

int explain(const struct options *options, const struct meeting *meeting, int size,
            const char *why_size)
{
    struct program program;
    char place[520];
    int code;

    explain_options(options, meeting->kind == MEET_ALONE, size, why_size);
    explain_variables(options, size);
    snprintf(place, sizeof place, meeting->port ? "%s:%d" : "%s:any free port", meeting->host,
             meeting->port);
    line("store", *meeting->file ? meeting->file : place, "ctrun hosts it", meeting->why);
    if (options->file.path)
        line("job file", options->file.path,
             options->settings[OPTION_JOB].text ? "asked for" : "found here", "");
    fflush(stdout);
    if ((code = explain_places(options, size)) != 0
        || (code = program_find(&program, options)) != 0)
        return code;
    printf("%-25s", "executes");
    shell_quote(stdout, program.path);
    for (int i = 1; program.leading[0] && program.leading[i]; i++)
        print_word(program.leading[i]);
    for (int i = program.leading[0] ? 0 : 1; program.words[i]; i++)
        print_word(program.words[i]);
    printf("\n");
    return 0;
}
