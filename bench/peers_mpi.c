/* SPDX-License-Identifier: Apache-2.0 */
/* peers_mpi.c - an MPI's collectives by size, measured as ct_bench measures libct's, for
 * bench/peers.
 *
 *   mpiexec ... peers_mpi OPERATIONS SIZES MS        e.g. all_reduce,barrier 8,65536 50
 *
 * bench/peers compiles it against each MPI that is installed.  A row, of f32 and sum with root 0:
 * fill, call, compare; five calls to warm up; then samples until MS are over: all leave a barrier,
 * one call, each its own time.  p50 and p99 are those of each rank's times, the largest of the
 * ranks'; mean the time of as many calls without a barrier between them.  all_reduce and reduce are
 * in place, since gloo's are; the others are not.  Rank 0 prints
 * "operation,bytes,p50,p99,mean,samples" (us).  A call of more than a second ends its operation:
 * the larger sizes have no row. */
#include "bench/peers_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define WORLD MPI_COMM_WORLD
#define WARM_UP 5
#define LEAST_SAMPLES 5
#define MOST_SAMPLES 10240
#define TOO_LONG_US 1e6

/* ---- Times, in us ------------------------------------------------------------------ */

static double times[MOST_SAMPLES];

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static double longest(double us)
{
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, WORLD);
    return us;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* As many more samples again and again, until the time is over on the slowest rank: an estimate
 * made once would be spoilt by a single interruption. */
static int take_samples(const struct operation *o, const struct call *c, double budget)
{
    const double start = now();
    int samples = 0;

    for (int chunk = LEAST_SAMPLES; samples + chunk <= MOST_SAMPLES; chunk = samples) {
        for (int i = 0; i < chunk; i++, samples++) {
            double began;

            MPI_Barrier(WORLD);
            began = now();
            o->call(c);
            times[samples] = now() - began;
        }
        if (longest(now() - start) >= budget)
            break;
    }
    return samples;
}

static void measure(const struct operation *o, const struct call *c, size_t bytes, double budget)
{
    const int samples = take_samples(o, c, budget);
    double began, p50, p99, mean;

    qsort(times, (size_t)samples, sizeof *times, ascending);
    p50 = longest(times[(samples - 1) / 2]) / o->trips;
    p99 = longest(times[(samples - 1) * 99 / 100]) / o->trips;
    MPI_Barrier(WORLD);
    began = now();
    for (int i = 0; i < samples; i++)
        o->call(c);
    mean = longest((now() - began) / samples) / o->trips;
    if (c->rank == 0) {
        printf("%s,%zu,%.4f,%.4f,%.4f,%d\n", o->name, bytes, p50, p99, mean, samples);
        fflush(stdout);
    }
}

/* 0: on with the next size. */
static int row(const struct operation *o, struct call *c, size_t size, double budget)
{
    const int blocks = o->send_blocks || o->recv_blocks ? c->ranks : 1;
    const size_t count = size / sizeof(float) / (size_t)blocks;
    double began;

    c->count = o->source == NOTHING ? 0 : count > 0 ? (int)count : 1;
    fill(o, c);
    MPI_Barrier(WORLD);
    began = now();
    o->call(c);
    if (longest(now() - began) > TOO_LONG_US)
        return 1;
    if (wrong(o, c) > 0) {
        if (c->rank == 0)
            fprintf(stderr, "peers_mpi: wrong: %s of %zu bytes\n", o->name, size);
        MPI_Abort(WORLD, 1);
    }
    for (int i = 1; i < WARM_UP; i++)
        o->call(c);
    measure(o, c, (size_t)c->count * (size_t)blocks * sizeof(float), budget);
    return o->source == NOTHING;
}

/* ---- The sweep ---------------------------------------------------------------------- */

static int listed(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, length) && (at[length] == ',' || at[length] == 0))
            return 1;
    return 0;
}

static size_t next_size(const char **list)
{
    char *end;
    const size_t size = strtoull(*list, &end, 10);

    *list = *end == ',' ? end + 1 : NULL;
    return size;
}

static float *pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        perror("peers_mpi: mmap");
        MPI_Abort(WORLD, 1);
    }
    return at;
}

int main(int argc, char **argv)
{
    struct call c = { 0 };
    size_t largest = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &c.rank);
    MPI_Comm_size(WORLD, &c.ranks);
    if (argc != 4)
        MPI_Abort(WORLD, 2);
    operations_begin(&c);
    for (const char *list = argv[2]; list;) {
        const size_t size = next_size(&list);

        largest = size > largest ? size : largest;
    }
    largest += (size_t)c.ranks * sizeof(float); /* the least size is an element for each rank */
    c.send = pages(largest);
    c.recv = pages(largest);
    for (int i = 0; i < operation_count; i++) {
        const char *sizes = argv[2];
        int done = !listed(argv[1], operations[i].name);

        while (!done && sizes)
            done = row(&operations[i], &c, next_size(&sizes), atof(argv[3]) * 1e3);
    }
    MPI_Finalize();
    return 0;
}
