/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - see limits.h: from figures of the host to the limit of a row. */
#include "bench/ct_bench/limits.h"

#include <math.h>
#include <stddef.h>

int limits_measure(struct limits *limits, int ranks, size_t largest, const struct cpus *cpus,
                   char why[200])
{
    const int count = cpus_count(cpus);

    *limits = (struct limits){ .cpus = count, .ranks = ranks };
    limits->processes = ranks < count ? ranks : count;
    if (limits->processes > MOST_CREW)
        limits->processes = MOST_CREW;
    return limits_hand_overs(limits, cpus, why) < 0 || limits_speeds(limits, largest, cpus, why) < 0
               ? -1
               : 0;
}

/* ---- The model --------------------------------------------------------------------- */

static double field(const struct speed *speed, size_t at)
{
    return *(const double *)(const void *)((const char *)speed + at);
}

/* Microseconds for `bytes`, between two sizes in proportion; beyond them as the nearest. */
static double time_for(const struct limits *limits, size_t at, double bytes)
{
    const struct speed *below = &limits->speeds[0];

    for (int i = 1; i < limits->sizes && !isnan(field(&limits->speeds[i], at)); i++) {
        const struct speed *above = &limits->speeds[i];
        const double part = (bytes - (double)below->bytes) / (double)(above->bytes - below->bytes);

        if (part >= 0 && part <= 1)
            return field(below, at) + part * (field(above, at) - field(below, at));
        if (part > 1)
            below = above;
    }
    return field(below, at) * bytes / (double)below->bytes;
}

/* With a CPU for each rank one flag must be seen; else each CPU changes from rank to rank. */
static double hand_over(const struct limits *limits, int ranks)
{
    const struct hand_overs *h = &limits->hand_overs;

    if (ranks <= limits->cpus)
        return h->spin;
    return ((ranks + limits->cpus - 1) / limits->cpus - 1) * fmin(h->yield_on_one, h->futex_on_one);
}

/* What the smallest copy takes is the launch and the wait, which fewer bytes need as well. */
static double of_device(const struct limits *limits, double moved)
{
    const size_t copy = offsetof(struct speed, copy_hot);

    return moved > 0 ? fmax(field(&limits->speeds[0], copy), time_for(limits, copy, moved / 2))
                     : NAN;
}

double limits_of(const struct limits *limits, const struct operation *operation, double bytes,
                 int in_place)
{
    const int ranks = operation->sends == FIRST_TWO ? 2 : limits->ranks;
    const double turns = ranks > limits->cpus ? (double)ranks / limits->cpus : 1;
    const double folded = bytes * operation->fold(ranks), copied = bytes * operation->copy(ranks);

    if (limits->ranks == 1)
        return NAN; /* may do nothing at all */
    if (limits->device)
        return of_device(limits, bytes * operation->moves(limits->ranks, in_place));
    return hand_over(limits, ranks)
           + turns
                 * (time_for(limits, offsetof(struct speed, fold_hot), folded)
                    + time_for(limits, offsetof(struct speed, copy_hot), copied));
}

/* ---- In words ------------------------------------------------------------------------ */

static const struct {
    const char *key, *words;
    size_t at;
} ways[] = {
    { "spin", "spinning, two CPUs", offsetof(struct hand_overs, spin) },
    { "yield", "sched_yield, two CPUs", offsetof(struct hand_overs, yield) },
    { "futex", "futex wake, two CPUs", offsetof(struct hand_overs, futex) },
    { "yield_on_one", "sched_yield, one CPU", offsetof(struct hand_overs, yield_on_one) },
    { "futex_on_one", "futex wake, one CPU", offsetof(struct hand_overs, futex_on_one) },
};
static const struct {
    const char *key;
    size_t at;
} kinds[] = {
    { "copy_hot", offsetof(struct speed, copy_hot) },
    { "copy_cold", offsetof(struct speed, copy_cold) },
    { "fold_hot", offsetof(struct speed, fold_hot) },
    { "fold_cold", offsetof(struct speed, fold_cold) },
};
enum { WAYS = sizeof ways / sizeof *ways, KINDS = sizeof kinds / sizeof *kinds };

static double way_us(const struct limits *limits, int i)
{
    return *(const double *)(const void *)((const char *)&limits->hand_overs + ways[i].at);
}

static void print_device(const struct limits *limits)
{
    printf("# limits of this GPU: a copy within it, launched and waited for: bytes, us, GB/s read "
           "and written\n");
    for (int i = 0; i < limits->sizes; i++)
        printf("#   %12zu  %10.2f  %8.1f\n", limits->speeds[i].bytes, limits->speeds[i].copy_hot,
               2 * (double)limits->speeds[i].bytes / limits->speeds[i].copy_hot / 1e3);
    fflush(stdout);
}

void limits_print(const struct limits *limits)
{
    if (limits->device) {
        print_device(limits);
        return;
    }
    printf("# limits of this host: CPUs %d, processes at once %d\n", limits->cpus,
           limits->processes);
    for (int i = 0; i < WAYS; i++)
        if (!isnan(way_us(limits, i)))
            printf("#   hand-over, %-22s %8.3f us\n", ways[i].words, way_us(limits, i));
    printf("#   result bytes of each process, GB/s: memcpy hot, cold; sum of %d hot, cold\n",
           limits->ranks);
    for (int i = 0; i < limits->sizes; i++) {
        printf("#   %12zu", limits->speeds[i].bytes);
        for (int k = 0; k < KINDS; k++) {
            const double us = field(&limits->speeds[i], kinds[k].at);

            if (isnan(us))
                printf("  %8s", "-");
            else
                printf("  %8.1f", (double)limits->speeds[i].bytes / us / 1e3);
        }
        printf("\n");
    }
    fflush(stdout);
}

static void put_json(FILE *file, const char *before, const char *key, double us)
{
    fprintf(file, "%s\"%s\": ", before, key);
    if (isnan(us))
        fprintf(file, "null");
    else
        fprintf(file, "%.9g", us);
}

void limits_put_json(const struct limits *limits, FILE *file)
{
    fprintf(file, "{\"cpus\": %d, \"processes\": %d, \"hand_over_us\": {", limits->cpus,
            limits->processes);
    for (int i = 0; i < WAYS; i++)
        put_json(file, i > 0 ? ", " : "", ways[i].key, way_us(limits, i));
    fprintf(file, "},\n\"speeds_us\": [");
    for (int i = 0; i < limits->sizes; i++) {
        fprintf(file, "%s{\"bytes\": %zu", i > 0 ? ",\n" : "\n", limits->speeds[i].bytes);
        for (int k = 0; k < KINDS; k++)
            put_json(file, ", ", kinds[k].key, field(&limits->speeds[i], kinds[k].at));
        fprintf(file, "}");
    }
    fprintf(file, "]}");
}
