/* SPDX-License-Identifier: Apache-2.0 */
/* record_bench - what an all-reduce of 8 bytes costs, for bench/record.
 *
 *   record_bench RANKS BATCHES      (BATCHES: at most, of several ranks)
 *
 * Batches of calls on RANKS ranks of this host; rank 0 prints "min=NS p50=NS" of a call, in the
 * best batch and in the middle one.  One rank is this process itself, so that its instructions can
 * be counted from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "include/ct.h"

#define CALLS 1000 /* of a batch */
#define WARM_UP 20 /* batches */
#define LEAST 5    /* batches, however long they take */
#define LONGEST_NS 5e8

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static ct_status batch(void)
{
    double one = 1, sum;
    ct_status status = CT_OK;

    for (int i = 0; i < CALLS && status == CT_OK; i++)
        status = ct_all_reduce(CT_WORLD, &one, &sum, 1, CT_F64, CT_SUM, NULL);
    return status;
}

/* Where processors are taken by others a batch of several ranks may take a second.  All
 * ranks have the same time, so the same number. */
static ct_status agree_on_batches(int *batches)
{
    double began = now_ns(), ns = 0;
    ct_status status = batch();

    if (status == CT_OK)
        ns = now_ns() - began;
    if (status == CT_OK)
        status = ct_all_reduce(CT_WORLD, &ns, &ns, 1, CT_F64, CT_MAX, NULL);
    if (*batches > LONGEST_NS / ns)
        *batches = LONGEST_NS / ns > LEAST ? (int)(LONGEST_NS / ns) : LEAST;
    return status;
}

static int rank_main(int rank, int size, void *arg)
{
    int batches = *(int *)arg;
    double *ns = malloc(sizeof *ns * (size_t)batches);
    ct_status status = ns ? ct_init_process_group(NULL) : CT_ERR_NOMEM;

    for (int i = 0; i < (size > 1 ? 1 : WARM_UP) && status == CT_OK; i++)
        status = batch();
    if (size > 1 && status == CT_OK)
        status = agree_on_batches(&batches);
    for (int i = 0; i < batches && status == CT_OK; i++) {
        const double began = now_ns();

        status = batch();
        ns[i] = (now_ns() - began) / CALLS;
    }
    if (status != CT_OK) {
        fprintf(stderr, "record_bench: rank %d: %s\n", rank, ct_last_error());
        return 1;
    }
    if (rank == 0) {
        qsort(ns, (size_t)batches, sizeof *ns, ascending);
        printf("min=%.1f p50=%.1f\n", ns[0], ns[batches / 2]);
        fflush(stdout);
    }
    free(ns);
    ct_destroy_process_group(CT_WORLD);
    return 0;
}

int main(int argc, char **argv)
{
    const int ranks = argc == 3 ? atoi(argv[1]) : 0;
    int batches = argc == 3 ? atoi(argv[2]) : 0;

    if (ranks < 1 || batches < 1) {
        fprintf(stderr, "usage: record_bench RANKS BATCHES\n");
        return 2;
    }
    return ranks == 1 ? rank_main(0, 1, &batches) : ct_spawn(ranks, rank_main, &batches) != 0;
}
