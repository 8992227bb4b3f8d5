/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - see figures.h. */
#include "bench/launch_bench/figures.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/launch_bench/runs.h"

static struct figure *find(struct figures *figures, const char *launcher, const char *name)
{
    for (int i = 0; i < figures->count; i++)
        if (!strcmp(figures->list[i].name, name) && !strcmp(figures->list[i].launcher, launcher))
            return &figures->list[i];
    figures->list = realloc(figures->list, (size_t)(figures->count + 1) * sizeof *figures->list);
    if (!figures->list)
        die("memory");
    figures->list[figures->count] = (struct figure){ .launcher = launcher };
    snprintf(figures->list[figures->count].name, sizeof figures->list->name, "%s", name);
    return &figures->list[figures->count++];
}

void figure_add(struct figures *figures, const char *launcher, const char *unit, double value,
                const char *format, ...)
{
    struct figure *figure;
    char name[48];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    figure = find(figures, launcher, name);
    figure->unit = unit;
    if (figure->count == figure->room) {
        figure->room = figure->room ? 2 * figure->room : 32;
        figure->values = realloc(figure->values, (size_t)figure->room * sizeof *figure->values);
        if (!figure->values)
            die("memory");
    }
    figure->values[figure->count++] = value;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void figures_print(struct figures *figures)
{
    for (int i = 0; i < figures->count; i++) {
        struct figure *f = &figures->list[i];

        qsort(f->values, (size_t)f->count, sizeof *f->values, ascending);
        printf("case=%s unit=%s launcher=%s median=%.6g min=%.6g runs=%d\n", f->name, f->unit,
               f->launcher, f->values[f->count / 2], f->values[0], f->count);
        free(f->values);
    }
    free(figures->list);
    *figures = (struct figures){ 0 };
}
