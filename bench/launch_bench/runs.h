/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - starts a launcher, waits for its end, leaves nothing of it; and the samples, by case and
 * launcher. */
#ifndef LAUNCH_BENCH_RUNS_H
#define LAUNCH_BENCH_RUNS_H

#include <sys/types.h>

#include "bench/launch_bench/page.h"

/* ---- Figures ----------------------------------------------------------------------- */

struct figure {
    char name[48];
    const char *unit, *launcher;
    double *values;
    int count, room;
};

struct figures {
    struct figure *list;
    int count;
};

__attribute__((format(printf, 5, 6))) void figure_add(struct figures *figures, const char *launcher,
                                                      const char *unit, double value,
                                                      const char *format, ...);

/* case=wall/64 unit=ms launcher=ctrun median=20.1 min=18.0 runs=31 */
void figures_print(struct figures *figures);

/* ---- Runs -------------------------------------------------------------------------- */

#define MOST_LAUNCHERS 8

struct launcher {
    const char *name;
    char *command; /* words; %d stands for the number of workers */
    int slow;      /* it took SLOW_MS once: it gets fewer rounds */
};

struct bench {
    struct launcher launchers[MOST_LAUNCHERS];
    int count, quick;
    struct page *page;
    char page_path[64]; /* for workers */
    char worker[4096];  /* the program */
    struct figures figures;
};

struct run {
    pid_t pid;
    int64_t began, ended;
    double cpu_ms; /* the launcher's, and of all processes that it waited for */
};

_Noreturn void die(const char *what);

/* program NULL: our worker, and mode says what it does.  Forgets the page of the run before. */
struct run run_start(struct bench *bench, struct launcher *launcher, int workers,
                     const char *program, const char *mode);

/* 0, or -1 when it was still there after the limit.  Kills what is left of the run either way. */
int run_wait(struct launcher *launcher, struct run *run);

/* 0 when all workers are up; else the run is ended as by run_wait(), and -1. */
int run_ready(struct bench *bench, struct run *run, int workers);

/* Stops a run whose workers idle. */
void run_stop(struct run *run);

/* Calls round(bench, launcher, workers) for each launcher, in turns that begin with another
 * one each time, `rounds` times.  A round gives -1 for a run that hung; after two of them the
 * launcher is left out. */
void interleave(struct bench *bench, int rounds, int workers,
                int (*round)(struct bench *bench, struct launcher *launcher, int workers));

/* ---- memory.c: while all workers idle ---------------------------------------------- */

void memory(struct bench *bench);
void idle(struct bench *bench);

#endif
