/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line, in nccl-tests' words where it has them. */
#ifndef CT_BENCH_OPTIONS_H
#define CT_BENCH_OPTIONS_H

#include "bench/ct_bench/measure.h"
#include "bench/ct_bench/sizes.h"

enum limits_wanted { NO_LIMITS, WITH_LIMITS, ONLY_LIMITS };

struct options {
    struct sizes sizes;
    struct size_range range; /* where sizes are not listed */
    ct_dtype dtype;
    ct_op op;
    int root;
    struct effort effort;
    int out_of_place, in_place;
    enum memory memory;
    int in_stream; /* of DEVICE_MEMORY: calls return before they are done */
    int check;
    enum limits_wanted limits;
    int model;       /* show the model of each row's algorithm */
    double wire;     /* its bandwidth in GB/s; 0: measured */
    const char *ops; /* names and commas; NULL: all */
    const char *json, *csv;
    const char *tune; /* the file to write; NULL: rows are shown instead */
    int help;
    char wrong[400]; /* what is wrong with the command line; "": nothing */
};

void options_read(struct options *options, int argc, char **argv);
int options_want(const struct options *options, const char *operation);
extern const char options_usage[];

#endif
