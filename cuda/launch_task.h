/* SPDX-License-Identifier: Apache-2.0 */
/* launch_task.h - what the plan of a launch (launch_plan.c) asks about one part of a fold. */
#ifndef CUDA_LAUNCH_TASK_H
#define CUDA_LAUNCH_TASK_H

#include "cuda/launch_plan.h"

enum { PIECE_BYTES = 16 };

/* One part as a launch sees it: `dtype` and `count` are of a copy's own choosing. */
struct task {
    const struct fold *fold;
    ct_dtype dtype;
    size_t count;
    void *const *dst;
    const void *const *src;
    int sources, dsts;
    int scaled; /* some source has a scalar */
};

/* The part's destinations from number `first` on, as many as fit a launch; 0: there are none, or
 * nothing to do.  Beyond the first launch they are copies of the first one. */
int task_of(const struct fold *fold, const void *const *scalars, const struct fold_part *part,
            int first, struct task *task);

enum kernel task_kernel(const struct task *task);
/* As struct span has it. */
unsigned task_head(const struct task *task);
/* Is the fold another one than that from left to right? */
int task_has_partials(const struct task *task);

/* How many pieces a thread of it loads at once. */
unsigned kernel_unrolled(enum kernel kernel);

#endif
