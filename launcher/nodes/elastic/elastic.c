/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.c - torchrun's dynamic rendezvous, seen from the event loop.
 *
 * A thread (c10d/agent.c) has news for us: it needs an empty store for the workers, a round
 * begins, the workers have to stop, the job is over.  It has orders from the job by us: a
 * worker failed, all have ended, ctrun was told to stop.  Who hosts the rendezvous stays until
 * the others have heard that the job is over. */
#include "launcher/nodes/elastic/elastic.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define GOODBYE_MS 5000
#define POLITE_SECONDS 3 /* to leave the others in good order when told to stop */

/* ---- The end ---------------------------------------------------------------- */

static void leave(struct dynamic *d)
{
    event_del(&d->goodbye);
    event_del(&d->wake);
    d->nodes.hooks->over(d->nodes.job, d->code, d->why);
}

static void on_goodbye(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval soon = { 0, 2000 };
    struct dynamic *d = arg;

    (void)fd;
    (void)what;
    if (!d->is_over) { /* told to stop, and the rendezvous does not answer */
        d->code = 128 + d->signal;
        leave(d);
    } else if (d->store && store_server_clients(d->store) > 0 && clock_ms() < d->until) {
        event_add(&d->goodbye, &soon);
    } else {
        leave(d);
    }
}

/* Told to stop, our workers did at the step that all agreed on: their exit code counts here. */
static void take_code_of_workers(struct dynamic *d)
{
    if (!d->is_over || !d->for_good || d->gave < 0 || d->code <= 128)
        return;
    d->code = d->gave;
    d->why[0] = 0;
}

static void end_job(struct dynamic *d, int code, const char *why)
{
    d->is_over = 1;
    d->code = code;
    snprintf(d->why, sizeof d->why, "%s", why);
    if (!d->running)
        take_code_of_workers(d);
    d->until = clock_ms() + GOODBYE_MS;
    if (!d->running)
        on_goodbye(-1, 0, d);
}

/* ---- News ------------------------------------------------------------------- */

static void begin_round(struct dynamic *d, struct plan *plan)
{
    d->running = 1;
    d->lost = 0;
    d->ranks = (struct node_workers){ .base = plan->base, .count = d->size };
    d->world = plan->world;
    d->alone = plan->nodes == 1;
    d->closed = 0;
    plan->may_agree = d->alone || d->store || d->host.stream;
    snprintf(d->ranks.generation, sizeof d->ranks.generation, "%s", plan->generation);
    snprintf(d->meet->generation, sizeof d->meet->generation, "%s", plan->generation);
    link_tell(&d->host, NODE_WORKERS, "%s %d %d", d->ranks.generation, d->ranks.base, d->size);
    link_flush(&d->host); /* before any runs: if we die, whose loss would be told? */
    d->nodes.hooks->round(d->nodes.job, plan);
    guests_new_round(&d->guests, d->ranks.generation, &d->nodes);
    if (d->vote.state == VOTE_DECIDED) {
        const struct node_steps result = vote_result(&d->vote);

        dynamic_take_stop(d, &result);
    }
}

static void on_news(evutil_socket_t fd, short what, void *arg)
{
    struct dynamic *d = arg;
    struct c10d_news news;

    (void)fd;
    (void)what;
    c10d_agent_news(d->agent, &news);
    dynamic_take_links(d, &news);
    if (news.changed)
        dynamic_spread(d);
    if (news.verdict)
        d->nodes.hooks->stop(d->nodes.job, news.failed);
    if (news.store_wanted) {
        rendezvous_new_round(d->meet);
        c10d_agent_store(d->agent, d->meet->port, d->meet->generation);
    }
    if (news.round)
        begin_round(d, &news.plan);
    if (news.stop && news.lost && d->running && d->linked)
        dynamic_lose_all_others(d);
    if (news.stop && d->running)
        d->nodes.hooks->stop(d->nodes.job, news.why);
    if (news.over)
        end_job(d, news.code, news.why);
}

/* ---- What this node tells --------------------------------------------------- */

static void dynamic_start(struct nodes *nodes)
{
    pulse_start(&((struct dynamic *)nodes)->pulse); /* the thread has begun */
}

