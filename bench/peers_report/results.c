/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - see results.h. */
#include "bench/peers_report/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROUNDS 100

/* A hue for each family, so that two versions are seen to be kin; ours stands out. */
const struct library_name library_names[LIBRARIES] = {
    [LIBCT] = { "libct", "libct", "#c2185b" },
    [LIBCT_MEM] = { "libct-mem", "libct, ct_mem_alloc", "#7b1fa2" },
    [GLOO] = { "gloo", "gloo", "#757575" },
    [OPENMPI4] = { "openmpi4", "Open MPI 4", "#f0a830" },
    [OPENMPI5] = { "openmpi5", "Open MPI 5", "#b35c00" },
    [MPICH4] = { "mpich4", "MPICH 4", "#64b5f6" },
    [MPICH5] = { "mpich5", "MPICH 5", "#1565c0" },
    [IMPI] = { "impi", "Intel MPI", "#2e9e5b" },
    [ONECCL] = { "oneccl", "oneCCL", "#9ccc65" },
    [LIMIT] = { "limit", "limit", "#212121" },
};

/* ---- Reading ------------------------------------------------------------------- */

struct sample {
    enum library library;
    int row;
    struct time time;
};

struct reading {
    struct results *results;
    struct sample *samples;
    int sample_count;
};

static enum library library_named(const char *key)
{
    int i = 0;

    while (i < LIBRARIES && strcmp(library_names[i].key, key) != 0)
        i++;
    return i;
}

/* Room for one more, in powers of two.  NULL: no memory, and `array` is as it was. */
static void *grown(void *array, int count, size_t size)
{
    return count & (count - 1) ? array : realloc(array, (size_t)(count ? 2 * count : 1) * size);
}

/* -1: no memory. */
static int row_of(struct results *results, const struct row *wanted)
{
    int place = results->row_count;
    struct row *rows;

    for (int i = results->row_count - 1; i >= 0; i--) {
        const struct row *row = &results->rows[i];

        if (strcmp(row->operation, wanted->operation) != 0)
            continue;
        if (same_shape(row, wanted) && row->bytes == wanted->bytes)
            return i;
        place = row->place;
    }
    rows = grown(results->rows, results->row_count, sizeof *rows);
    if (!rows)
        return -1;
    results->rows = rows;
    rows[results->row_count] = *wanted;
    rows[results->row_count].place = place;
    return results->row_count++;
}

/* A number, or NAN where there is none between two commas. */
static double number(const char *text)
{
    return *text ? atof(text) : NAN;
}

/* "4" or "3x2"; false if it is neither. */
static int read_shape(const char *text, struct row *row)
{
    int each;

    if (sscanf(text, "%dx%d", &row->hosts, &each) == 2) {
        row->ranks = row->hosts * each;
        return row->hosts > 1 && each > 0;
    }
    row->hosts = 0;
    row->ranks = atoi(text);
    return row->ranks > 0;
}

