/* SPDX-License-Identifier: Apache-2.0 */
/* parse_output.h - where the output of which workers goes. */
#ifndef CONFIG_VALUES_PARSE_OUTPUT_H
#define CONFIG_VALUES_PARSE_OUTPUT_H

#include "config/values/parse_number.h"

/* --redirects, --tee: bit 0 is stdout, bit 1 stderr. */
struct stream_spec {
    unsigned char all;       /* for ranks that are not listed */
    unsigned char ranks[10]; /* by local rank; torchrun's grammar has no more */
};

static inline int stream_spec_of(const struct stream_spec *spec, int local_rank)
{
    return local_rank < 10 ? spec->ranks[local_rank] : spec->all;
}

/* --stdin */
struct stdin_to {
    enum { STDIN_RANK, STDIN_ALL, STDIN_NONE } kind;
    int rank; /* global */
};

/* --exec-on=3:'gdb --args' */
struct exec_on {
    const char *ranks;   /* a list of ranks that ends at the ':'; NULL: not given */
    const char *command; /* split into words as by a shell */
};

value_parser parse_streams;     /* struct stream_spec */
value_parser parse_rank_filter; /* const char *: torchrun's, integers with commas */
value_parser parse_ranks;       /* const char *: 0,4-7,@last or * */
value_parser parse_stdin;
value_parser parse_exec_on;

/* 1: rank is in the list at the start of text, which ends at '\0' or ':'. */
int ranks_have(const char *text, int rank, int world);

/* The same for --local-ranks-filter; an empty text has all ranks. */
int rank_filter_has(const char *text, int local_rank);

#endif
