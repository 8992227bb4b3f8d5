/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - a call of libct by one of its algorithms, on simulated hosts. */
#ifndef NETWORK_SIM_SIMULATE_H
#define NETWORK_SIM_SIMULATE_H

#include "bench/network_sim/network.h"

/* The larger of the two buffers has `bytes`, as in ct_bench; of blocks at least one element each.
 */
struct job {
    int operation; /* call_signature.h */
    size_t bytes;
    int hosts, each; /* ranks of a host */
};

struct outcome {
    double us; /* from the last rank's begin to the last one's return */
    struct traffic traffic;
    char failure[300]; /* "": none */
};

/* Runs body(group) on all ranks of `hosts` hosts. */
void simulate(int hosts, int each, ct_status (*body)(ct_group *group), struct outcome *outcome);

/* A row's name and what the library says of it. */
struct row_info {
    const char *name;
    int can, is_chosen;
    double cost; /* us by its model; NAN: it has none */
};

enum { MOST_ROWS = 16 };

/* How many rows the job's operation has, or -1: the library refuses (ct_last_error()). */
int job_rows(const struct job *job, struct row_info rows[MOST_ROWS]);
void job_simulate(const struct job *job, int row, struct outcome *outcome);
/* A sample of ct_bench: a barrier, then the call, the longest of the ranks' own times; after some
 * others, since ranks that returned early come early to the next barrier. */
void job_sample(const struct job *job, int row, struct outcome *outcome);

size_t job_bytes(const struct job *job); /* that its larger buffer has */

/* bound.c */
double job_bound(const struct job *job);

#endif
