/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator.c - node 0: hears what the others say, those who have joined (join.c), and
 * notices who says nothing any more; rounds.c decides what follows.
 *
 * A member whose connection breaks counts as failed and ended: its ctrun takes its
 * workers along when it dies, and stops them when it has lost us. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/fixed/join.h"
#include "launcher/nodes/fixed/rounds.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* ---- Member 0 --------------------------------------------------------------- */

static void host_died(struct nodes *nodes, const struct control_death *death)
{
    struct host *h = (struct host *)nodes;
    struct node_death dead = { .count = 1, .death = *death };

    snprintf(dead.generation, sizeof dead.generation, "%s", h->meet->generation);
    rounds_died(h, 0, &dead);
}

static void host_failed(struct nodes *nodes, const struct failure *failure)
{
    rounds_failed((struct host *)nodes, 0, failure);
}

static void host_lost(struct nodes *nodes, const struct failure *failure)
{
    rounds_lost((struct host *)nodes, 0, failure);
}

static void host_refused(struct nodes *nodes, int code)
{
    rounds_refused((struct host *)nodes, 0, code);
}

static void host_signalled(struct nodes *nodes, int number)
{
    rounds_signalled((struct host *)nodes, 0, number);
}

static void host_ask_stop(struct nodes *nodes, int for_good)
{
    struct host *h = (struct host *)nodes;
    const struct node_wish wish = node_wish(h->meet->generation, for_good);

    rounds_ask_stop(h, &wish);
}

static void host_ended(struct nodes *nodes, int gave)
{
    rounds_ended((struct host *)nodes, 0, gave);
}

static void host_destroy(struct nodes *nodes)
{
    struct host *h = (struct host *)nodes;

    if (h->meet->server)
        store_server_on_agents(h->meet->server, NULL, NULL);
    event_del(&h->tick);
    pulse_stop(&h->pulse);
    vote_reset(&h->vote);
    restarts_free(&h->budget);
    free(h->members);
    free(h);
}

static void host_start(struct nodes *nodes);

static const struct nodes_ops host_ops = { .start = host_start,
                                           .died = host_died,
                                           .failed = host_failed,
                                           .lost = host_lost,
                                           .refused = host_refused,
                                           .signalled = host_signalled,
                                           .ask_stop = host_ask_stop,
                                           .ended = host_ended,
                                           .destroy = host_destroy };

/* ---- The others ------------------------------------------------------------- */

static int member_of(const struct host *h, const struct store_agent *agent)
{
    for (int i = 1; i < h->count; i++)
        if (h->members[i].agent == agent)
            return i;
    return -1;
}

/* A member speaks for its own workers alone. */
static int is_of(const struct host *h, int from, int rank)
{
    int base = 0;

    for (int i = 0; i < from; i++)
        base += h->members[i].workers;
    return rank >= base && rank < base + h->members[from].workers;
}

/* Before it says that it has ended; while it does, nobody gives it up. */
static void take_trace(struct host *h, struct store_agent *agent, int type, const void *data,
                       size_t bytes)
{
    const struct timeval patience = { GOODBYE_SECONDS, 0 };
    struct timeval until, now;

    h->nodes.hooks->told(h->nodes.job, agent, type, data, bytes);
    evutil_gettimeofday(&now, NULL);
    if (h->phase != GATHERING && event_pending(&h->tick, EV_TIMEOUT, &until)
        && until.tv_sec < now.tv_sec + GOODBYE_SECONDS)
        event_add(&h->tick, &patience);
}

static void on_said(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes)
{
    struct host *h = arg;
    const int from = member_of(h, agent);
    struct failure failure;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps closed;
    char text[NODE_TEXT];
    int number = 0;

    node_text(text, sizeof text, data, bytes);
    if (type == NODE_JOIN && from < 0)
        gather_join(h, agent, text);
    if (from < 0)
        return;
    h->members[from].heard = clock_ms();
    if (type == NODE_FAILED && node_failure(text, &failure) == 0)
        rounds_failed(h, from, &failure);
    else if (type == NODE_LOST && node_failure(text, &failure) == 0 && is_of(h, from, failure.rank))
        rounds_lost(h, from, &failure);
    else if (type == NODE_DIED && node_death_read(text, &dead) == 0
             && is_of(h, from, dead.death.rank))
        rounds_died(h, from, &dead);
    else if (type == NODE_CANNOT && sscanf(text, "%d", &number) == 1 && number > 0 && number < 256)
        rounds_refused(h, from, number);
    else if (type == NODE_SIGNALLED && sscanf(text, "%d", &number) == 1 && number > 0
             && number <= SIGRTMAX)
        rounds_signalled(h, from, number);
    else if (type == NODE_WISH && node_wish_read(text, &wish) == 0)
        rounds_ask_stop(h, &wish);
    else if (type == NODE_CLOSED && node_steps_read(text, &closed) == 0)
        rounds_closed(h, from, &closed);
    else if (type == NODE_ENDED)
        rounds_ended(h, from,
                     sscanf(text, "%d", &number) == 1 && number >= 0 && number < 256 ? number : -1);
    else if ((type == NODE_TRACE || type == NODE_CLOCK) && bytes > 0)
        take_trace(h, agent, type, data, bytes);
}

