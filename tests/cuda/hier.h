/* SPDX-License-Identifier: Apache-2.0 */
/* hier.h - calls of ranks of whom several have each of several GPUs, which don't all reach each
 * other: which way they go, and that they have the bits of the same calls on host memory. */
#ifndef TESTS_CUDA_HIER_H
#define TESTS_CUDA_HIER_H

#include "tests/harness.h"

enum { HIER_COUNT = 1777, HIER_CALLS = 3 };

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

enum hier_kind {
    BROADCAST,
    REDUCE,
    ALL_REDUCE,
    ALL_GATHER, /* this and what follows: blocks */
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    KINDS
};

struct hier_call {
    enum hier_kind kind;
    int root, in_place;
    int is_list; /* of blocks that lie in another order */
    ct_dtype dtype;
    ct_op op;
    size_t n;
};

int hier_has_root(enum hier_kind kind);
ct_status hier_make(ct_group *group, const struct hier_call *call, char *send, char *recv);

/* What sends and what receives lie one behind the other, `bytes` each. */
struct hier_buffers {
    char *host, *seen, *there;
    size_t bytes;
};
struct hier_buffers hier_take(size_t bytes);
void hier_give(ct_group *group, struct hier_buffers b);

/* The same call on host memory and on the GPUs'. */
void hier_compare(ct_group *group, const struct hier_run *run, const struct hier_call *call,
                  const struct hier_buffers *b);
/* All of these kinds, from each root, with several dtypes and ops, in place too. */
void hier_compare_kinds(ct_group *group, const struct hier_run *run, enum hier_kind first,
                        enum hier_kind last);

/* Of four ranks one after the other of the first three dies, behind each hand-over of the group's
 * first or second such call; the others hear who it was. */
void hier_kill_each(const struct hier_run *run, const struct hier_call *call, const char *operation,
                    int in_call);

#endif
