/* SPDX-License-Identifier: Apache-2.0 */
/* systems.h - who is compared, and how a run of each is started and ended. */
#ifndef DETECTION_BENCH_SYSTEMS_H
#define DETECTION_BENCH_SYSTEMS_H

#include <stdio.h>
#include <sys/types.h>

#include "bench/detection_bench/page.h"
#include "bench/detection_bench/rows.h"

#define MOST_NODES 2
#define MOST_STARTED MOST_RANKS

enum start {
    LAUNCHED, /* a launcher on each node */
    PLAIN,    /* a process for each rank, with RANK and its like set */
    SERVED    /* a process on each node that forks ranks when asked: importing PyTorch is slow */
};

struct server {
    pid_t pid;
    FILE *orders, *answers;
};

struct system {
    const char *name;
    enum start start;
    int by_signal; /* a survivor does not return from a call: the launcher sends SIGTERM, or kills
                      it */
    int share;     /* it has one run for so many of ours */
    char *command[MOST_NODES];             /* on one node, on each of two; NULL: not there */
    struct server servers[1 + MOST_NODES]; /* of one node; of two */
    int64_t spent_ns;
};

struct job {
    struct system *system;
    const struct row *row;
    pid_t pids[MOST_STARTED];
    int count;
    int64_t ended; /* SERVED: none; else of the first that was started */
};

/* The words before a command, which bring it to node 0 and node 1; NULL: there is one node only. */
extern const char *node_words[MOST_NODES];

_Noreturn void die(const char *what);

/* NULL: no such system. */
struct system *system_find(const char *name);
extern struct system systems[];
extern const int system_count;

/* Starts the ranks of a row; `page` is where the file is that they share. */
void job_start(struct job *job, struct system *system, const struct row *row, const char *page);

/* 1 when what was started has ended by itself. */
int job_is_over(struct job *job);

/* Waits for the end of what was told to leave; kills what stays.  Nothing is left then. */
void job_end(struct job *job, struct page *page);

void servers_stop(void);

#endif