/* A limit has a p50 only. */
static int read_line(struct reading *reading, char *line)
{
    enum { LIBRARY, RANKS, ROUND, OPERATION, BYTES, P50, P99, MEAN, SAMPLES, FIELDS };
    char *fields[FIELDS];
    struct row row = { .ranks = 0 };
    struct sample *samples, sample;

    for (int i = 0; i < FIELDS; i++)
        if (!(fields[i] = strsep(&line, ",")))
            return -1;
    sample.library = library_named(fields[LIBRARY]);
    snprintf(row.operation, sizeof row.operation, "%s", fields[OPERATION]);
    row.bytes = strtoull(fields[BYTES], NULL, 10);
    sample.time = (struct time){ number(fields[P50]), number(fields[P99]), number(fields[MEAN]) };
    if (sample.library == LIBRARIES || !read_shape(fields[RANKS], &row))
        return -1;
    sample.row = row_of(reading->results, &row);
    samples = grown(reading->samples, reading->sample_count, sizeof *samples);
    if (sample.row < 0 || !samples)
        return -1;
    reading->samples = samples;
    samples[reading->sample_count++] = sample;
    reading->results->present[sample.library] = 1;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    if (count == 0)
        return NAN;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static struct time median_time(const struct reading *reading, int row, enum library library)
{
    double p50[MOST_ROUNDS], p99[MOST_ROUNDS], mean[MOST_ROUNDS];
    int n = 0, calls = 0;

    for (int i = 0; i < reading->sample_count && n < MOST_ROUNDS; i++) {
        const struct sample *s = &reading->samples[i];

        if (s->row != row || s->library != library)
            continue;
        p50[n++] = s->time.p50;
        if (isnan(s->time.mean)) /* a limit */
            continue;
        p99[calls] = s->time.p99;
        mean[calls++] = s->time.mean;
    }
    return (struct time){ median(p50, n), median(p99, calls), median(mean, calls) };
}

static int in_the_table(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->hosts != y->hosts)
        return x->hosts - y->hosts;
    if (x->ranks != y->ranks)
        return x->ranks - y->ranks;
    if (x->place != y->place)
        return x->place - y->place;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int results_read(struct results *results, FILE *file, char why[200])
{
    struct reading reading = { .results = results };
    char line[300];
    int lines = 0, failed = 0;

    *results = (struct results){ 0 };
    while (!failed && fgets(line, sizeof line, file)) {
        lines++;
        line[strcspn(line, "\n")] = 0;
        failed = read_line(&reading, line) < 0;
    }
    if (failed || lines == 0)
        snprintf(why, 200, failed ? "line %d is no row, or there is no memory" : "no rows", lines);
    for (int row = 0; !failed && row < results->row_count; row++)
        for (int i = 0; i < LIBRARIES; i++)
            results->rows[row].times[i] = median_time(&reading, row, i);
    if (!failed && lines > 0)
        qsort(results->rows, (size_t)results->row_count, sizeof *results->rows, in_the_table);
    free(reading.samples);
    return failed || lines == 0 ? -1 : 0;
}

void results_free(struct results *results)
{
    free(results->rows);
    *results = (struct results){ 0 };
}

/* ---- What follows from them ---------------------------------------------------- */

int same_shape(const struct row *a, const struct row *b)
{
    return a->hosts == b->hosts && a->ranks == b->ranks;
}

void name_shape(const struct row *row, char text[24])
{
    if (row->hosts > 0)
        snprintf(text, 24, "%dx%d", row->hosts, row->ranks / row->hosts);
    else
        snprintf(text, 24, "%d", row->ranks);
}

enum library best_peer(const struct row *row)
{
    enum library best = LIBRARIES;

    for (int i = GLOO; i < LIMIT; i++)
        if (!isnan(row->times[i].p50)
            && (best == LIBRARIES || row->times[i].p50 < row->times[best].p50))
            best = i;
    return best;
}

double ratio_of(const struct row *row, enum library ours)
{
    const enum library best = best_peer(row);

    return best == LIBRARIES ? NAN : row->times[best].p50 / row->times[ours].p50;
}

static int one_of(const char *operation, const char *const *names)
{
    while (*names && strcmp(*names, operation) != 0)
        names++;
    return *names != NULL;
}

int says_little(const struct results *results, const struct row *row)
{
    static const char *const rooted[] = { "broadcast", "reduce", "gather", "scatter", NULL };

    return row->ranks > results->processors && row->bytes <= 1024 && one_of(row->operation, rooted);
}

double bandwidth_of(const struct row *row, double us)
{
    static const char *const sharded[] = { "all_gather", "reduce_scatter", "all_to_all", "gather",
                                           "scatter",    "all_reduce",     NULL };
    const double others = (row->ranks - 1.0) / row->ranks;
    double factor = one_of(row->operation, sharded) ? others : 1;

    if (!strcmp(row->operation, "all_reduce"))
        factor *= 2;
    return factor * (double)row->bytes / us / 1e3;
}
