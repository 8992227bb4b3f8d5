/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - a trainer that can be stopped at any time and then resumes where it was.
 *
 *     ctrun --nproc-per-node=4 --max-restarts=3 --restart=on-exit:75 ./stop model.txt
 *
 * All ranks fit one line to the points that each of them has.  When the job must stop (kill -TERM
 * of ctrun or of one rank, --deadline=30s, the end of a Slurm job), ct_should_stop() tells all
 * ranks at the same step.  Then rank 0 saves the model, and all ranks exit with code 75, which asks
 * ctrun for a restart. */
#include <ct.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STEPS 2000
#define POINTS 1000
#define RATE 0.5

struct model {
    double step, slope, offset; /* numbers of one kind travel in one broadcast */
};

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "stop: rank %d: %s\n", ct_rank(CT_WORLD), ct_last_error());
    exit(1);
}

/* Rank 0 reads, all get it; without a file they begin at the beginning. */
static struct model load(const char *path)
{
    struct model model = { 0, 0, 0 };
    FILE *file = ct_rank(CT_WORLD) == 0 ? fopen(path, "r") : NULL;

    if (file) {
        if (fscanf(file, "%lf %lf %lf", &model.step, &model.slope, &model.offset) != 3)
            model = (struct model){ 0, 0, 0 };
        fclose(file);
    }
    check(ct_broadcast(CT_WORLD, &model, 3, CT_F64, 0, NULL));
    return model;
}

/* Under another name first: a reader finds the old file or the new one, never half of it. */
static int save(const char *path, const struct model *model)
{
    char part[4096];
    FILE *file;
    int failed;

    snprintf(part, sizeof part, "%s.part", path);
    if (!(file = fopen(part, "w")))
        return -1;
    failed = fprintf(file, "%.0f %.17g %.17g\n", model->step, model->slope, model->offset) < 0;
    failed |= fclose(file) != 0;
    return failed || rename(part, path) != 0 ? -1 : 0;
}

/* One step down the mean squared error of y = 3x + 1 over the points of all ranks. */
static void train(struct model *model)
{
    double gradient[2] = { 0, 0 };

    for (int i = 0; i < POINTS; i++) {
        const double x = (double)((i * 37 + ct_rank(CT_WORLD) * 11) % POINTS) / POINTS;
        const double error = model->slope * x + model->offset - (3 * x + 1);

        gradient[0] += error * x / POINTS;
        gradient[1] += error / POINTS;
    }
    check(ct_all_reduce(CT_WORLD, gradient, gradient, 2, CT_F64, CT_AVG, NULL));
    model->slope -= RATE * gradient[0];
    model->offset -= RATE * gradient[1];
    model->step++;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "model.txt";
    const struct timespec work = { 0, argc > 2 ? 1000000L * atoi(argv[2]) : 0 }; /* a step's */
    struct model model;
    int stop = 0;

    check(ct_init_process_group(NULL));
    model = load(path);
    if (ct_rank(CT_WORLD) == 0)
        printf("from step %.0f\n", model.step);
    fflush(stdout); /* for who watches */
    while (!stop && model.step < STEPS) {
        train(&model);
        nanosleep(&work, NULL);
        stop = ct_should_stop(CT_WORLD);
    }
    if (stop < 0)
        check((ct_status)stop);
    if (ct_rank(CT_WORLD) == 0 && save(path, &model) < 0) {
        perror(path);
        return 1;
    }
    if (ct_rank(CT_WORLD) == 0)
        printf("%s step %.0f: y = %.4f x + %.4f\n", stop ? "saved at" : "done at", model.step,
               model.slope, model.offset);
    check(ct_barrier(CT_WORLD, NULL)); /* no rank leaves before it is saved */
    check(ct_destroy_process_group(CT_WORLD));
    return stop ? 75 : 0;
}
