/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - rows as a table on stdout, as CSV, as JSON: one list of columns for the three. */
#ifndef CT_BENCH_REPORT_H
#define CT_BENCH_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "bench/ct_bench/limits.h"

#define NOT_CHECKED (-1)

/* Times are microseconds, bandwidths 1e9 bytes per second; NAN where there is none. */
struct row {
    const char *operation, *type, *redop, *place;
    int64_t bytes, count, root, wrong;
    double p50, p99, min, algbw, busbw, limit, ratio, model, rank_p50, rank_p99, mean;
    int64_t samples, calls;
};

/* What is said of the run as a whole. */
struct heading {
    int ranks;
    int warmup;
    const struct limits *limits; /* NULL: not measured */
    const char *memory;
    double wire; /* bytes in a us; 0: no model is wanted */
};

struct report {
    FILE *csv, *json; /* NULL: not wanted */
    int rows, with_limits, with_model;
};

/* On rank 0.  0, or -1 when `*at_fault` can't be written: errno says why. */
int report_open(struct report *report, const char *csv, const char *json, const char **at_fault);
void report_heading(struct report *report, const struct heading *heading);
void report_columns(const struct report *report);
void report_row(struct report *report, const struct row *row);
/* As report_open(): what was written may only now turn out not to fit on the disk. */
int report_close(struct report *report, const char **at_fault);

#endif
