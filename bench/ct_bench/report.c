/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h. */
#include "bench/ct_bench/report.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "include/ct.h"

enum kind { WORD, WHOLE, REAL };

/* width 0: in the files only. */
static const struct column {
    const char *key, *heading;
    enum kind kind;
    int width;
    size_t at;
} columns[] = {
    { "operation", "operation", WORD, 14, offsetof(struct row, operation) },
    { "bytes", "bytes", WHOLE, 11, offsetof(struct row, bytes) },
    { "count", "count", WHOLE, 10, offsetof(struct row, count) },
    { "type", "type", WORD, 6, offsetof(struct row, type) },
    { "redop", "redop", WORD, 7, offsetof(struct row, redop) },
    { "root", "root", WHOLE, 4, offsetof(struct row, root) },
    { "place", "place", WORD, 5, offsetof(struct row, place) },
    { "p50_us", "p50 us", REAL, 10, offsetof(struct row, p50) },
    { "p99_us", "p99 us", REAL, 10, offsetof(struct row, p99) },
    { "min_us", "min us", REAL, 10, offsetof(struct row, min) },
    { "algbw_gbs", "algbw", REAL, 7, offsetof(struct row, algbw) },
    { "busbw_gbs", "busbw", REAL, 7, offsetof(struct row, busbw) },
    { "wrong", "#wrong", WHOLE, 6, offsetof(struct row, wrong) },
    { "limit_us", "limit us", REAL, 10, offsetof(struct row, limit) },
    { "ratio", "p50/limit", REAL, 9, offsetof(struct row, ratio) },
    { "model_us", "model us", REAL, 10, offsetof(struct row, model) },
    { "samples", "samples", WHOLE, 0, offsetof(struct row, samples) },
    { "calls", "calls", WHOLE, 0, offsetof(struct row, calls) },
    { "rank_p50_us", "rank p50 us", REAL, 0, offsetof(struct row, rank_p50) },
    { "rank_p99_us", "rank p99 us", REAL, 0, offsetof(struct row, rank_p99) },
    { "mean_us", "mean us", REAL, 0, offsetof(struct row, mean) },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* As in nccl-tests a row without a root has root -1; unchecked is the one whole number that is
 * no number. */
static int empty(const struct column *column, const struct row *row)
{
    const void *at = (const char *)row + column->at;

    return column->kind == REAL
               ? isnan(*(const double *)at)
               : column->at == offsetof(struct row, wrong) && row->wrong == NOT_CHECKED;
}

/* For people: digits that mean something.  For files: enough to get the same double. */
static int digits_of(double value)
{
    return value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
}

static void put_text(const struct column *column, const struct row *row)
{
    const void *at = (const char *)row + column->at;
    const int first = column == columns;

    if (!first)
        printf("  ");
    if (empty(column, row))
        printf("%*s", column->width, column->kind == REAL ? "-" : "N/A");
    else if (column->kind == WORD)
        printf("%*s", first ? -column->width : column->width, *(const char *const *)at);
    else if (column->kind == WHOLE)
        printf("%*lld", column->width, (long long)*(const int64_t *)at);
    else
        printf("%*.*f", column->width, digits_of(*(const double *)at), *(const double *)at);
}

/* Words are ours, and have nothing to quote but themselves. */
static void put_value(FILE *file, const struct column *column, const struct row *row,
                      const char *quote, const char *nothing)
{
    const void *at = (const char *)row + column->at;

    if (empty(column, row))
        fprintf(file, "%s", nothing);
    else if (column->kind == WORD)
        fprintf(file, "%s%s%s", quote, *(const char *const *)at, quote);
    else if (column->kind == WHOLE)
        fprintf(file, "%lld", (long long)*(const int64_t *)at);
    else
        fprintf(file, "%.9g", *(const double *)at);
}

static int shown(const struct report *report, const struct column *column)
{
    const int of_limits =
        column->at == offsetof(struct row, limit) || column->at == offsetof(struct row, ratio);

    if (column->at == offsetof(struct row, model) && !report->with_model)
        return 0;
    return column->width > 0 && (report->with_limits || !of_limits);
}

int report_open(struct report *report, const char *csv, const char *json, const char **at_fault)
{
    *report = (struct report){ 0 };
    *at_fault = csv;
    if (csv && !(report->csv = fopen(csv, "we")))
        return -1;
    *at_fault = json;
    if (json && !(report->json = fopen(json, "we"))) {
        if (report->csv)
            fclose(report->csv);
        return -1;
    }
    return 0;
}

void report_heading(struct report *report, const struct heading *heading)
{
    report->with_limits = heading->limits != NULL;
    report->with_model = heading->wire > 0;
    printf("# ct_bench %s: ranks %d, memory %s, calls to warm up %d.  Of a sample the time of the "
           "slowest rank; bandwidth in GB/s, from p50.\n",
           ct_version(), heading->ranks, heading->memory, heading->warmup);
    if (heading->limits)
        limits_print(heading->limits);
    if (heading->wire > 0)
        printf("# the models' wire: %.3f GB/s; rows through shared memory and those of two levels "
               "(nodes) have no model\n",
               heading->wire / 1e3);
    for (int i = 0; report->csv && i < COLUMNS; i++)
        fprintf(report->csv, "%s%s", columns[i].key, i + 1 < COLUMNS ? "," : "\n");
    if (!report->json)
        return;
    fprintf(
        report->json,
        "{\"ct_bench\": \"%s\", \"ranks\": %d, \"memory\": \"%s\", \"warmup\": %d,\n\"limits\": ",
        ct_version(), heading->ranks, heading->memory, heading->warmup);
    if (heading->limits)
        limits_put_json(heading->limits, report->json);
    else
        fprintf(report->json, "null");
    fprintf(report->json, ",\n\"rows\": [");
}

void report_columns(const struct report *report)
{
    for (int i = 0; i < COLUMNS; i++)
        if (shown(report, &columns[i]))
            printf("%s%*s", i == 0 ? "# " : "  ", i == 0 ? 2 - columns[i].width : columns[i].width,
                   columns[i].heading);
    printf("\n");
    fflush(stdout);
}

/* A line each, at once: who looks on wants to see it, and a run that is ended has its rows. */
void report_row(struct report *report, const struct row *row)
{
    for (int i = 0; i < COLUMNS; i++)
        if (shown(report, &columns[i]))
            put_text(&columns[i], row);
    printf("\n");
    fflush(stdout);
    for (int i = 0; report->csv && i < COLUMNS; i++) {
        put_value(report->csv, &columns[i], row, "", "");
        fputs(i + 1 < COLUMNS ? "," : "\n", report->csv);
    }
    for (int i = 0; report->json && i < COLUMNS; i++) {
        fprintf(report->json, "%s\"%s\": ",
                i > 0          ? ", "
                : report->rows ? ",\n{"
                               : "\n{",
                columns[i].key);
        put_value(report->json, &columns[i], row, "\"", "null");
        fputs(i + 1 < COLUMNS ? "" : "}", report->json);
    }
    if (report->csv)
        fflush(report->csv);
    report->rows++;
}

/* fclose() alone would forget an error of an earlier write, whose errno is gone. */
static int close_file(FILE *file)
{
    const int broken = file && ferror(file);

    if (file && fclose(file) != 0)
        return -1;
    if (broken)
        errno = EIO;
    return broken ? -1 : 0;
}

int report_close(struct report *report, const char **at_fault)
{
    if (report->json)
        fprintf(report->json, "\n]}\n");
    *at_fault = "--csv";
    if (close_file(report->csv) < 0) {
        close_file(report->json);
        return -1;
    }
    *at_fault = "--json";
    return close_file(report->json);
}
