/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - how long a call takes.
 *
 * A sample: all ranks leave a barrier, make `calls` calls one after the other, and each takes its
 * own time of them; the sample is the longest of these times, divided by the calls.  There are as
 * many calls in a sample as fill 10 us, so that the clock and the ranks' different starts do not
 * count; one, where a call takes longer. */
#ifndef CT_BENCH_MEASURE_H
#define CT_BENCH_MEASURE_H

#include "bench/ct_bench/trial.h"

struct effort {
    int samples; /* 0: until budget_ms are over, 5 to MOST_SAMPLES */
    int warmup;  /* calls */
    int calls;   /* of a sample; 0: as said above */
    double budget_ms;
};
#define MOST_SAMPLES 10000

/* Microseconds, of a call. */
struct times {
    double p50, p99, min;
    double rank_p50, rank_p99; /* of a rank's own times, of the rank where it is largest */
    double mean; /* of as many calls in a row, with no barrier between: nccl-tests' time */
    int samples, calls;
};

double now_us(void);

/* The q-th part of sorted values is below it. */
double quantile(const double *sorted, int count, double q);

/* `scratch` has room for 2 * MOST_SAMPLES.  All ranks call it and get the same. */
ct_status measure(const struct trial *trial, const struct effort *effort, double *scratch,
                  struct times *times);

#endif
