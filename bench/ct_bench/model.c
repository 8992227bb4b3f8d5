/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - what an algorithm over messages would take if only the bytes on each rank's wire
 * counted.
 *
 * N bytes, k ranks, B bytes a second: a naive broadcast takes (k-1) N/B, one in a ring of S
 * segments of the least size N (S+k-2) / (S B), an all-reduce in a ring 2 (k-1)/k N/B; a step's own
 * time, alpha, is left out.  So where messages are small a row takes longer than its model, and
 * where several ranks of a host share a wire that each could fill alone, too.
 *
 * Rows that stay on a host send nothing over a wire, and those of two levels (`nodes`) count a
 * host's wire, not a rank's: by how many ranks that is shared is not known here.  They have none.
 */
#include "bench/ct_bench/bench.h"
#include "collectives/core/pipeline_segment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIRE_BYTES ((size_t)8 << 20)
#define SHOTS 12 /* the best one counts */

static double log2_steps(int ranks)
{
    return ceil(log2(ranks));
}

static double direct_broadcast(double n, int k)
{
    return (k - 1) * n;
}

static double binomial_broadcast(double n, int k)
{
    return log2_steps(k) * n;
}

static double ring_broadcast(double n, int k)
{
    const double s = fmax(ceil(n / (double)LEAST_SEGMENT), 1);

    return n * (s + k - 2) / s;
}

static double parts_round(double n, int k) /* each part goes to all but one, twice */
{
    return 2.0 * (k - 1) / k * n;
}

static double everything_to_all(double n, int k)
{
    return (k - 1) * n;
}

static double doubling(double n, int k)
{
    return log2_steps(k) * n;
}

/* n is that of all blocks: all but a rank's own cross its wire, one way at a time. */
static double blocks(double n, int k)
{
    return (double)(k - 1) / k * n;
}

static double half_of_the_blocks(double n, int k)
{
    return log2_steps(k) * n / 2;
}

static double inputs_to_root(double n, int k)
{
    return (k - 1) * n;
}

static const struct {
    const char *operation, *algorithm;
    double (*on_a_wire)(double n, int k); /* bytes */
} models[] = {
    { "broadcast", "direct", direct_broadcast },
    { "broadcast", "binomial", binomial_broadcast },
    { "broadcast", "ring", ring_broadcast },
    { "reduce", "direct", inputs_to_root },
    { "all_reduce", "ring", parts_round },
    { "all_reduce", "two_shot", parts_round },
    { "all_reduce", "one_shot", everything_to_all },
    { "all_reduce", "recursive_doubling", doubling },
    { "reduce_scatter", "direct", blocks },
    { "gather", "direct", blocks },
    { "all_gather", "ring", blocks },
    { "all_gather", "direct", blocks },
    { "all_gather", "bruck", blocks },
    { "scatter", "direct", blocks },
    { "all_to_all", "pairwise", blocks },
    { "all_to_all", "bruck", half_of_the_blocks },
};

double model_of(const char *operation, const char *algorithm, double bytes, int ranks, double wire)
{
    for (size_t i = 0; algorithm && i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i].operation, operation) && !strcmp(models[i].algorithm, algorithm))
            return models[i].on_a_wire(bytes, ranks) / wire;
    return NAN;
}

/* There, and a word of one byte back: of 8 MiB the word's time is some hundredths. */
static ct_status shot(int rank, int last, void *data, double *us)
{
    const double from = now_us();
    char word = 0;
    ct_status status = CT_OK;

    if (rank == 0) {
        status = ct_send(CT_WORLD, data, WIRE_BYTES, CT_U8, last, 0);
        if (status == CT_OK)
            status = ct_recv(CT_WORLD, &word, 1, CT_U8, last, 0, NULL);
    } else if (rank == last) {
        status = ct_recv(CT_WORLD, data, WIRE_BYTES, CT_U8, 0, 0, NULL);
        if (status == CT_OK)
            status = ct_send(CT_WORLD, &word, 1, CT_U8, 0, 0);
    }
    *us = now_us() - from;
    return status;
}

const char *model_measure(int rank, int ranks, double *wire)
{
    char *data = calloc(1, WIRE_BYTES);
    int failed = !data;
    double best = INFINITY, us;
    ct_status status = ct_all_reduce(CT_WORLD, &failed, &failed, 1, CT_I32, CT_MAX, NULL);

    for (int i = 0; i < SHOTS && ranks > 1 && status == CT_OK && !failed; i++) {
        status = shot(rank, ranks - 1, data, &us);
        best = fmin(best, us);
    }
    free(data);
    *wire = (double)WIRE_BYTES / best;
    if (status != CT_OK)
        return ct_last_error();
    return failed ? "no memory on some rank for the 8 MiB by which the wire is measured; give its "
                    "bandwidth: --model=GB/s"
                  : NULL;
}