static void dynamic_failed(struct nodes *nodes, const struct failure *failure)
{
    c10d_agent_failed(((struct dynamic *)nodes)->agent, failure);
}

/* MIN counts the workers of this node: nobody knows all of them. */
static void dynamic_lost(struct nodes *nodes, const struct failure *failure)
{
    struct dynamic *d = (struct dynamic *)nodes;

    rendezvous_post_death(d->meet, failure->rank, failure->what);
    if (d->size - ++d->lost >= d->options->on_failure.least)
        return;
    c10d_agent_failed(d->agent, failure);
    d->nodes.hooks->stop(d->nodes.job, "");
}

static void dynamic_refused(struct nodes *nodes, int code)
{
    const struct failure failure = { -1, code, 0, "it could not start its workers", 1 };

    c10d_agent_failed(((struct dynamic *)nodes)->agent, &failure);
}

/* The workers are gone: the rendezvous has that long to answer. */
static void leave_politely(struct dynamic *d)
{
    const struct timeval polite = { POLITE_SECONDS, 0 };

    event_add(&d->goodbye, &polite);
}

static void dynamic_signalled(struct nodes *nodes, int number)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->signal = d->signal ? d->signal : number;
    c10d_agent_signalled(d->agent, number);
    if (!d->running && !d->is_over)
        leave_politely(d);
}

static void dynamic_ended(struct nodes *nodes, int gave)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->running = 0;
    d->gave = gave;
    take_code_of_workers(d);
    if (d->is_over)
        on_goodbye(-1, 0, d);
    else
        c10d_agent_ended(d->agent);
    if (!d->is_over && d->signal)
        leave_politely(d);
}

static struct link_to *dynamic_keeper(struct nodes *nodes)
{
    struct dynamic *d = (struct dynamic *)nodes;

    return d->store ? NULL : &d->host;
}

static void free_rest(struct dynamic *d)
{
    event_del(&d->goodbye);
    store_server_destroy(d->store); /* its agents leave */
    guests_free(&d->guests);
    free(d);
}

static void dynamic_destroy(struct nodes *nodes)
{
    struct dynamic *d = (struct dynamic *)nodes;

    d->is_over = 1;
    c10d_agent_destroy(d->agent);
    event_del(&d->wake);
    dynamic_links_close(d);
    vote_reset(&d->vote);
    free_rest(d);
}

static const struct nodes_ops dynamic_ops = { .start = dynamic_start,
                                              .died = dynamic_died,
                                              .failed = dynamic_failed,
                                              .lost = dynamic_lost,
                                              .refused = dynamic_refused,
                                              .signalled = dynamic_signalled,
                                              .ask_stop = dynamic_ask_stop,
                                              .ended = dynamic_ended,
                                              .keeper = dynamic_keeper,
                                              .destroy = dynamic_destroy };

/* ---- Begin ------------------------------------------------------------------ */

struct nodes *nodes_c10d(struct event_base *base, struct rendezvous *meet,
                         const struct options *options, const struct meeting *meeting, int size,
                         const struct nodes_hooks *hooks, void *job)
{
    struct dynamic *d = calloc(1, sizeof *d);
    struct c10d_config config = { .options = options,
                                  .secret = &meet->policy.secret,
                                  .run_id = meet->run_id,
                                  .host = meeting->host,
                                  .file = meeting->file,
                                  .size = size };

    if (!d) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    d->nodes = (struct nodes){ .ops = &dynamic_ops, .hooks = hooks, .job = job };
    d->meet = meet;
    d->options = options;
    d->size = size;
    d->base = base;
    evtimer_assign(&d->goodbye, base, on_goodbye, d);
    d->gave = -1;
    vote_setup(&d->vote, base, dynamic_decided, d);
    dynamic_links_setup(d);
    if (dynamic_host_or_not(d, meeting) < 0) {
        free_rest(d);
        return NULL;
    }
    config.port = d->port;
    config.hosts = d->store != NULL;
    d->agent = c10d_agent_start(&config);
    if (!d->agent) {
        free_rest(d);
        return NULL;
    }
    event_assign(&d->wake, base, c10d_agent_wake(d->agent), EV_READ | EV_PERSIST, on_news, d);
    event_add(&d->wake, NULL);
    return &d->nodes;
}
