/* SPDX-License-Identifier: Apache-2.0 */
/* param_server.c - rank 0 keeps the parameters of a model, the other ranks improve them, each at
 * its own pace (a parameter server).
 *
 *     ctrun --nproc-per-node=4 build/bin/param_server
 *
 *     3 workers made 1200 updates: y = 3.00 x0 - 2.00 x1 + 0.50
 *
 * A worker fetches the parameters, computes a gradient on a sample of its own data, and sends it.
 * The server takes whichever message comes first and answers it.  ct_probe() gives the message's
 * sender, tag and length.  An empty message only asks for the parameters.  A message with the tag
 * DONE says that the worker has finished.  Unlike in an all-reduce, no worker waits for another. */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>

enum { GRADIENT = 1, DONE, PARAMETERS }; /* tags */
enum { MODEL = 3, UPDATES = 400, SAMPLE = 8 };

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "param_server: rank %d: %s\n", ct_rank(CT_WORLD), ct_last_error());
    exit(1);
}

/* ---- Rank 0 ----------------------------------------------------------------------- */

static void serve(int workers)
{
    float model[MODEL] = { 0 }, gradient[MODEL];
    int updates = 0;

    while (workers > 0) {
        ct_message message;

        check(ct_probe(CT_WORLD, CT_ANY_SOURCE, CT_ANY_TAG, &message));
        if (message.count > MODEL || message.dtype != CT_F32) {
            fprintf(stderr, "param_server: rank %d sent %zu elements\n", message.from,
                    message.count);
            exit(1);
        }
        check(ct_recv(CT_WORLD, gradient, message.count, message.dtype, message.from, message.tag,
                      NULL));
        if (message.tag == DONE) {
            workers--;
            continue;
        }
        for (size_t i = 0; i < message.count; i++)
            model[i] -= 0.1f * gradient[i];
        updates++;
        check(ct_send(CT_WORLD, model, MODEL, CT_F32, message.from, PARAMETERS));
    }
    printf("%d workers made %d updates: y = %.2f x0 - %.2f x1 + %.2f\n", ct_size(CT_WORLD) - 1,
           updates, model[0], -model[1], model[2]);
}

/* ---- The others ------------------------------------------------------------------- */

/* From -1 to 1, another sequence on each rank. */
static float draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

/* Of the squared error of a few points of the plane that is to be found. */
static void compute_gradient(const float *model, unsigned *state, float *gradient)
{
    for (int i = 0; i < MODEL; i++)
        gradient[i] = 0;
    for (int i = 0; i < SAMPLE; i++) {
        const float x[MODEL] = { draw(state), draw(state), 1 };
        float error = -(3 * x[0] - 2 * x[1] + 0.5f);

        for (int j = 0; j < MODEL; j++)
            error += model[j] * x[j];
        for (int j = 0; j < MODEL; j++)
            gradient[j] += 2 * error * x[j] / SAMPLE;
    }
}

static void work(void)
{
    float model[MODEL] = { 0 }, gradient[MODEL];
    unsigned state = 7u * (unsigned)ct_rank(CT_WORLD);

    for (int i = 0; i < UPDATES; i++) {
        /* The first message only asks for the parameters. */
        if (i > 0)
            compute_gradient(model, &state, gradient);
        check(ct_send(CT_WORLD, gradient, i > 0 ? MODEL : 0, CT_F32, 0, GRADIENT));
        check(ct_recv(CT_WORLD, model, MODEL, CT_F32, 0, PARAMETERS, NULL));
    }
    check(ct_send(CT_WORLD, NULL, 0, CT_F32, 0, DONE));
}

int main(void)
{
    check(ct_init_process_group(NULL));
    if (ct_size(CT_WORLD) < 2) {
        fprintf(stderr, "param_server: it takes two ranks at least: ctrun --nproc-per-node=4\n");
        return 1;
    }
    if (ct_rank(CT_WORLD) == 0)
        serve(ct_size(CT_WORLD) - 1);
    else
        work();
    check(ct_destroy_process_group(CT_WORLD));
    return 0;
}
