/* SPDX-License-Identifier: Apache-2.0 */
/* parse_output.h - parses lists of ranks, and the options that say where the workers' input and
 * output go. */
#ifndef CONFIG_VALUES_PARSE_OUTPUT_H
#define CONFIG_VALUES_PARSE_OUTPUT_H

#include "config/values/parse_number.h"

/* The value of --redirects or --tee.  In each byte, bit 0 is stdout and bit 1 is stderr. */
struct stream_spec {
    unsigned char all;       /* for local ranks from 10 on */
    unsigned char ranks[10]; /* by local rank, which has one digit in torchrun's grammar */
};

static inline int stream_spec_of(const struct stream_spec *spec, int local_rank)
{
    return local_rank < 10 ? spec->ranks[local_rank] : spec->all;
}

/* The value of --stdin. */
struct stdin_to {
    enum { STDIN_RANK, STDIN_ALL, STDIN_NONE } kind;
    int rank; /* global rank, for STDIN_RANK */
};

/* The value of --exec-on, such as 3:'gdb --args'. */
struct exec_on {
    const char *ranks;   /* a list of ranks that ends at the ':'; NULL if not given */
    const char *command; /* to be split into words as by a shell */
};

value_parser parse_streams;     /* writes a struct stream_spec */
value_parser parse_rank_filter; /* writes a const char *, integers with commas as in torchrun */
value_parser parse_ranks;       /* writes a const char *, such as 0,4-7,@last or * */
value_parser parse_stdin;
value_parser parse_exec_on;

/* Returns 1 if `rank` is in the list at the start of `text`.  The list ends at '\0' or ':'.  @last
 * means the last rank, world - 1. */
int ranks_have(const char *text, int rank, int world);

/* Returns 1 if local_rank is in a list of --local-ranks-filter.  An empty or NULL text has all
 * ranks. */
int rank_filter_has(const char *text, int local_rank);

#endif
