/* SPDX-License-Identifier: Apache-2.0 */
/* find_limits.c - measures the limits of the CPUs of all ranks, if these are on one host; or of the
 * GPU that has all ranks' buffers: how long it takes to copy within its own memory, from the launch
 * until the copy is known to be done. */
#include "bench/ct_bench/bench.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/ct_bench/device.h"
#include "bench/ct_bench/limits.h"
#include "bench/ct_bench/measure.h"

/* ---- A GPU ------------------------------------------------------------------------------- */

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

/* ---- Of which host or GPU ---------------------------------------------------------------- */

/* The CPUs of all ranks together, and whether all ranks are on one host. */
static ct_status meet_hosts(struct cpus *cpus, int *one_host)
{
    char boot[64] = "";
    uint64_t id[2] = { 5381, 0 };
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    ct_status status;

    if (file) {
        if (!fgets(boot, sizeof boot, file))
            boot[0] = 0;
        fclose(file);
    }
    for (const char *c = boot; *c; c++)
        id[0] = id[0] * 33 + (unsigned char)*c;
    id[1] = ~id[0];
    cpus_of_process(0, cpus);
    status = ct_all_reduce(CT_WORLD, cpus, cpus, sizeof *cpus, CT_U8, CT_BOR, NULL);
    if (status == CT_OK)
        status = ct_all_reduce(CT_WORLD, id, id, 2, CT_U64, CT_MAX, NULL);
    *one_host = id[0] == ~id[1]; /* the largest is the least, too */
    return status;
}

static ct_status meet_devices(int *one_device)
{
    uint64_t id[4]; /* the largest is the least, too */
    ct_status status;

    device_id(id);
    id[2] = ~id[0];
    id[3] = ~id[1];
    status = ct_all_reduce(CT_WORLD, id, id, 4, CT_U64, CT_MAX, NULL);
    *one_device = id[0] == ~id[2] && id[1] == ~id[3];
    return status;
}

/* The most that a row may read and write is 2 n for each of n ranks, and a copy is one of each. */
static int measure_device(struct bench *b, char why[200])
{
    return limits_measure_device(&b->limits, b->ranks, b->options.sizes.largest * (size_t)b->ranks,
                                 why);
}

/* Rank 0 measures; the others wait in the broadcast, and after a while they sleep. */
int bench_find_limits(struct bench *b)
{
    struct cpus cpus;
    const int device = b->options.memory == DEVICE_MEMORY;
    int one, failed = 0;
    char why[200];

    snprintf(why, sizeof why,
             "--limits are those of one %s, but the ranks are on several: leave it out",
             device ? "GPU" : "host");
    if ((device ? meet_devices(&one) : meet_hosts(&cpus, &one)) != CT_OK)
        return bench_fails(b, ct_last_error());
    if (b->rank == 0 && device)
        failed = !one || measure_device(b, why) < 0;
    else if (b->rank == 0)
        failed =
            !one || limits_measure(&b->limits, b->ranks, b->options.sizes.largest, &cpus, why) < 0;
    if (failed)
        bench_fails(b, why);
    if (ct_broadcast(CT_WORLD, &failed, 1, CT_I32, 0, NULL) != CT_OK)
        return bench_fails(b, ct_last_error());
    return failed;
}
