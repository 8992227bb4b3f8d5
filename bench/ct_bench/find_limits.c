/* SPDX-License-Identifier: Apache-2.0 */
/* find_limits.c - whose limits they are: the CPUs of all ranks, if these are on one host. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/ct_bench/bench.h"

/* The CPUs of all ranks together, and whether all ranks are on one host. */
static ct_status meet_hosts(cpu_set_t *cpus, int *one_host)
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
    CPU_ZERO(cpus);
    sched_getaffinity(0, sizeof *cpus, cpus);
    status = ct_all_reduce(CT_WORLD, cpus, cpus, sizeof *cpus, CT_U8, CT_BOR, NULL);
    if (status == CT_OK)
        status = ct_all_reduce(CT_WORLD, id, id, 2, CT_U64, CT_MAX, NULL);
    *one_host = id[0] == ~id[1]; /* the largest is the least, too */
    return status;
}

/* Rank 0 measures; the others wait in the broadcast, and after a while they sleep. */
int bench_find_limits(struct bench *b)
{
    cpu_set_t cpus;
    int one_host, failed = 0;
    char why[200] = "--limits are those of one host, but the ranks are on several: leave it out";

    if (meet_hosts(&cpus, &one_host) != CT_OK)
        return bench_fails(b, ct_last_error());
    if (b->rank == 0)
        failed = !one_host
                 || limits_measure(&b->limits, b->ranks, b->options.sizes.largest, &cpus, why) < 0;
    if (failed)
        bench_fails(b, why);
    if (ct_broadcast(CT_WORLD, &failed, 1, CT_I32, 0, NULL) != CT_OK)
        return bench_fails(b, ct_last_error());
    return failed;
}
