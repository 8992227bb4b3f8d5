/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - see measure.h. */
#include "bench/ct_bench/measure.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLE_US 10.0
#define MOST_CALLS 1000 /* of a sample */
#define LEAST_SAMPLES 5
#define ESTIMATE_US 1000.0 /* how long is long enough to know how many samples there can be */
#define MOST_TO_ESTIMATE 1024

double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

double quantile(const double *sorted, int count, double q)
{
    return count > 0 ? sorted[(int)(q * (count - 1) + 0.5)] : NAN;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* On this rank, for one call. */
static ct_status sample(const struct trial *trial, int calls, double *us)
{
    ct_status status = ct_barrier(CT_WORLD, NULL);
    const double began = now_us();

    for (int i = 0; i < calls && status == CT_OK; i++)
        status = trial_call(trial);
    *us = (now_us() - began) / calls;
    return status;
}

static ct_status longest(double *us, int count)
{
    return ct_all_reduce(CT_WORLD, us, us, (size_t)count, CT_F64, CT_MAX, NULL);
}

/* All ranks have the same estimate, so what follows from it is the same too. */
static ct_status estimate(const struct trial *trial, double *us)
{
    ct_status status = CT_OK;

    for (int calls = 1; status == CT_OK; calls *= 2) {
        status = sample(trial, calls, us);
        if (status == CT_OK)
            status = longest(us, 1);
        if (*us * calls >= ESTIMATE_US || calls >= MOST_TO_ESTIMATE)
            break;
    }
    return status;
}

static int within(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

ct_status measure(const struct trial *trial, const struct effort *effort, double *scratch,
                  struct times *times)
{
    const int trips = trial->operation->trips > 0 ? trial->operation->trips : 1;
    double us = 0;
    ct_status status = CT_OK;

    for (int i = 0; i < effort->warmup && status == CT_OK; i++)
        status = trial_call(trial);
    if (status == CT_OK)
        status = estimate(trial, &us);
    if (status != CT_OK)
        return status;
    if (us < 1e-3)
        us = 1e-3; /* the clock's own step */
    times->calls = effort->calls ? effort->calls : within(ceil(SAMPLE_US / us), 1, MOST_CALLS);
    times->samples = effort->samples ? effort->samples
                                     : within(effort->budget_ms * 1e3 / (us * times->calls),
                                              LEAST_SAMPLES, MOST_SAMPLES);
    for (int i = 0; i < times->samples && status == CT_OK; i++) {
        status = sample(trial, times->calls, &scratch[i]);
        scratch[i] /= trips;
    }
    if (status == CT_OK)
        status = longest(scratch, times->samples);
    qsort(scratch, (size_t)times->samples, sizeof *scratch, ascending);
    times->min = scratch[0];
    times->p50 = quantile(scratch, times->samples, 0.5);
    times->p99 = quantile(scratch, times->samples, 0.99);
    return status;
}
