/* SPDX-License-Identifier: Apache-2.0 */
/* job_internal.h - the job as its four files see it: job.c takes in events and decides,
 * job_round.c starts the workers of a round and clears what is left of them, stop_request.c has
 * them stop at the same step, job_run.c sets up and tears down. */
#ifndef LAUNCHER_JOB_JOB_INTERNAL_H
#define LAUNCHER_JOB_JOB_INTERNAL_H

#include <event2/event_struct.h>
#include <signal.h>
#include <sys/resource.h>

#include "config/rendezvous_options.h"
#include "launcher/job/events.h"
#include "launcher/health/collective_shares.h"
#include "launcher/health/health_endpoint.h"
#include "launcher/health/init_watch.h"
#include "launcher/health/stall_detector.h"
#include "launcher/health/uninterruptible_watch.h"
#include "launcher/nodes/nodes.h"
#include "launcher/nodes/job_rendezvous.h"
#include "launcher/placement/placement.h"
#include "launcher/pmi/pmi_server.h"
#include "launcher/report/first_failure.h"
#include "launcher/report/report.h"
#include "launcher/report/root_cause.h"
#include "launcher/status/status_server.h"
#include "launcher/trace/trace_host.h"
#include "launcher/workers/spawn.h"
#include "launcher/workers/subreaper.h"
#include "launcher/workers/worker.h"

enum job_state { STAY, MEETING, RUNNING, STOPPING, ENDED, DONE, JOB_STATES };
enum job_event {
    ROUND,         /* the nodes are there: start the workers */
    WORKER_FAILED, /* the first of a round */
    WORKER_LOST,   /* it failed, and the others go on */
    WORKER_LEFT,   /* at the step at which all were asked to stop: the others are about to */
    TOLD_TO_STOP,  /* by another node's failure */
    WORKER_STUCK,  /* in the kernel: no restart would help */
    SIGNALLED,     /* ctrun was told to stop */
    SPARE_OVER,    /* a worker that could end by itself still runs */
    GRACE_OVER,    /* workers that were asked to stop still run */
    LAST_WORKER_GONE,
    OVER, /* the job is, on all nodes */
    JOB_EVENTS
};

struct job {
    const struct options *options;
    const struct meeting *meeting;
    struct event_base *base;
    struct event signals, grace, spare, deadline, signalled;
    int signal_fd;
    sigset_t ignored;          /* dispositions that workers must not inherit */
    struct rlimit descriptors; /* that we were started with */
    struct program program;
    struct wrapper wrapper;
    struct job_rendezvous meet;
    struct nodes *nodes;
    struct plan plan; /* of this round */
    int restarted;    /* this round costs one of the job's restarts */
    struct run_folder folder;
    struct oom_watch oom;
    struct first_failure failures;
    struct control_host control;
    struct trace_host trace;
    struct events events;
    struct placement *placement; /* NULL: workers run where ctrun does */
    struct guard guard;
    struct starter starter; /* runs while a round's workers are started */
    struct subreaper subreaper;
    struct uninterruptible_watch uninterruptible;
    struct stall stall;
    struct share_watch shares;
    struct http_server health;
    struct status_server status;
    double started_s; /* since 1970 */
    struct output output;
    struct init_watch init_watch;
    struct pmi_server pmi;
    int serves_pmi;
    enum job_state state;
    struct worker *workers;
    int size, running;
    int takes_deaths;            /* failures.ended is being walked */
    struct worker *first_failed; /* of this round, here: the first that failed */
    struct worker *reported;     /* the first failure that the job ended for */
    struct worker *failed;       /* the one that just has */
    int culprit;                 /* the rank that may end by itself, on any node; -1: none */
    struct root_graph graph;     /* of this round */
    int lost;                    /* in this round, here: with --on-failure=continue */
    char elsewhere[NODE_TEXT];   /* the failure on another node; "": none */
    int signal;                  /* the one that stopped the job; 0: none */
    int passed_on;               /* the signal that another node's ctrun got this round; 0: none */
    int connection_lost;         /* to the ctrun of --hosts; then our relay sent `signal` */
    int impatience;              /* signals since the workers were asked to stop */
    int code;                    /* ctrun's */
    int asked_to_stop;           /* in this round: 1, 2 for good */
    int for_good;                /* no restart any more */
    int64_t stop_by;             /* seconds since the epoch; 0: no deadline */
    int after_deadline;          /* they were asked for it */
    int by_deadline;             /* and stopped for it: `signal` is our own */
};

/* job.c */
void job_event(struct job *job, enum job_event event);
void job_send_rows(struct job *job, unsigned look);           /* of an agent: for the status page */
const char *job_name(const struct job *job);                  /* for ctctl and the status page */
void job_worker_died(void *job, const struct worker *worker); /* tells the other workers, at once */
extern const struct nodes_hooks job_nodes_hooks;
/* 0, or ctrun's exit code and the error is logged. */
int job_listen(struct job *job);

/* job_round.c: what job.c does when a round begins, when its last worker is gone, and when the job
 * is over. */
void job_start_round(struct job *job);
void job_end_round(struct job *job);
void job_finish(struct job *job);
struct failed_round job_failed_round(struct job *job, struct worker *first_failed);

/* stop_request.c */
void job_ask_stop(struct job *job, const char *why, int for_good);
void job_stop_begin(struct job *job);         /* of a round, after its control page is there */
void job_stop_end(struct job *job);           /* before that is gone */
void job_stop_asked(void *job, int for_good); /* by another node */
void job_look_for_signalled(struct job *job); /* a worker that got SIGTERM alone has all stop */
/* The call of ct_should_stop() at which all stop, if it told this worker so and the worker then
 * ended by itself; else 0. */
uint64_t job_stopped_at(const struct job *job, const struct worker *worker);
/* The program calls ct_should_stop() and was asked to stop, so that it ends without a signal. */
int job_stops_itself(const struct job *job);
/* The exit code of the workers if all of them ended so; else -1. */
int job_code_of_stopped(const struct job *job);
void job_deadline_open(struct job *job);

#endif
