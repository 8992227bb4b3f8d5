/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - how long it takes to start a job, and to end one that does nothing. */
#include "bench/launch_bench/modes.h"
#include "bench/launch_bench/runs.h"

static const int sizes[] = { 1, 4, 16, 64 };

static int wall_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, "/bin/true", NULL);

    if (run_wait(launcher, &run) < 0)
        return -1;
    figure_add(&bench->figures, launcher->name, "ms", (double)(run.ended - run.began) / 1e6,
               "wall/%d", workers);
    figure_add(&bench->figures, launcher->name, "ms", run.cpu_ms, "wall/%d/cpu", workers);
    return 0;
}

static int first_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "leave");
    const int64_t *stamps = bench->page->first[0];
    int64_t earliest = INT64_MAX, latest = 0;

    if (run_wait(launcher, &run) < 0)
        return -1;
    for (int i = 0; i < workers; i++) {
        earliest = stamps[i] < earliest ? stamps[i] : earliest;
        latest = stamps[i] > latest ? stamps[i] : latest;
    }
    if (earliest == 0) /* not all came */
        return 0;
    figure_add(&bench->figures, launcher->name, "ms", (double)(earliest - run.began) / 1e6,
               "first/%d/first", workers);
    if (workers > 1)
        figure_add(&bench->figures, launcher->name, "ms", (double)(latest - run.began) / 1e6,
                   "first/%d/last", workers);
    return 0;
}

static void for_all_sizes(struct bench *bench,
                          int (*round)(struct bench *bench, struct launcher *launcher, int workers))
{
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        interleave(bench, bench->quick ? 5 : sizes[i] > 4 ? 31 : 61, sizes[i], round);
}

void wall(struct bench *bench)
{
    for_all_sizes(bench, wall_round);
}

void first(struct bench *bench)
{
    for_all_sizes(bench, first_round);
}