/* Its workers are gone too.  No restart without it. */
static void lose_member(struct host *h, int from)
{
    struct failure failure = { -1, 1, 0, "its ctrun was lost: its connection was closed",
                               !h->members[from].ended };
    struct node_steps nothing = { .step = 0 };
    char silence[96];

    if (h->members[from].silent) {
        snprintf(silence, sizeof silence, "its ctrun was lost: it has not answered for %lld s",
                 (long long)h->pulse.patience_ms / 1000);
        failure.what = silence;
    }
    if (!h->members[from].ended)
        rounds_host_lost(h, from);
    memcpy(nothing.generation, h->vote.generation, sizeof nothing.generation);
    rounds_closed(h, from, &nothing);

    if (!h->options->on_failure.go_on || h->members[from].ended || h->phase != IN_A_ROUND) {
        rounds_failed(h, from, &failure);
        if (h->phase == RESTARTING)
            h->phase = STOPPING;
        if (h->culprit != from) /* something else is the job's failure */
            log_line(LOG_WARN, "node %d: %s", from, failure.what);
        return;
    }
    log_line(LOG_WARN, "node %d: %s", from, failure.what);
    rounds_lose(h, from, h->members[from].workers - h->members[from].lost, &failure);
}

static void on_left(void *arg, struct store_agent *agent)
{
    struct host *h = arg;
    const int from = member_of(h, agent);

    if (from < 0)
        return;
    h->members[from].agent = NULL;
    h->nodes.hooks->told(h->nodes.job, agent, NODE_TRACE, NULL, 0);
    if (h->phase != IS_OVER)
        h->nodes.hooks->member(h->nodes.job, from, 0);
    if (h->phase == GATHERING) { /* it may come again */
        h->members[from].joined = 0;
    } else if (h->phase == IS_OVER) {
        rounds_leave(h);
    } else {
        lose_member(h, from);
        rounds_ended(h, from, -1);
    }
}

/* Its ctrun does not answer, though the connection stands: stopped, or swapped out. */
static void give_up_the_silent(struct host *h)
{
    for (int i = 1; i < h->count && h->phase != IS_OVER; i++)
        if (!h->members[i].ended) {
            log_line(LOG_ERROR, "node %d does not say that its workers have stopped: given up", i);
            h->members[i].agent = NULL;
            h->phase = STOPPING;
            rounds_ended(h, i, -1);
        }
}

static const struct store_agent_hooks agent_hooks = { .said = on_said, .left = on_left };

/* ---- Time passes ------------------------------------------------------------ */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct host *h = arg;

    (void)fd;
    (void)what;
    if (h->phase == IS_OVER) { /* the others do not leave */
        for (int i = 1; i < h->count; i++)
            h->members[i].agent = NULL;
        rounds_leave(h);
        return;
    }
    if (h->phase == GATHERING)
        gather_tick(h);
    else
        give_up_the_silent(h);
}

static void on_beat(void *arg)
{
    struct host *h = arg;

    rounds_beat(h);
    for (int i = 1; i < h->count; i++) {
        struct member *member = &h->members[i];

        if (member->agent && !member->silent && pulse_is_silent(&h->pulse, member->heard)) {
            member->silent = 1;
            store_agent_end(member->agent);
        }
    }
}

static void host_start(struct nodes *nodes)
{
    struct host *h = (struct host *)nodes;

    if (h->count > 1)
        pulse_start(&h->pulse);
    gather_start(h);
}

struct nodes *nodes_host(struct event_base *base, struct rendezvous *meet,
                         const struct options *options, int size, const struct nodes_hooks *hooks,
                         void *job)
{
    struct host *h = calloc(1, sizeof *h);

    if (!h || !(h->members = calloc((size_t)options->nnodes.max, sizeof *h->members))) {
        log_line(LOG_ERROR, "out of memory for %d nodes", options->nnodes.max);
        free(h);
        return NULL;
    }
    h->nodes = (struct nodes){ .ops = &host_ops, .hooks = hooks, .job = job };
    h->meet = meet;
    h->options = options;
    h->budget.limit = options->max_restarts;
    h->count = options->nnodes.max;
    h->culprit = -1;
    h->members[0] = (struct member){ .joined = 1, .workers = size };
    snprintf(h->members[0].role, sizeof h->members->role, "%s", options->role);
    evtimer_assign(&h->tick, base, on_tick, h);
    vote_setup(&h->vote, base, rounds_stop_decided, h);
    pulse_setup(&h->pulse, base, &options->rdzv_conf, 1, on_beat, h);
    store_server_on_agents(meet->server, &agent_hooks, h);
    return &h->nodes;
}
