/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - rounds begin and end on all nodes together. */
#include "launcher/nodes/fixed/rounds.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/signal_name.h"

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

/* ---- Deaths ----------------------------------------------------------------- */

static int base_of(const struct host *h, int member)
{
    int base = 0;

    for (int i = 0; i < member; i++)
        base += h->members[i].workers;
    return base;
}

/* A member speaks of its own workers, and of this round. */
static int is_of(const struct host *h, int from, const struct node_death *dead)
{
    const int first = dead->death.rank - base_of(h, from);

    return h->phase != GATHERING && h->phase != IS_OVER
           && !strcmp(dead->generation, h->meet->generation) && first >= 0
           && dead->count <= h->members[from].workers - first;
}

void rounds_died(struct host *h, int from, const struct node_death *dead)
{
    char text[NODE_TEXT];

    if (!is_of(h, from, dead))
        return;
    node_death_print(dead, text);
    for (int i = 1; i < h->count; i++)
        if (i != from && h->members[i].agent) {
            tell(h, i, NODE_DIED, "%s", text);
            store_agent_flush(h->members[i].agent);
        }
    if (from != 0)
        node_death_deliver(&h->nodes, dead);
}

void rounds_host_lost(struct host *h, int from)
{
    const struct member *member = &h->members[from];
    const struct node_death dead =
        node_host_lost(h->meet->generation, base_of(h, from), member->workers, member->host,
                       member->silent ? CONTROL_SILENT : CONTROL_CLOSED);

    rounds_died(h, from, &dead);
}

void rounds_beat(struct host *h)
{
    for (int i = 1; i < h->count; i++)
        tell(h, i, NODE_BEAT, "%s", "");
}

/* ---- Stopping at the same step ---------------------------------------------- */

void rounds_ask_stop(struct host *h, const struct node_wish *wish)
{
    if (h->phase == GATHERING || h->phase == IS_OVER
        || strcmp(wish->generation, h->meet->generation) != 0
        || !vote_begin(&h->vote, wish, h->nodes.hooks->close_steps(h->nodes.job)))
        return;
    for (int i = 1; i < h->count; i++)
        if (h->members[i].agent && !h->members[i].ended) {
            tell(h, i, NODE_CLOSE, "%s %d", wish->generation, wish->for_good);
            h->members[i].closing = 1;
            vote_expect(&h->vote);
        }
    vote_go(&h->vote);
}

void rounds_closed(struct host *h, int from, const struct node_steps *closed)
{
    if (!h->members[from].closing)
        return;
    h->members[from].closing = 0;
    vote_take(&h->vote, closed);
}

void rounds_stop_decided(void *arg)
{
    struct host *h = arg;
    const struct node_steps result = vote_result(&h->vote);
    char text[NODE_TEXT];

    node_steps_print(&result, text);
    for (int i = 1; i < h->count; i++)
        tell(h, i, NODE_STOP_AT, "%s", text);
    h->nodes.hooks->stop_at(h->nodes.job, result.step, result.for_good);
}

/* ---- Rounds ----------------------------------------------------------------- */

int rounds_world(const struct host *h)
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

void rounds_begin(struct host *h)
{
    struct plan plan = { .base = h->members[0].workers,
                         .world = rounds_world(h),
                         .nodes = h->count,
                         .may_agree = 1,
                         .restarts = h->restarts,
                         .generation = h->meet->generation,
                         .address = h->meet->address,
                         .port = h->meet->port };

    rendezvous_new_round(h->meet);
    vote_reset(&h->vote);
    event_del(&h->tick);
    h->phase = IN_A_ROUND;
    h->code = h->is_cause = h->changed = 0;
    h->culprit = -1;
    h->why[0] = 0;
    for (int i = 0; i < h->count; i++)
        h->members[i].ended = h->members[i].lost = h->members[i].closing = 0;
    for (int i = 1; i < h->count; plan.base += h->members[i++].workers) {
        count_role(h, i, &plan);
        tell(h, i, NODE_ROUND, "%d %d %d %d %d %s", plan.base, plan.world, plan.role_base,
             plan.role_world, plan.restarts, plan.generation);
    }
    plan.base = 0;
    count_role(h, 0, &plan);
    h->nodes.hooks->round(h->nodes.job, &plan); /* last: it may fail at once */
}

void rounds_leave(struct host *h)
{
    for (int i = 1; i < h->count; i++)
        if (h->members[i].agent)
            return;
    event_del(&h->tick);
    h->nodes.hooks->over(h->nodes.job, h->code, h->culprit == 0 ? "" : h->why);
}

