/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - the workers of one node, from start to verdict. */
#ifndef LAUNCHER_JOB_JOB_H
#define LAUNCHER_JOB_JOB_H

#include <event2/event_struct.h>
#include <signal.h>
#include <sys/resource.h>

#include "config/rendezvous_options.h"
#include "launcher/job/observer.h"
#include "launcher/nodes/control_page_host.h"
#include "launcher/nodes/job_rendezvous.h"
#include "launcher/nodes/nodes.h"
#include "launcher/placement/placement.h"
#include "launcher/report/first_failure.h"
#include "launcher/report/report.h"
#include "launcher/report/root_cause.h"
#include "launcher/workers/spawn.h"
#include "launcher/workers/subreaper.h"
#include "launcher/workers/worker.h"

enum job_state { STAY, MEETING, RUNNING, STOPPING, ENDED, DONE, JOB_STATES };

/* What has happened in the round so far. */
struct job_round {
    int restarted;               /* it costs one of the job's restarts */
    int running;                 /* workers here */
    int lost;                    /* here, with --on-failure=continue */
    int takes_deaths;            /* failures.ended is being walked */
    struct worker *first_failed; /* here */
    struct worker *failed;       /* the one that just has */
    int culprit;                 /* the rank that may end by itself, on any node; -1: none */
    struct root_graph graph;
    char elsewhere[NODE_TEXT]; /* the failure on another node; "": none */
};

/* All ranks shall stop at the same step (should_stop.c). */
struct should_stop {
    struct event wanted;   /* by a worker that got SIGTERM */
    struct event deadline; /* of the job */
    int asked;             /* in this round: 1, 2 for good */
    int for_good;          /* no restart any more */
    int64_t due;           /* seconds since the epoch; 0: no deadline */
    int after_deadline;    /* they were asked for it */
};

/* The job ends early, since ctrun was told so or the deadline is over. */
struct told_to_stop {
    int signal; /* 0: it was not */
    enum told_by { BY_SIGNAL, BY_DEADLINE, BY_LOST_CONNECTION } by;
    int passed_on;  /* the signal by which another node stopped the round; 0: SIGTERM */
    int impatience; /* signals since the workers were asked to stop */
};

struct observed {
    const struct job_observer *const *rows;
    void **states; /* of the first `count` rows */
    int count;
    int draining; /* how many still write of the round that ended */
};

struct job {
    const struct options *options;
    const struct meeting *meeting;
    struct event_base *base;
    struct event signals, grace, spare;
    int signal_fd;
    sigset_t ignored;          /* dispositions that workers must not inherit */
    struct rlimit descriptors; /* that we were started with */
    struct program program;
    struct wrapper wrapper;
    struct placement *placement; /* NULL: workers run where ctrun does */
    struct job_rendezvous meet;
    struct nodes *nodes;
    struct plan plan; /* of the round */
    struct run_folder folder;
    struct output output;
    struct guard guard;
    struct starter starter; /* runs while a round's workers are started */
    struct subreaper subreaper;
    struct control_host control;
    struct oom_watch oom;
    struct first_failure failures;
    struct observed watch;
    struct worker *workers;
    int size;         /* how many */
    double started_s; /* since 1970 */
    enum job_state state;
    struct job_round round;
    struct should_stop stop;
    struct told_to_stop told;
    struct worker *reported; /* the first failure that the job ended for */
    int code;                /* ctrun's */
};

/* Starts `size` workers and returns ctrun's exit code when the last is gone.  observers: a table
 * that a NULL ends. */
int job_run(const struct options *options, const struct meeting *meeting, int size,
            const struct job_observer *const *observers);

/* Its workers run, and none was asked to stop yet: ranks that stop make no calls any more. */
int job_moves(const struct job *job);

/* For ctctl and the status page. */
const char *job_name(const struct job *job);
const char *job_state_words(const struct job *job);

#endif
