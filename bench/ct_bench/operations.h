/* SPDX-License-Identifier: Apache-2.0 */
/* operations.h - the operations that are measured: one row each.
 *
 * A row says how a call is made, how large its buffers are, what must lie in them afterwards,
 * and how nccl-tests makes a bandwidth of it.  Nothing else knows one operation from another. */
#ifndef CT_BENCH_OPERATIONS_H
#define CT_BENCH_OPERATIONS_H

#include <stddef.h>

#include "include/ct.h"

/* A call, as this rank makes it. */
struct shape {
    ct_group *group; /* of all ranks */
    int rank, ranks;
    size_t count; /* as in the call: of the whole, or of each rank's block */
    ct_dtype dtype;
    ct_op op;
    int root;
};

enum who { NOBODY, EVERYONE, ROOT, FIRST_TWO };

/* What "in place" is. */
enum in_place {
    NEVER,
    ALWAYS,       /* there is one buffer */
    SAME,         /* send == recv */
    SEND_IN_RECV, /* this rank's block of recv */
    RECV_IN_SEND  /* this rank's block of send */
};

/* Where a block of a result comes from: see pattern.h. */
struct origin {
    int source;
    size_t start;
};

struct operation {
    const char *name;
    ct_status (*call)(const struct shape *shape, void *send, void *recv);
    enum who sends, receives;
    int send_per_rank, recv_per_rank; /* non-zero: a block for each rank */
    enum in_place in_place;
    struct origin (*origin)(const struct shape *shape, int block);
    double (*bus)(int ranks);  /* bus bandwidth: the algorithm's times this */
    double (*fold)(int ranks); /* of the bytes: what each rank must fold at least ... */
    double (*copy)(int ranks); /* ... and copy, if all share the work and reach all memory */
    /* Of the bytes: what is read and written, by all together, where one reaches all memory. */
    double (*moves)(int ranks, int in_place);
    int reduces, rooted;
    int least_ranks; /* 0: any number */
    int trips; /* messages one after the other, and the time is that of one; 0: it is the call's */
};

extern const struct operation operations[];
extern const int operation_count;

/* Blocks of the larger buffer: its size is what the row is called by. */
int operation_blocks(const struct operation *operation, int ranks);

int takes_part(enum who who, const struct shape *shape);

#endif
