/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - one run of ct_bench, on this rank. */
#ifndef CT_BENCH_BENCH_H
#define CT_BENCH_BENCH_H

#include "bench/ct_bench/options.h"
#include "bench/ct_bench/report.h"
#include "bench/ct_bench/trial.h"
#include "bench/progress.h"

struct bench {
    struct options options;
    int rank, ranks;
    struct room room;
    double *scratch;
    struct limits limits;
    double wire; /* bytes in a us; with --model */
    struct report report;
    int64_t wrong;            /* elements, of all rows */
    struct progress progress; /* of rank 0 */
};

/* Says the sentence with this rank's name; 1. */
int bench_fails(const struct bench *bench, const char *sentence);

/* Fills limits, on rank 0.  All ranks call it; non-zero after a failure, which is said. */
int bench_find_limits(struct bench *bench);

/* A call of an operation at so many elements, and how many elements so many bytes are. */
struct shape bench_shape(const struct bench *bench, ct_group *group, size_t count);
size_t bench_count(const struct bench *bench, const struct operation *operation, size_t bytes);

/* Which algorithm is fastest up to which size, into the file of --tune.  As bench_sweep(). */
int bench_tune(struct bench *bench);

/* All rows.  Non-zero after a failed call, which is said; what is wrong is counted. */
int bench_sweep(struct bench *bench);

/* ---- model.c: the time if only the bytes on each rank's wire counted ------------------- */

/* Bytes in a microsecond, one way, of large messages from rank 0 to the last: into *wire on rank
 * 0.  All ranks call it.  NULL, or a sentence until the next call of libct. */
const char *model_measure(int rank, int ranks, double *wire);

/* Microseconds; NAN where the algorithm has no model.  `bytes` as in a row: of the larger buffer.
 */
double model_of(const char *operation, const char *algorithm, double bytes, int ranks, double wire);

#endif
