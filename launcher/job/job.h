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

/* State of the current round. */
struct job_round {
    int restarted;               /* the round costs one of the job's restarts */
    int running;                 /* workers of this node that run */
    int lost;                    /* workers of this node that failed, with --on-failure=continue */
    int takes_deaths;            /* take_deaths() is walking failures.ended */
    struct worker *first_failed; /* first failure on this node; NULL: none */
    struct worker *failed;       /* the worker that failed last */
    int culprit; /* the rank, on any node, that may end by itself; -1: no rank may */
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
    int after_deadline;    /* the ranks were asked because of the deadline */
};

/* Why the job ends early. */
struct told_to_stop {
    int signal; /* that ends the job; 0: the job goes on */
    enum told_by { BY_SIGNAL, BY_DEADLINE, BY_LOST_CONNECTION } by;
    int passed_on;  /* the signal with which another node stopped the round; 0: SIGTERM */
    int impatience; /* signals that came after the workers were asked to stop */
};

struct observed {
    const struct job_observer *const *rows;
    void **states; /* states of the first `count` rows */
    int count;
    int draining; /* observers that still write about the round that ended */
};

struct job {
    const struct options *options;
    const struct meeting *meeting;
    struct event_base *base;
    struct event signals, grace, spare;
    int signal_fd;
    sigset_t ignored;          /* signals that ctrun was started to ignore, but workers must not */
    struct rlimit descriptors; /* the limit that ctrun was started with */
    struct program program;
    struct wrapper wrapper;
    struct placement *placement; /* NULL: workers run where ctrun does */
    struct job_rendezvous meet;
    struct nodes *nodes;
    struct plan plan; /* the round's plan */
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
    int size;         /* number of workers */
    double started_s; /* since 1970 */
    enum job_state state;
    struct job_round round;
    struct should_stop stop;
    struct told_to_stop told;
    struct worker *reported; /* the worker whose failure ended the job */
    int code;                /* ctrun's exit code */
};

/* Starts `size` workers and returns ctrun's exit code when the last one has ended.  A NULL ends the
 * table `observers`. */
int job_run(const struct options *options, const struct meeting *meeting, int size,
            const struct job_observer *const *observers);

/* Says whether workers run and none was asked to stop: a rank that stops makes no more calls. */
int job_moves(const struct job *job);

/* The words that ctctl and the status page show. */
const char *job_name(const struct job *job);
const char *job_state_words(const struct job *job);

#endif
