/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - see measure.h. */
#include "bench/ct_bench/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLE_US 10.0
#define MOST_CALLS 1000 /* of a sample */
#define LEAST_SAMPLES 5
#define ESTIMATES 3
#define ESTIMATE_US 1000.0 /* how long is long enough to know how many calls fill a sample */
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
static ct_status sample(const struct trial *trial, long calls, double *us)
{
    ct_status status = ct_barrier(CT_WORLD, NULL);
    const double began = now_us();

    for (long i = 0; i < calls && status == CT_OK; i++)
        status = trial_call(trial);
    trial_settle(trial);
    *us = (now_us() - began) / (double)calls;
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

/* How many calls fill a sample. */
static ct_status choose_calls(const struct trial *trial, const struct effort *effort, int *calls)
{
    ct_status status = CT_OK;
    double least = INFINITY, us = 0;

    *calls = effort->calls;
    if (effort->calls)
        return CT_OK;
    for (int i = 0; i < ESTIMATES && status == CT_OK; i++) { /* some are interrupted */
        status = estimate(trial, &us);
        least = fmin(least, us);
    }
    /* Shorter than the clock's own step is not a time. */
    *calls = (int)fmin(MOST_CALLS, ceil(SAMPLE_US / fmax(least, 1e-3)));
    return status;
}

/* This rank's own.  As many more again and again until the time is over on the slowest rank: a
 * number estimated beforehand would be spoilt by one interruption. */
static ct_status take_samples(const struct trial *trial, const struct effort *effort, int calls,
                              double *samples, int *count)
{
    const double began = now_us();
    ct_status status = CT_OK;
    double spent = 0;

    *count = 0;
    while (status == CT_OK && *count < MOST_SAMPLES && spent < effort->budget_ms * 1e3) {
        const int more = effort->samples ? effort->samples : *count ? *count : LEAST_SAMPLES;
        const int end = *count + more < MOST_SAMPLES ? *count + more : MOST_SAMPLES;

        while (*count < end && status == CT_OK)
            status = sample(trial, calls, &samples[(*count)++]);
        if (effort->samples)
            break;
        spent = now_us() - began;
        if (status == CT_OK)
            status = longest(&spent, 1);
    }
    return status;
}

/* From the ranks' samples to the times that all agree on. */
static ct_status evaluate(double *own, double *slowest, struct times *times)
{
    const size_t bytes = (size_t)times->samples * sizeof *own;
    ct_status status;

    memcpy(slowest, own, bytes);
    qsort(own, (size_t)times->samples, sizeof *own, ascending);
    times->rank_p50 = quantile(own, times->samples, 0.5);
    times->rank_p99 = quantile(own, times->samples, 0.99);
    status = longest(slowest, times->samples);
    if (status == CT_OK)
        status = longest(&times->rank_p50, 1);
    if (status == CT_OK)
        status = longest(&times->rank_p99, 1);
    qsort(slowest, (size_t)times->samples, sizeof *slowest, ascending);
    times->min = slowest[0];
    times->p50 = quantile(slowest, times->samples, 0.5);
    times->p99 = quantile(slowest, times->samples, 0.99);
    return status;
}

ct_status measure(const struct trial *trial, const struct effort *effort, double *scratch,
                  struct times *times)
{
    const int trips = trial->operation->trips > 0 ? trial->operation->trips : 1;
    ct_status status = CT_OK;

    *times = (struct times){ 0 };
    for (int i = 0; i < effort->warmup && status == CT_OK; i++)
        status = trial_call(trial);
    if (status == CT_OK)
        status = choose_calls(trial, effort, &times->calls);
    if (status == CT_OK)
        status = take_samples(trial, effort, times->calls, scratch, &times->samples);
    if (status == CT_OK)
        status = evaluate(scratch, scratch + MOST_SAMPLES, times);
    if (status == CT_OK)
        status = sample(trial, (long)times->samples * times->calls, &times->mean);
    if (status == CT_OK)
        status = longest(&times->mean, 1);
    times->min /= trips;
    times->p50 /= trips;
    times->p99 /= trips;
    times->rank_p50 /= trips;
    times->rank_p99 /= trips;
    times->mean /= trips;
    return status;
}