/* The others have to hear it: they leave then, or are given up. */
void rounds_end_job(struct host *h)
{
    const struct timeval patience = { GOODBYE_SECONDS, 0 };

    h->phase = IS_OVER;
    event_add(&h->tick, &patience);
    for (int i = 1; i < h->count; i++)
        tell(h, i, NODE_OVER, "%d %s", h->code, h->culprit == i ? "" : h->why);
    rounds_leave(h);
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
    h->is_cause = failure->is_cause;
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
static void decide_what_follows(struct host *h, const struct failure *failure)
{
    const int again = failure->may_restart && all_are_connected(h)
                      && (h->phase == RESTARTING || restarts_take(&h->budget, clock_ms()));

    h->phase = again ? RESTARTING : STOPPING;
}

static void stop_the_round(struct host *h, int from, const struct failure *failure)
{
    decide_what_follows(h, failure);
    stop_all(h, from);
}

/* An exit may be another node's answer to a death that is told only now, or to a node that turns
 * out to be lost: that one goes before it.  All of it is known when the last node has ended. */
static void change_failure(struct host *h, int from, const struct failure *failure)
{
    if (h->signalled || h->is_cause || !failure->is_cause)
        return;
    h->code = 0;
    note_failure(h, from, failure);
    h->changed = 1;
    decide_what_follows(h, failure);
}

void rounds_failed(struct host *h, int from, const struct failure *failure)
{
    if (h->phase == RESTARTING || h->phase == STOPPING)
        change_failure(h, from, failure);
    if (h->phase != IN_A_ROUND)
        return;
    h->code = 0; /* what was lost until now is forgiven */
    note_failure(h, from, failure);
    stop_the_round(h, from, failure);
}

/* `count` workers of one member.  Nobody is signalled as long as enough are left. */
void rounds_lose(struct host *h, int from, int count, const struct failure *failure)
{
    int left = rounds_world(h);

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

void rounds_lost(struct host *h, int from, const struct failure *failure)
{
    if (h->members[from].lost < h->members[from].workers)
        rounds_lose(h, from, 1, failure);
}

/* Another try would end the same way. */
void rounds_refused(struct host *h, int from, int code)
{
    if (h->phase != IN_A_ROUND)
        return;
    rounds_failed(h, from, &(struct failure){ -1, code, 0, "it could not start its workers", 1 });
}

/* Told to stop, all workers did at the step that they agreed on: their exit code counts. */
static void take_code_of_workers(struct host *h)
{
    int code = 0;

    for (int i = 0; i < h->count; i++) {
        if (h->members[i].lost == h->members[i].workers) /* the others went on without them */
            continue;
        if (h->members[i].gave < 0)
            return;
        if (code == 0)
            code = h->members[i].gave;
    }
    h->code = code;
    h->why[0] = 0;
}

/* What the round failed of, to those that were told another failure. */
static void tell_changed(struct host *h)
{
    if (!h->changed)
        return;
    for (int i = 1; i < h->count; i++)
        tell(h, i, NODE_STOP, "%s", h->culprit == i ? "" : h->why);
    h->nodes.hooks->stop(h->nodes.job, h->culprit == 0 ? "" : h->why);
}

void rounds_ended(struct host *h, int from, int gave)
{
    h->members[from].ended = 1;
    h->members[from].gave = gave;
    for (int i = 0; i < h->count; i++)
        if (!h->members[i].ended)
            return;
    if (h->phase == RESTARTING) {
        tell_changed(h);
        h->restarts++;
        rounds_begin(h);
        return;
    }
    if (h->phase == IN_A_ROUND) /* what was lost is forgiven: the rest has succeeded */
        h->code = 0;
    if (h->signalled)
        take_code_of_workers(h);
    if (h->phase != IS_OVER)
        rounds_end_job(h);
}

/* Told again when our own workers are gone, we do not wait for the others any longer. */
void rounds_signalled(struct host *h, int from, int number)
{
    char name[32];
    const int was = h->phase;

    if (was == STOPPING && from == 0 && h->members[0].ended)
        rounds_end_job(h);
    if (was == STOPPING || was == IS_OVER)
        return;
    h->phase = STOPPING;
    h->signalled = 1;
    h->code = 128 + number;
    h->culprit = from;
    signal_name(number, name, sizeof name);
    if (h->count > 1)
        snprintf(h->why, sizeof h->why, "node %d: its ctrun was told to stop by %s", from, name);
    if (was == GATHERING)
        rounds_end_job(h);
    else if (was == IN_A_ROUND)
        stop_all(h, from);
}
