/* SPDX-License-Identifier: Apache-2.0 */
/* hier.h - calls of ranks of whom several have each of several GPUs, which don't all reach each
 * other: which way they go, and that they have the bits of the same calls on host memory. */
#ifndef TESTS_CUDA_HIER_H
#define TESTS_CUDA_HIER_H

#include "tests/cuda/calls.h"
#include "tests/harness.h"

/* Bytes of scratch on a GPU: all calls of HIER_COUNT elements are one piece.  Less than in earnest,
 * for each run makes it anew. */
enum { HIER_COUNT = 1777, HIER_CALLS = 3, HIER_SCRATCH = 1 << 20 };

struct hier_run {
    const char *devices; /* a digit for each rank */
    const char *hosts;   /* as CT_FAULT has them; NULL: one, whose GPUs don't reach each other */
    const char *expected;
    const char *of_blocks; /* the same of what has a block for each rank */
    const char *of_averages;
    const char *variable, *value; /* of the environment; NULL: none */
};

#define BY_HIER .expected = "hier", .of_blocks = "hier", .of_averages = "hier"
#define BY_UNEVEN_HIER .expected = "hier", .of_blocks = "hier", .of_averages = "staged"

void hier_settings(const struct hier_run *run);
int hier_forget_settings(void **state); /* also behind a run that failed */
/* The body with the run, by processes and by threads. */
void hier_go(rank_body *body, const struct hier_run *run);
int hier_open(const struct hier_run *run, int rank); /* its GPU */

/* What sends and what receives lie one behind the other, `bytes` each. */
struct hier_buffers {
    char *host, *seen, *there;
    size_t bytes;
};
struct hier_buffers hier_take(size_t bytes);
void hier_give(ct_group *group, struct hier_buffers b);

/* The same call on host memory and on the GPUs'. */
void hier_compare(ct_group *group, const struct hier_run *run, const struct pick *call,
                  const struct hier_buffers *b);
/* All of these kinds, from each root, with several dtypes and ops, in place too. */
void hier_compare_kinds(ct_group *group, const struct hier_run *run, enum kind first,
                        enum kind last);

/* Of four ranks one after the other of the first three dies, behind each hand-over of the group's
 * first or second such call; the others hear who it was. */
void hier_kill_each(const struct hier_run *run, const struct pick *call, const char *operation,
                    int in_call);

#endif
