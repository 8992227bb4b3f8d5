/* SPDX-License-Identifier: Apache-2.0 */
/* survive.c - a trainer that loses a rank and continues with the others.
 *
 *     ctrun --nproc-per-node=4 --on-failure=continue ./survive
 *
 * Data-parallel least squares: each rank has its own points of y = 3 x + 2, computes the gradient
 * of its part, and an all-reduce adds up the gradients.  Rank 2 dies at step 100 (./survive RANK
 * STEP chooses another rank and step).  The calls of the other ranks then return CT_ERR_PEER.
 * These ranks shrink the group and continue.  Since one may be a step ahead of another, all take
 * over the model of the first survivor. */
#include <ct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 500
#define POINTS 64

struct model {
    double w, b, step;
};

/* One step on this rank's points: the sums of the gradient and of the points. */
static ct_status train_step(ct_group *group, int part, struct model *m)
{
    double sums[3] = { 0, 0, POINTS };
    ct_status status;

    for (int i = 0; i < POINTS; i++) {
        const double x = (i * 7 + part * 3) % 20 / 10.0 - 1, error = m->w * x + m->b - (3 * x + 2);

        sums[0] += error * x;
        sums[1] += error;
    }
    status = ct_all_reduce(group, sums, sums, 3, CT_F64, CT_SUM, NULL);
    if (status != CT_OK)
        return status;
    m->w -= 0.2 * sums[0] / sums[2];
    m->b -= 0.2 * sums[1] / sums[2];
    m->step++;
    return CT_OK;
}

/* A group without the dead, and one model on all of it. */
static ct_status recover(ct_group **group, struct model *m)
{
    ct_group *survivors;
    ct_status status;

    fprintf(stderr, "survive: step %g: %s\n", m->step, ct_last_error());
    status = ct_shrink_group(*group, 10000, &survivors);
    if (status != CT_OK)
        return status;
    if (*group != CT_WORLD)
        ct_destroy_process_group(*group);
    *group = survivors;
    return ct_broadcast(survivors, m, 3, CT_F64, 0, NULL);
}

int main(int argc, char **argv)
{
    const int victim = argc > 2 ? atoi(argv[1]) : 2, when = argc > 2 ? atoi(argv[2]) : 100;
    struct model m = { 0, 0, 0 };
    ct_group *group = CT_WORLD;
    ct_status status = ct_init_process_group(NULL);
    const int part = ct_rank(CT_WORLD);

    while (status == CT_OK && m.step < STEPS) {
        if (part == victim && m.step == when)
            raise(SIGKILL);
        status = train_step(group, part, &m);
        while (status == CT_ERR_PEER) /* one more may die while we recover */
            status = recover(&group, &m);
    }
    if (status != CT_OK) {
        fprintf(stderr, "survive: %s\n", ct_last_error());
        return 1;
    }
    if (ct_rank(group) == 0)
        printf("%d of %d ranks found y = %.3f x + %.3f\n", ct_size(group), ct_size(CT_WORLD), m.w,
               m.b);
    if (group != CT_WORLD)
        ct_destroy_process_group(group);
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
