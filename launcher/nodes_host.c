/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_host.c - node 0: waits for the others, begins rounds, hears of the first
 * failure, stops all, and begins again or ends the job.
 *
 * Member 0 is this ctrun itself, told by a call; the others are told by a message.
 * A member whose connection breaks counts as failed and ended: its ctrun takes its
 * workers along when it dies, and stops them when it has lost us. */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes.h"
#include "launcher/report.h"
#include "launcher/restarts.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000
#define GOODBYE_SECONDS 5

struct member {
    int joined, ended;
    int workers, lost; /* lost: in this round, with --on-failure=continue */
    char role[256];
    struct store_agent *agent; /* NULL: member 0, or not there */
};

struct host {
    struct nodes nodes;
    struct rendezvous *meet;
    const struct options *options;
    struct member *members;
    int count;
    enum { GATHERING, IN_A_ROUND, RESTARTING, STOPPING, IS_OVER } phase;
    struct restarts budget;
    int restarts;
    int code;    /* of the first failure */
    int culprit; /* the member it was on; -1: nobody's */
    char why[NODE_TEXT];
    struct event tick;
    int64_t since, speak;
};

static void tell(struct host *h, int member, int type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void tell(struct host *h, int member, int type, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    if (!h->members[member].agent)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    store_agent_send(h->members[member].agent, type, text, strlen(text));
}

/* ---- Rounds ----------------------------------------------------------------- */

static int world_of(const struct host *h)
{
    int world = 0;

    for (int i = 0; i < h->count; i++)
        world += h->members[i].workers;
    return world;
}

/* Ranks among the workers of the same role, as torchrun counts them. */
static void count_role(const struct host *h, int which, struct plan *plan)
{
    plan->role_base = plan->role_world = 0;
    for (int i = 0; i < h->count; i++)
        if (!strcmp(h->members[i].role, h->members[which].role)) {
            plan->role_base += i < which ? h->members[i].workers : 0;
            plan->role_world += h->members[i].workers;
        }
}

static void begin_round(struct host *h)
{
    struct plan plan = { .base = h->members[0].workers,
                         .world = world_of(h),
                         .nodes = h->count,
                         .restarts = h->restarts,
                         .generation = h->meet->generation,
                         .address = h->meet->address,
                         .port = h->meet->port };

    rendezvous_new_round(h->meet);
    event_del(&h->tick);
    h->phase = IN_A_ROUND;
    h->code = 0;
    h->culprit = -1;
    h->why[0] = 0;
    for (int i = 0; i < h->count; i++)
        h->members[i].ended = h->members[i].lost = 0;
    for (int i = 1; i < h->count; plan.base += h->members[i++].workers) {
        count_role(h, i, &plan);
        tell(h, i, NODE_ROUND, "%d %d %d %d %d %s", plan.base, plan.world, plan.role_base,
             plan.role_world, plan.restarts, plan.generation);
    }
    plan.base = 0;
    count_role(h, 0, &plan);
    h->nodes.hooks->round(h->nodes.job, &plan); /* last: it may fail at once */
}

static void leave_when_all_have(struct host *h)
{
    for (int i = 1; i < h->count; i++)
        if (h->members[i].agent)
            return;
    event_del(&h->tick);
    h->nodes.hooks->over(h->nodes.job, h->code, h->culprit == 0 ? "" : h->why);
}

/* The others have to hear it: they leave then, or are given up. */
static void end_job(struct host *h)
{
    const struct timeval patience = { GOODBYE_SECONDS, 0 };

    h->phase = IS_OVER;
    event_add(&h->tick, &patience);
    for (int i = 1; i < h->count; i++)
        tell(h, i, NODE_OVER, "%d %s", h->code, h->culprit == i ? "" : h->why);
    leave_when_all_have(h);
}

/* Everybody stops; the member it came from has begun to already.  Who has not stopped
 * when even SIGKILL must have worked is given up. */
static void stop_all(struct host *h, int from)
{
    const struct timeval patience = { h->options->shutdown_timeout + GOODBYE_SECONDS, 0 };

    event_add(&h->tick, &patience);
    for (int i = 1; i < h->count; i++)
        if (i != from)
            tell(h, i, NODE_STOP, "%s", h->why);
    if (from != 0)
        h->nodes.hooks->stop(h->nodes.job, h->why);
}

/* The first one says how the job ends, if it does not begin again. */
static void note_failure(struct host *h, int from, const struct failure *failure)
{
    if (h->code != 0)
        return;
    h->code = failure->code;
    h->culprit = from;
    if (h->count > 1)
        snprintf(h->why, sizeof h->why, "node %d: %s", from, failure->what);
}

static int all_are_connected(const struct host *h)
{
    for (int i = 1; i < h->count; i++)
        if (!h->members[i].agent)
            return 0;
    return 1;
}

/* Again, or never.  Not without a node that was lost. */
static void stop_the_round(struct host *h, int from, const struct failure *failure)
{
    const int again =
        failure->may_restart && all_are_connected(h) && restarts_take(&h->budget, clock_ms());

    h->phase = again ? RESTARTING : STOPPING;
    stop_all(h, from);
}

static void member_failed(struct host *h, int from, const struct failure *failure)
{
    if (h->phase != IN_A_ROUND)
        return;
    note_failure(h, from, failure);
    stop_the_round(h, from, failure);
}

/* `count` workers of one member.  Nobody is signalled as long as enough are left. */
static void lose_workers(struct host *h, int from, int count, const struct failure *failure)
{
    int left = world_of(h);

    if (h->phase != IN_A_ROUND)
        return;
    note_failure(h, from, failure);
    rendezvous_post_death(h->meet, failure->rank, failure->what);
    h->members[from].lost += count;
    for (int i = 0; i < h->count; i++)
        left -= h->members[i].lost;
    if (left < h->options->on_failure.least)
        stop_the_round(h, -1, failure);
}

static void member_lost(struct host *h, int from, const struct failure *failure)
{
    if (h->members[from].lost < h->members[from].workers)
        lose_workers(h, from, 1, failure);
}

/* Another try would end the same way. */
static void member_refused(struct host *h, int from, int code)
{
    if (h->phase != IN_A_ROUND)
        return;
    member_failed(h, from, &(struct failure){ -1, code, 0, "it could not start its workers" });
}

static void member_ended(struct host *h, int from)
{
    h->members[from].ended = 1;
    for (int i = 0; i < h->count; i++)
        if (!h->members[i].ended)
            return;
    if (h->phase == RESTARTING) {
        h->restarts++;
        begin_round(h);
        return;
    }
    if (h->phase == IN_A_ROUND) /* what was lost is forgiven: the rest has succeeded */
        h->code = 0;
    if (h->phase != IS_OVER)
        end_job(h);
}

/* Told again when our own workers are gone, we do not wait for the others any longer. */
static void member_signalled(struct host *h, int from, int number)
{
    char name[32];
    const int was = h->phase;

    if (was == STOPPING && from == 0 && h->members[0].ended)
        end_job(h);
    if (was == STOPPING || was == IS_OVER)
        return;
    h->phase = STOPPING;
    h->code = 128 + number;
    h->culprit = from;
    report_signal(number, name, sizeof name);
    if (h->count > 1)
        snprintf(h->why, sizeof h->why, "node %d: its ctrun was told to stop by %s", from, name);
    if (was == GATHERING)
        end_job(h);
    else if (was == IN_A_ROUND)
        stop_all(h, from);
}

/* ---- Member 0 --------------------------------------------------------------- */

static void host_failed(struct nodes *nodes, const struct failure *failure)
{
    member_failed((struct host *)nodes, 0, failure);
}

static void host_lost(struct nodes *nodes, const struct failure *failure)
{
    member_lost((struct host *)nodes, 0, failure);
}

static void host_refused(struct nodes *nodes, int code)
{
    member_refused((struct host *)nodes, 0, code);
}

static void host_signalled(struct nodes *nodes, int number)
{
    member_signalled((struct host *)nodes, 0, number);
}

static void host_ended(struct nodes *nodes)
{
    member_ended((struct host *)nodes, 0);
}

static void host_destroy(struct nodes *nodes)
{
    struct host *h = (struct host *)nodes;

    if (h->meet->server)
        store_server_on_agents(h->meet->server, NULL, NULL);
    event_del(&h->tick);
    restarts_free(&h->budget);
    free(h->members);
    free(h);
}

static void host_start(struct nodes *nodes);

static const struct nodes_ops host_ops = { .start = host_start,
                                           .failed = host_failed,
                                           .lost = host_lost,
                                           .refused = host_refused,
                                           .signalled = host_signalled,
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

static void start_when_all_are_there(struct host *h)
{
    for (int i = 0; i < h->count; i++)
        if (!h->members[i].joined)
            return;
    event_del(&h->tick);
    begin_round(h);
}

static void refuse(struct store_agent *agent, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(struct store_agent *agent, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line(LOG_WARN, "a node was refused: %s", text);
    store_agent_send(agent, NODE_REFUSED, text, strlen(text));
}

static void take_join(struct host *h, struct store_agent *agent, const char *text)
{
    int node = 0, nodes = 0, workers = 0, role = 0, at = 0;
    char version[32] = "";
    const char *job;

    if (sscanf(text, "%d %d %d %31s %d%n", &node, &nodes, &workers, version, &role, &at) < 5
        || at == 0 || workers < 1 || workers > 1 << 20 || role < 0
        || (size_t)role > sizeof h->members->role - 1 || strlen(text + at) < (size_t)role + 2) {
        refuse(agent, "its words are not understood (\"%.60s\"); is it another version?", text);
        return;
    }
    job = text + at + 1 + role + 1;
    if (strcmp(version, CT_VERSION) != 0)
        refuse(agent, "node %d has ctrun %s, node 0 has %s", node, version, CT_VERSION);
    else if (strcmp(job, h->meet->run_id) != 0)
        refuse(agent, "node %d has --rdzv-id=%.200s, node 0 has --rdzv-id=%.200s", node, job,
               h->meet->run_id);
    else if (nodes != h->count)
        refuse(agent, "node %d has --nnodes=%d, node 0 has --nnodes=%d", node, nodes, h->count);
    else if (node < 1 || node >= h->count)
        refuse(agent, "--node-rank=%d: with --nnodes=%d the others are nodes 1 to %d", node,
               h->count, h->count - 1);
    else if (h->members[node].joined)
        refuse(agent, "there is a node with --node-rank=%d already", node);
    else if (h->phase != GATHERING)
        refuse(agent, "the job runs without node %d", node);
    else {
        h->members[node] = (struct member){ .joined = 1, .workers = workers, .agent = agent };
        snprintf(h->members[node].role, sizeof h->members->role, "%.*s", role, text + at + 1);
        h->nodes.hooks->member(h->nodes.job, node, 1);
        start_when_all_are_there(h);
    }
}

int node_failure(const char *text, struct failure *failure)
{
    int at = 0;

    if (sscanf(text, "%d %d %d %n", &failure->rank, &failure->code, &failure->may_restart, &at) < 3
        || at == 0 || failure->code < 1 || failure->code > 255)
        return -1;
    failure->what = text + at;
    return 0;
}

static void on_said(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes)
{
    struct host *h = arg;
    const int from = member_of(h, agent);
    struct failure failure;
    char text[NODE_TEXT];
    int number = 0;

    node_text(text, sizeof text, data, bytes);
    if (type == NODE_JOIN && from < 0)
        take_join(h, agent, text);
    if (from < 0)
        return;
    if (type == NODE_FAILED && node_failure(text, &failure) == 0)
        member_failed(h, from, &failure);
    else if (type == NODE_LOST && node_failure(text, &failure) == 0)
        member_lost(h, from, &failure);
    else if (type == NODE_CANNOT && sscanf(text, "%d", &number) == 1 && number > 0 && number < 256)
        member_refused(h, from, number);
    else if (type == NODE_SIGNALLED && sscanf(text, "%d", &number) == 1 && number > 0
             && number <= SIGRTMAX)
        member_signalled(h, from, number);
    else if (type == NODE_ENDED)
        member_ended(h, from);
}

/* Its workers are gone too.  No restart without it. */
static void lose_member(struct host *h, int from)
{
    const struct failure failure = { -1, 1, 0, "its ctrun was lost, or the network to it" };

    if (!h->options->on_failure.go_on || h->members[from].ended) {
        member_failed(h, from, &failure);
        if (h->phase != IN_A_ROUND)
            h->phase = STOPPING;
        return;
    }
    log_line(LOG_WARN, "node %d: %s", from, failure.what);
    lose_workers(h, from, h->members[from].workers - h->members[from].lost, &failure);
}

static void on_left(void *arg, struct store_agent *agent)
{
    struct host *h = arg;
    const int from = member_of(h, agent);

    if (from < 0)
        return;
    h->members[from].agent = NULL;
    if (h->phase != IS_OVER)
        h->nodes.hooks->member(h->nodes.job, from, 0);
    if (h->phase == GATHERING) { /* it may come again */
        h->members[from].joined = 0;
    } else if (h->phase == IS_OVER) {
        leave_when_all_have(h);
    } else {
        lose_member(h, from);
        member_ended(h, from);
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
            member_ended(h, i);
        }
}

static const struct store_agent_hooks agent_hooks = { .said = on_said, .left = on_left };

/* ---- Who is missing? -------------------------------------------------------- */

static int there(const struct host *h)
{
    int count = 0;

    for (int i = 0; i < h->count; i++)
        count += h->members[i].joined;
    return count;
}

static void say_who_is_missing(const struct host *h, int64_t waited_ms)
{
    char missing[256] = "";
    size_t used = 0;

    for (int i = 0; i < h->count; i++)
        if (!h->members[i].joined && used < sizeof missing - 16)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d",
                                     used ? ", " : "", i);
    log_line(LOG_WARN, "waiting %d s: %d/%d nodes are at %s port %d; missing --node-rank %s",
             (int)(waited_ms / 1000), there(h), h->count, h->meet->address, h->meet->port, missing);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval second = { 1, 0 };
    struct host *h = arg;
    const int64_t waited = clock_ms() - h->since;

    (void)fd;
    (void)what;
    if (h->phase == IS_OVER) { /* the others do not leave */
        for (int i = 1; i < h->count; i++)
            h->members[i].agent = NULL;
        leave_when_all_have(h);
        return;
    }
    if (h->phase != GATHERING) {
        give_up_the_silent(h);
        return;
    }
    if (waited >= h->speak) {
        say_who_is_missing(h, waited);
        h->speak += NEXT_WORD_MS;
    }
    if (waited < h->options->rdzv_conf.timeout * INT64_C(1000)) {
        event_add(&h->tick, &second);
        return;
    }
    h->code = 1;
    snprintf(
        h->why, sizeof h->why,
        "Timed out after %d seconds waiting for clients. %d/%d clients joined: node 0 waited at "
        "%s port %d (--rdzv-conf=timeout=...)",
        h->options->rdzv_conf.timeout, there(h), h->count, h->meet->address, h->meet->port);
    log_line(LOG_ERROR, "%s", h->why);
    end_job(h);
}

static void host_start(struct nodes *nodes)
{
    const struct timeval second = { 1, 0 };
    struct host *h = (struct host *)nodes;

    h->since = clock_ms();
    h->speak = FIRST_WORD_MS;
    event_add(&h->tick, &second);
    start_when_all_are_there(h);
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
    store_server_on_agents(meet->server, &agent_hooks, h);
    return &h->nodes;
}
