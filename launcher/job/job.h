/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - runs the workers of one node, from their start to ctrun's exit code. */
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
    int restarted;         /* true if the round costs one of the job's restarts */
    int running;           /* workers of this node that run */
    int lost;              /* workers of this node that failed, with --on-failure=continue */
    int64_t answers_until; /* deadline for the answers of observers after a failure; 0 before */
    struct control_blame observed; /* the last blame for a failed call of another library */
    int takes_deaths;              /* true while take_deaths() walks failures.ended */
    struct worker *first_failed;   /* first worker of this node that failed; NULL if none failed */
    struct worker *failed;         /* the worker that failed last */
    int culprit; /* the rank, on any node, that gets time to end by itself; -1 if no rank does */
    struct root_graph graph;
    char elsewhere[NODE_TEXT]; /* describes a failure on another node; "" if there is none */
};

/* A request to all ranks to stop at the same step (should_stop.c). */
struct should_stop {
    struct event wanted;   /* active when a worker has got SIGTERM */
    struct event deadline; /* the timer of the job's deadline */
    int asked;             /* the request in this round: 0 none, 1 stop, 2 stop without a restart */
    int for_good;          /* true if no restart may follow */
    int64_t due;           /* the deadline, in seconds since the epoch; 0 without a deadline */
    int after_deadline;    /* true if the ranks were asked because of the deadline */
};

/* Why the job ends early. */
struct told_to_stop {
    int signal; /* the signal that ends the job; 0 if the job is not told to end */
    enum told_by { BY_SIGNAL, BY_DEADLINE, BY_LOST_CONNECTION } by;
    int passed_on;  /* the signal with which another node stopped the round; 0 means SIGTERM */
    int impatience; /* number of signals that came after the workers were asked to stop */
};

struct observed {
    const struct job_observer *const *rows;
    void **states; /* states of the first `count` rows */
    int count;
    int draining; /* observers that have not finished their drain(), plus 1 inside drain() */
};

struct job {
    const struct options *options;
    const struct meeting *meeting;
    struct event_base *base;
    struct event signals, grace, spare;
    int signal_fd;
    sigset_t ignored; /* signals that ctrun's parent ignored, but workers must not ignore */
    struct rlimit descriptors; /* RLIMIT_NOFILE when ctrun was started */
    struct program program;
    struct wrapper wrapper;
    struct placement *placement; /* NULL if no option needs a placement */
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
    double started_s; /* when the job started, in seconds since 1970 */
    enum job_state state;
    struct job_round round;
    struct should_stop stop;
    struct told_to_stop told;
    struct worker *reported; /* the worker whose failure ended the job */
    int code;                /* ctrun's exit code */
};

/* Starts `size` workers, and returns ctrun's exit code when the job is over.  The table `observers`
 * ends with NULL. */
int job_run(const struct options *options, const struct meeting *meeting, int size,
            const struct job_observer *const *observers);

/* Returns 1 if workers run and no worker was asked to stop.  Otherwise a rank without calls is not
 * a problem, since a rank that stops calls nothing more. */
int job_moves(const struct job *job);

/* Return the name and the state of the job, as ctctl and the status page show them. */
const char *job_name(const struct job *job);
const char *job_state_words(const struct job *job);

#endif
