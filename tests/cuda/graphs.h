/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h - calls and CUDA graphs, for tests on the fake driver and the fake NCCL: a rank with a
 * stream that is captured, buffers of numbers, and what must be in them. */
#ifndef TESTS_CUDA_GRAPHS_H
#define TESTS_CUDA_GRAPHS_H

#include "include/ct_cuda.h"
#include "tests/cuda/device.h"
#include "tests/harness.h"

enum { COUNT = 500, LAUNCHES = 4, PARTS = 4 };

/* A rank's GPU, a stream, and buffers there for PARTS * COUNT numbers. */
struct scene {
    ct_group *group;
    int p, me;
    CUstream stream;
    int32_t *send, *recv;
    const char *way; /* of its calls */
};

int scene_set_up(struct scene *s, ct_group *group, int gpus);
/* All ranks together; nothing is enqueued any more. */
void scene_tear_down(const struct scene *s);
void scene_free(const struct scene *s);

/* What each rank gives: number i of it in this round. */
int32_t given(int rank, int round, int i);
/* It is in send, and nothing in recv. */
void put(const struct scene *s, int round);
/* Number i of what is there is expected(s, round, i), of the first `count`. */
typedef int32_t expected_fn(const struct scene *s, int round, int i);
void look(const struct scene *s, const void *there, int round, int count, expected_fn *is);

/* Of the scene's stream.  NULL: the capture was void. */
void begin(const struct scene *s);
CUgraphExec end(const struct scene *s);
void end_and_forget(const struct scene *s);

struct operation {
    ct_status (*make)(const struct scene *s);
    expected_fn *is;
    int in_send, blocks; /* where the result lies; 0: one for each rank */
};

/* From send to recv. */
ct_status all_reduce(const struct scene *s);
int32_t sum_is(const struct scene *s, int round, int i);
extern const struct operation all_reduce_of_sums;

/* The group's calls are in the stream from now on, and it has joined NCCL. */
void join(const struct scene *s);
/* Captures the call: nothing has happened before the first launch, and each has new data. */
void launch_with_new_data(const struct scene *s, const struct operation *o);

/* With four GPUs and NCCL. */
void run_apart(int processes, int threads, rank_body *body, void *arg);
/* Also behind a run that failed. */
int forget_settings(void **state);

#endif
