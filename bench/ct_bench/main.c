/* SPDX-License-Identifier: Apache-2.0 */
/* ct_bench - the collectives of libct by size: time, bandwidth, and whether they are right.
 *
 *     ctrun --nproc-per-node=4 ct_bench --ops=all_reduce --check --limits
 *
 * For each operation that is wanted and each size, out of place and in place: fill, check, measure,
 * check again, one row.  Conventions are nccl-tests': "bytes" is the size of the larger
 * buffer, "count" what the call is given; bandwidths come from p50.  All ranks do the same and
 * agree on every number, rank 0 alone speaks.
 *
 * Exit code: 0; 1 when a call failed or a result is wrong; 2 for a wrong command line. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/ct_bench/bench.h"
#include "bench/ct_bench/device.h"
#include "include/ct_cuda.h"

int bench_fails(const struct bench *b, const char *sentence)
{
    fprintf(stderr, "ct_bench: rank %d: %s\n", b->rank, sentence);
    return 1;
}

static int say_file(const struct bench *b, const char *file)
{
    char sentence[400];

    snprintf(sentence, sizeof sentence, "%s can't be written: %s", file, strerror(errno));
    return bench_fails(b, sentence);
}

/* Rank 0 decides for all: a rank that learned nothing would wait for one that has left. */
static int open_files(struct bench *b)
{
    const struct options *o = &b->options;
    const char *at_fault;
    int failed = 0;

    if (b->rank == 0 && report_open(&b->report, o->csv, o->json, &at_fault) < 0)
        failed = say_file(b, at_fault);
    if (ct_broadcast(CT_WORLD, &failed, 1, CT_I32, 0, NULL) != CT_OK)
        return bench_fails(b, ct_last_error());
    return failed;
}

/* On all ranks or on none. */
static int open_device(struct bench *b)
{
    char why[200];
    int failed = device_open(why) < 0;

    if (failed)
        bench_fails(b, why);
    if (ct_all_reduce(CT_WORLD, &failed, &failed, 1, CT_I32, CT_MAX, NULL) != CT_OK)
        return bench_fails(b, ct_last_error());
    return failed;
}

/* On all ranks or on none. */
static int get_room(struct bench *b)
{
    /* The least size of an operation may be more than that: one element for each rank. */
    const size_t least = (size_t)b->ranks * ct_dtype_size(b->options.dtype);
    const size_t bytes = b->options.sizes.largest > least ? b->options.sizes.largest : least;
    const int shared = b->options.memory == SHARED_MEMORY;
    char sentence[400];
    int failed;

    b->scratch = malloc(2 * MOST_SAMPLES * sizeof *b->scratch);
    failed = !room_make(&b->room, bytes, b->options.memory) || !b->scratch;
    if (failed) {
        snprintf(sentence, sizeof sentence,
                 "no memory for two buffers of %zu bytes; give smaller sizes%s%s", bytes,
                 shared ? ": " : "", shared ? ct_last_error() : "");
        bench_fails(b, sentence);
    }
    if (ct_all_reduce(CT_WORLD, &failed, &failed, 1, CT_I32, CT_MAX, NULL) != CT_OK)
        return bench_fails(b, ct_last_error());
    return failed;
}

static int use_stream(struct bench *b)
{
    if (!b->options.in_stream)
        return 0;
    b->room.stream = device_stream();
    return ct_set_stream(CT_WORLD, b->room.stream) == CT_OK ? 0 : bench_fails(b, ct_last_error());
}

static int find_wire(struct bench *b)
{
    const char *wrong;

    b->wire = b->options.wire * 1e3;
    if (!b->options.model || b->options.wire > 0)
        return 0;
    wrong = model_measure(b->rank, b->ranks, &b->wire);
    return wrong ? bench_fails(b, wrong) : 0;
}

static int run(struct bench *b)
{
    static const char *const memories[] = { "any", "ct", "cuda" }; /* by enum memory */
    struct heading heading = { b->ranks, b->options.effort.warmup,
                               b->options.limits ? &b->limits : NULL, memories[b->options.memory],
                               0 };
    const char *at_fault;
    int failed;

    if (b->options.memory == DEVICE_MEMORY && open_device(b))
        return 1;
    if (b->options.limits && bench_find_limits(b))
        return 1;
    if (find_wire(b) || get_room(b) || open_files(b) || use_stream(b))
        return 1;
    heading.wire = b->wire;
    if (b->rank == 0)
        report_heading(&b->report, &heading);
    failed = b->options.limits == ONLY_LIMITS ? 0
             : b->options.tune                ? bench_tune(b)
                                              : bench_sweep(b);
    if (b->rank == 0 && report_close(&b->report, &at_fault) < 0)
        failed = say_file(b, at_fault);
    if (b->wrong > 0 && b->rank == 0)
        fprintf(stderr, "ct_bench: %lld wrong elements; see the rows\n", (long long)b->wrong);
    return failed || b->wrong > 0;
}

static int refuse(const struct bench *b)
{
    const struct options *o = &b->options;

    if (b->rank == 0 && o->help)
        printf("%s", options_usage);
    else if (b->rank == 0)
        fprintf(stderr, "ct_bench: %s\n", o->wrong);
    return o->help ? 0 : 2;
}

/* --simulate: the program beside this one, which has the algorithms without a job around them. */
static int become_simulation(char **argv)
{
    const char *shape = argv[1] + strlen("--simulate");
    char path[PATH_MAX + 16];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    char *name;

    path[length > 0 ? length : 0] = 0;
    name = strrchr(path, '/');
    strcpy(name ? name + 1 : path, "network_sim");
    argv[1] = (char *)(uintptr_t)(*shape ? shape + 1 : "--rows=all");
    execv(path, argv);
    fprintf(stderr, "ct_bench: %s: %s\n", path, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    struct bench b = { .rank = -1 };
    int code;

    if (argc > 1 && (!strcmp(argv[1], "--simulate") || !strncmp(argv[1], "--simulate=", 11)))
        return become_simulation(argv);
    options_read(&b.options, argc, argv);
    if (ct_init_process_group(NULL) != CT_OK) {
        fprintf(stderr, "ct_bench: %s\n", ct_last_error());
        return 1;
    }
    b.rank = ct_rank(CT_WORLD);
    b.ranks = ct_size(CT_WORLD);
    if (!b.options.wrong[0] && b.options.root >= b.ranks)
        snprintf(b.options.wrong, sizeof b.options.wrong, "--root=%d is no rank; there are 0 to %d",
                 b.options.root, b.ranks - 1);
    code = b.options.help || b.options.wrong[0] ? refuse(&b) : run(&b);
    /* A launcher stops the others when one ends with an error: not before rank 0 has spoken and
     * its files are whole.  Where a call failed already this one fails too, and that was said. */
    ct_barrier(CT_WORLD, NULL);
    room_free(&b.room);
    free(b.scratch);
    ct_destroy_process_group(CT_WORLD);
    return code;
}
