/* SPDX-License-Identifier: Apache-2.0 */
/* init_observer.c - names the ranks that do not call ct_init_process_group().
 *
 * Each rank that uses libct sets a key in the store before it waits for the others.  ctrun checks
 * these keys once a second, from the first connection to the store until all ranks have arrived.
 * If ranks are missing 5 s after the first arrival, ctrun logs a line that names them, and repeats
 * it every 30 s.  Ranks of a program that does not use libct never arrive.  ctrun then logs nothing
 * and stops checking after QUIET_CHECKS. */
#include <event2/event.h>
#include <stdio.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* Checks without an arrival or a new connection after which ctrun stops checking, since the program
 * probably does not use libct. */
#define QUIET_CHECKS 10

struct init_watch {
    const struct job *job;
    struct event tick;
    int quiet;     /* checks without an arrival since the last connection to the store */
    int64_t first; /* when an arrival was first seen, in ms; 0 if no rank has arrived */
    int64_t say;   /* when to log the next line, in ms */
};

static void init_watch_check_again(struct init_watch *watch)
{
    const struct timeval second = { 1, 0 };

    event_add(&watch->tick, &second);
}

/* Writes what is known of a missing rank, for example "2 (pid 4310 alive, not in init)". */
static void init_watch_describe(const struct worker *worker, char *text, size_t size)
{
    char cause[64];

    if (worker->running) {
        snprintf(text, size, "%d (pid %d alive, not in init)", worker->rank, (int)worker->pid);
        return;
    }
    report_cause(worker, cause, sizeof cause);
    snprintf(text, size, "%d (pid %d %s)", worker->rank, (int)worker->pid, cause);
}

static void init_watch_say(const struct init_watch *watch, int arrived, int64_t waited_ms)
{
    char missing[700] = "";
    size_t used = 0;
    int listed = 0;

    for (int i = 0; i < watch->job->size; i++) {
        char one[128];

        if (job_rendezvous_arrived(&watch->job->meet, watch->job->workers[i].rank))
            continue;
        if (++listed > 8)
            continue; /* the line names at most 8 ranks */
        init_watch_describe(&watch->job->workers[i], one, sizeof one);
        used +=
            (size_t)snprintf(missing + used, sizeof missing - used, "%s%s", used ? ", " : "", one);
    }
    if (listed > 8)
        snprintf(missing + used, sizeof missing - used, " and %d more", listed - 8);
    log_line(LOG_WARN, "waiting %d s: %d/%d ranks are in ct_init_process_group(); missing %s",
             (int)(waited_ms / 1000), arrived, watch->job->size, missing);
}

static void init_watch_tick(evutil_socket_t fd, short what, void *arg)
{
    struct init_watch *watch = arg;
    const int64_t now = clock_ms();
    int arrived = 0;

    (void)fd;
    (void)what;
    if (watch->job->state != RUNNING)
        return;
    for (int i = 0; i < watch->job->size; i++)
        arrived += job_rendezvous_arrived(&watch->job->meet, watch->job->workers[i].rank);
    if (arrived == watch->job->size || (arrived == 0 && ++watch->quiet > QUIET_CHECKS))
        return;
    init_watch_check_again(watch);
    if (arrived > 0 && !watch->first) {
        watch->first = now;
        watch->say = now + 4500; /* 5 s after the arrival, which was about 0.5 s ago */
    }
    if (arrived > 0 && now >= watch->say) {
        init_watch_say(watch, arrived, now - watch->first + 500);
        watch->say = now + 30000;
    }
}

static void on_connection(void *arg)
{
    struct init_watch *watch = arg;

    watch->quiet = 0;
    if (!event_pending(&watch->tick, EV_TIMEOUT, NULL))
        init_watch_check_again(watch);
}

static int init_watch_job_began(void *state, struct job *job)
{
    struct init_watch *watch = state;

    watch->job = job;
    evtimer_assign(&watch->tick, job->base, init_watch_tick, watch);
    return 0;
}

static void init_watch_round_began(void *state, struct job *job)
{
    struct init_watch *watch = state;

    watch->first = watch->say = 0;
    if (job->size > 1 && job->round.running == job->size && job->meet.server)
        store_server_on_connection(job->meet.server, on_connection, watch);
}

const struct job_observer init_observer = { .bytes = sizeof(struct init_watch),
                                            .job_began = init_watch_job_began,
                                            .round_began = init_watch_round_began };
