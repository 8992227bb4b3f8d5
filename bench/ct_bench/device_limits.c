/* SPDX-License-Identifier: Apache-2.0 */
/* device_limits.c - how long a GPU takes to copy within its own memory, from the launch until it is
 * known to be done. */
#include <math.h>
#include <stdio.h>

#include "bench/ct_bench/device.h"
#include "bench/ct_bench/limits.h"
#include "bench/ct_bench/measure.h"

#define LEAST_ROUNDS 5
#define ROUNDS_US 20000.0

static double best_copy(void *to, const void *from, size_t bytes)
{
    double best = INFINITY, spent = 0;

    for (int round = 0; round < LEAST_ROUNDS || spent < ROUNDS_US; round++) {
        const double began = now_us();
        double us;

        device_copy(to, from, bytes);
        us = now_us() - began;
        spent += us;
        best = fmin(best, us);
    }
    return best;
}

int limits_measure_device(struct limits *limits, int ranks, size_t largest, char why[200])
{
    int sizes = 1;
    size_t room;
    void *from, *to;

    *limits = (struct limits){ .ranks = ranks, .processes = 1, .device = 1 };
    limits->hand_overs = (struct hand_overs){ NAN, NAN, NAN, NAN, NAN };
    while (sizes < LIMIT_SIZES && limit_bytes(sizes - 1) < largest)
        sizes++;
    room = limit_bytes(sizes - 1);
    from = device_alloc(room);
    to = device_alloc(room);
    for (; from && to && limits->sizes < sizes; limits->sizes++) {
        const size_t bytes = limit_bytes(limits->sizes);

        limits->speeds[limits->sizes] =
            (struct speed){ bytes, best_copy(to, from, bytes), NAN, NAN, NAN };
    }
    if (from)
        device_free(from);
    if (to)
        device_free(to);
    if (limits->sizes == 0)
        snprintf(why, 200, "--limits: no device memory for a copy of %zu bytes", room);
    return limits->sizes > 0 ? 0 : -1;
}
