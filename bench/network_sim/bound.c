/* SPDX-License-Identifier: Apache-2.0 */
/* bound.c - what no algorithm can be faster than, by latency and by the bytes of a wire.
 *
 * Latency: a rank that sends one message more each overhead, which all arrive a latency later; so
 * do those that got one.  [postal model: Bar-Noy & Kipnis 1992; with log2(h) alpha as the bound a
 * rank that sends to several at once would be below it]
 * Bytes: what has to leave or reach a host, whatever happens on it.  [Patarasuk & Yuan 2009] */
#include <math.h>
#include <stdlib.h>

#include "bench/network_sim/simulate.h"

/* informed[k]: hosts that know it after k overheads; latency in overheads, rounded down. */
static double in_steps(int hosts, double overhead, double latency)
{
    const int lambda = (int)(latency / overhead), most = 64 * (lambda + 1);
    double *informed = malloc((size_t)most * sizeof *informed);
    int k = 0;

    if (!informed)
        return 0;
    for (informed[0] = 1; informed[k] < hosts && k < most - 1; k++)
        informed[k + 1] = informed[k] + (k + 1 >= lambda ? informed[k + 1 - lambda] : 0);
    free(informed);
    return k * overhead;
}

/* Until each of the hosts can know something of one of them. */
static double latency_bound(int hosts)
{
    const struct network_model *n = &model.network;

    if (hosts == 1)
        return 0;
    if (n->overhead_us < n->alpha_us / 1e4) /* as good as none */
        return n->alpha_us;
    return fmax(n->alpha_us, in_steps(hosts, n->overhead_us, latency_us() + n->overhead_us));
}

double job_bound(const struct job *job)
{
    const double h = job->hosts, beta = model.network.us_per_byte,
                 latency = latency_bound(job->hosts);
    const double n = (double)job_bytes(job), others = n * (h - 1) / h;

    switch (job->operation) {
    case OPERATION_ALL_REDUCE:
        return fmax(latency, 2 * others * beta);
    case OPERATION_BROADCAST:
    case OPERATION_REDUCE:
        return fmax(latency, n * beta);
    case OPERATION_ALL_GATHER:
    case OPERATION_REDUCE_SCATTER:
        return fmax(latency, others * beta);
    default:
        return latency;
    }
}
