/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - what one host, or one GPU, allows, and what a row could therefore take at least.
 *
 * Measured without libct, by processes that rank 0 forks, one on each CPU that the ranks may use
 * and have ranks for, all at once: copying (memcpy) and folding (the sum of as many f32 arrays
 * as there are ranks, in one pass) by size, from arrays that were just used (hot) and that were
 * not (cold); and handing over from one process to another.
 *
 * A row's limit is one hand-over, plus each rank's share of the folding and copying with all
 * memory within reach of all.  It is no proof: it is what this host did with this code, at the
 * best moment of some tenths of a second.
 *
 * Of device memory it is one copy within the GPU of half as many bytes as the row's operation must
 * read and write, launched once and waited for once; measured by rank 0 alone. */
#ifndef CT_BENCH_LIMITS_H
#define CT_BENCH_LIMITS_H

#include <stdio.h>

#include "bench/ct_bench/operations.h"
#include "runtime/util/cpu_set.h"

#define MOST_CREW 1024 /* processes that measure */
#define LIMIT_SIZES 9  /* 4 KiB, times four each, to 256 MiB */

static inline size_t limit_bytes(int i)
{
    return (size_t)4096 << (2 * i);
}

/* Bytes of the result; microseconds for each of the processes; NAN: too large to be cold. */
struct speed {
    size_t bytes;
    double copy_hot, copy_cold, fold_hot, fold_cold;
};

/* One way, microseconds; NAN where there is one CPU only. */
struct hand_overs {
    double spin, yield, futex;         /* between two CPUs */
    double yield_on_one, futex_on_one; /* both processes on one CPU */
};

struct limits {
    int cpus, ranks, processes; /* processes: the smaller of the two */
    int device;                 /* they are a GPU's: of the speeds there is copy_hot */
    int sizes;
    struct speed speeds[LIMIT_SIZES];
    struct hand_overs hand_overs;
};

/* For results of at most `largest` bytes, on `cpus`.  0, or -1 with what failed in `why`. */
int limits_measure(struct limits *limits, int ranks, size_t largest, const struct cpus *cpus,
                   char why[200]);

/* The same for the GPU that is open, for copies of at least `largest` bytes, if it has so much. */
int limits_measure_device(struct limits *limits, int ranks, size_t largest, char why[200]);

double limits_of(const struct limits *limits, const struct operation *operation, double bytes,
                 int in_place);

void limits_print(const struct limits *limits);
void limits_put_json(const struct limits *limits, FILE *file);

/* host_limits.c: the parts; 0 or -1 as above. */
int limits_speeds(struct limits *limits, size_t largest, const struct cpus *cpus, char why[200]);
int limits_hand_overs(struct limits *limits, const struct cpus *cpus, char why[200]);

#endif
