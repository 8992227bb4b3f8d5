/* SPDX-License-Identifier: Apache-2.0 */
/* death.c - how soon the others hear that a worker is gone, and whoever started the job.
 *
 * The others obey SIGTERM at once, with exit code 0.  A launcher that sends SIGKILL
 * instead has no figure for sigterm. */
#include "bench/launch_bench/modes.h"
#include "bench/launch_bench/runs.h"

static double since_death(const struct bench *bench, int64_t when)
{
    return (double)(when - bench->page->death) / 1e6;
}

static int death_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "die");
    int64_t latest = 0;
    int told = 0;

    if (run_wait(launcher, &run) < 0)
        return -1;
    if (bench->page->death == 0)
        return 0;
    for (int i = 0; i < workers; i++) {
        told += bench->page->told[i] > 0;
        latest = bench->page->told[i] > latest ? bench->page->told[i] : latest;
    }
    if (told == workers - 1)
        figure_add(&bench->figures, launcher->name, "ms", since_death(bench, latest),
                   "death/%d/last-sigterm", workers);
    figure_add(&bench->figures, launcher->name, "ms", since_death(bench, run.ended),
               "death/%d/return", workers);
    return 0;
}

static int restart_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "die");
    int64_t earliest = INT64_MAX;

    if (run_wait(launcher, &run) < 0)
        return -1;
    for (int i = 0; i < workers; i++)
        if (bench->page->first[1][i] < earliest)
            earliest = bench->page->first[1][i];
    if (bench->page->death > 0 && earliest > 0)
        figure_add(&bench->figures, launcher->name, "ms", since_death(bench, earliest),
                   "restart/%d/first", workers);
    return 0;
}

void death(struct bench *bench)
{
    interleave(bench, bench->quick ? 3 : 31, 4, death_round);
    interleave(bench, bench->quick ? 3 : 31, 16, death_round);
}

void restart(struct bench *bench)
{
    interleave(bench, bench->quick ? 3 : 31, 4, restart_round);
    interleave(bench, bench->quick ? 3 : 31, 16, restart_round);
}
