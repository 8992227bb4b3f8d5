/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line, in nccl-tests' words where it has them; and the sizes of the rows:
 * a list, or from one to another by a factor. */
#ifndef CT_BENCH_OPTIONS_H
#define CT_BENCH_OPTIONS_H

#include "bench/ct_bench/measure.h"

#define MOST_SIZES 64 /* of two to the power of 0 to 40 there are 41 */

struct sizes {
    size_t bytes[MOST_SIZES]; /* in the order of the rows */
    int count;
    size_t largest;
};

struct size_range {
    size_t begin, end, factor;
};

/* "8", "64K", "16M", "1G", up to 1024G.  -1: it is none. */
int size_read(const char *text, size_t *bytes);

/* "8,64K,16M".  NULL, or from where on it is wrong. */
const char *sizes_list(struct sizes *sizes, const char *list);

void sizes_range(struct sizes *sizes, const struct size_range *range);

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
