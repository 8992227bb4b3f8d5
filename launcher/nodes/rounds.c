/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - begins and ends rounds on all nodes together, and decides after a failure whether the
 * job restarts or ends.  wait_for_nodes.c decides when enough nodes have joined for a round. */
#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/coordinator.h"
#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

/* ---- How many restarts are left ---------------------------------------------- */

static void rounds_forget(struct restarts *b, int64_t before)
{
    int old = 0;

    while (old < b->used && b->times[old] <= before)
        old++;
    b->used -= old;
    memmove(b->times, b->times + old, (size_t)b->used * sizeof *b->times);
}

/* Uses up one restart.  Returns 1; 0 if no restart is left.  A restart no longer counts when it is
 * older than the window of --max-restarts. */
static int restarts_take(struct restarts *b, int64_t now_ms)
{
    if (b->limit.window_seconds > 0 && b->used > 0)
        rounds_forget(b, now_ms - (int64_t)b->limit.window_seconds * 1000);
    if (b->used >= b->limit.most)
        return 0;
    if (b->used == b->room) {
        const int room = b->room ? 2 * b->room : 8;
        int64_t *grown = realloc(b->times, (size_t)room * sizeof *grown);

        if (!grown)
            return 0;
        b->times = grown;
        b->room = room;
    }
    b->times[b->used++] = now_ms;
    return 1;
}

/* Returns the last restart to the budget, since no restart follows after all. */
static void restarts_give_back(struct restarts *b)
{
    b->used -= b->used > 0;
}

void restarts_free(struct restarts *b)
{
    free(b->times);
    *b = (struct restarts){ .limit = b->limit };
}

static void send_text(const struct member *member, int type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void send_text(const struct member *member, int type, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    if (!member->agent)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    store_agent_send(member->agent, type, text, strlen(text));
}

/* ---- Deaths ------------------------------------------------------------------- */

void rounds_died(struct coordinator *c, const struct member *from, const struct node_death *dead)
{
    const int first = dead->death.rank - from->base;
    char text[NODE_TEXT];

    if (c->phase == WAITING || c->phase == FINISHED || !from->in_round
        || strcmp(dead->generation, c->meet->generation) != 0 || first < 0
        || dead->count > from->workers - first)
        return; /* from an older round, or about another node's workers */
    node_death_print(dead, text);
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i] != from && c->ranked[i]->agent) {
            send_text(c->ranked[i], NODE_DIED, "%s", text);
            store_agent_flush(c->ranked[i]->agent);
        }
    if (from != &c->own)
        c->nodes.hooks->died(c->nodes.job, &dead->death, dead->count);
}

/* ---- Stopping at the same step ------------------------------------------------ */

/* Sends the request to each agent only once.  When a scheduler stops a thousand ctruns, the
 * coordinator gets a request from each of them. */
void rounds_ask_stop(struct coordinator *c, const struct member *from,
                     const struct stop_request *request)
{
    if (c->phase == WAITING || c->phase == FINISHED || !from->in_round
        || c->stop_asked > request->for_good
        || strcmp(request->generation, c->meet->generation) != 0)
        return;
    c->stop_asked = request->for_good + 1;
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i] != from)
            send_text(c->ranked[i], NODE_ASK_STOP, "%s %d", request->generation, request->for_good);
    if (from != &c->own)
        c->nodes.hooks->stop_asked(c->nodes.job, request->for_good);
}

/* ---- A slow rank --------------------------------------------------------------- */

static int rounds_is_same(const struct slow_rank *a, const struct slow_rank *b)
{
    return a->rank == b->rank && a->node == b->node;
}

/* Returns the mean of the results of two successive windows. */
static struct slow_rank mean_of(const struct slow_rank *a, const struct slow_rank *b)
{
    struct slow_rank mean = *b;

    mean.share = (a->share + b->share + 1) / 2;
    mean.others_least = (a->others_least + b->others_least + 1) / 2;
    mean.others_most = (a->others_most + b->others_most + 1) / 2;
    return mean;
}

static void compare_shares(struct coordinator *c, const struct collective_shares *shares)
{
    const struct slow_rank slow = slow_rank_among(shares, c->ranked_count);

    if ((slow.rank >= 0 || slow.node >= 0) && rounds_is_same(&slow, &c->slow)
        && !rounds_is_same(&slow, &c->slow_said)) {
        const struct slow_rank mean = mean_of(&c->slow, &slow);

        c->slow_said = slow;
        c->nodes.hooks->slow(c->nodes.job, &mean, slow.node >= 0 ? c->ranked[slow.node]->name : "");
    }
    c->slow = slow;
}

void rounds_shares(struct coordinator *c, struct member *from, const struct node_shares *shares)
{
    struct collective_shares *all;

    if (c->phase != RUNNING || !from->in_round
        || strcmp(shares->generation, c->meet->generation) != 0 || shares->shares.rank < from->base
        || shares->shares.rank >= from->base + from->workers)
        return; /* from an older round, or about another node's workers */
    from->shares = shares->shares;
    from->has_shares = 1;
    for (int i = 0; i < c->ranked_count; i++)
        if (!c->ranked[i]->has_shares)
            return;
    all = calloc((size_t)(unsigned)c->ranked_count, sizeof *all);
    for (int i = 0; i < c->ranked_count; i++) {
        c->ranked[i]->has_shares = 0;
        if (all)
            all[i] = c->ranked[i]->shares;
    }
    if (all)
        compare_shares(c, all);
    free(all);
}

/* ---- A round begins ----------------------------------------------------------- */

/* Sets role_base and role_world, which count only workers of the same role, as torchrun does. */
static void count_role(const struct coordinator *c, int node, struct plan *plan)
{
    for (int i = 0; i < c->ranked_count; i++)
        if (!strcmp(c->ranked[i]->role, c->ranked[node]->role)) {
            plan->role_base += i < node ? c->ranked[i]->workers : 0;
            plan->role_world += c->ranked[i]->workers;
        }
}

/* Writes PMI_process_mapping.  "(vector,(0,2,4),(2,1,1))" means that nodes 0 and 1 have 4 ranks
 * each and node 2 has one rank.  Writes "" if the mapping is too long; the ranks then compare their
 * hosts' names. */
static void map_ranks(struct coordinator *c)
{
    int used = snprintf(c->mapping, sizeof c->mapping, "(vector"), next;

    for (int i = 0; i < c->ranked_count && used < NODE_MAPPING; i = next) {
        for (next = i + 1;
             next < c->ranked_count && c->ranked[next]->workers == c->ranked[i]->workers;)
            next++;
        used += snprintf(c->mapping + used, (size_t)(NODE_MAPPING - used), ",(%d,%d,%d)", i,
                         next - i, c->ranked[i]->workers);
    }
    if (used + 1 < NODE_MAPPING)
        snprintf(c->mapping + used, (size_t)(NODE_MAPPING - used), ")");
    else
        c->mapping[0] = 0;
}

static struct plan plan_of(const struct coordinator *c, int node)
{
    struct plan plan = { .base = c->ranked[node]->base,
                         .world = c->world,
                         .node = node,
                         .nodes = c->ranked_count,
                         .round = c->rounds - 1,
                         .restarts = c->restarts,
                         .generation = c->meet->generation,
                         .mapping = c->mapping,
                         .address = c->meet->address,
                         .port = c->meet->port };

    count_role(c, node, &plan);
    return plan;
}

void rounds_begin(struct coordinator *c)
{
    struct plan plan;

    event_del(&c->tick);
    if (members_rank(c) < 0) {
        c->code = 1;
        snprintf(c->why, sizeof c->why, "%s is out of memory for %d nodes", c->meet->title,
                 c->count);
        rounds_end_job(c);
        return;
    }
    job_rendezvous_new_round(c->meet);
    map_ranks(c);
    fence_begin(c);
    c->slow = c->slow_said = (struct slow_rank){ .rank = -1, .node = -1 };
    c->phase = RUNNING;
    c->rounds++;
    c->code = c->is_cause = c->changed = c->stop_asked = c->signalled = 0;
    c->failed_node = NULL;
    c->failed_rank = c->root_rank = -1;
    c->why[0] = 0;
    for (int i = 0; i < c->ranked_count; i++) { /* send_text() skips this ctrun */
        char text[NODE_TEXT];

        plan = plan_of(c, i);
        node_round_print(&plan, text);
        send_text(c->ranked[i], NODE_ROUND, "%s", text);
    }
    plan = plan_of(c, 0);
    if (c->own.workers == 0)
        plan.node = -1;
    c->nodes.hooks->round(c->nodes.job, &plan); /* comes last, since it may fail at once */
}

/* Removes the nodes that were lost or want to leave, and waits for the next round. */
static void next_round(struct coordinator *c)
{
    for (int i = c->count - 1; i >= 0; i--) {
        struct member *member = c->members[i];

        if (member->leaves)
            send_text(member, NODE_OVER, "%d -1 ", 128 + member->leaves);
        if (member->leaves || (!member->agent && member != &c->own))
            members_remove(c, member);
    }
    c->failed_node = NULL;
    if (c->count < c->min)
        log_line(LOG_WARN, "%s; %d of at least %d nodes are left: the job waits for another one",
                 c->why, c->count, c->min);
    join_wait(c);
}

/* ---- The job ends ------------------------------------------------------------- */

void rounds_leave(struct coordinator *c)
{
    static const struct timeval soon = { 0, 10000 };

    for (int i = 0; i < c->count; i++)
        if (c->members[i]->agent)
            return;
    if (c->is_elastic && clock_ms() < c->newcomers_until
        && store_server_newcomers(c->meet->server) > 0) {
        event_add(&c->tick, &soon);
        return;
    }
    if (c->is_elastic)
        store_server_accept_no_more(c->meet->server);
    event_del(&c->tick);
    c->nodes.hooks->over(c->nodes.job, c->code, c->root_rank,
                         c->failed_node == &c->own ? "" : c->why);
}

/* Sends NODE_OVER to the agents, which then close their connections.  After GOODBYE_SECONDS, the
 * coordinator no longer waits for them. */
void rounds_end_job(struct coordinator *c)
{
    const struct timeval patience = { GOODBYE_SECONDS, 0 };

    c->phase = FINISHED;
    c->newcomers_until = clock_ms() + NEWCOMERS_MS;
    event_add(&c->tick, &patience);
    for (int i = 0; i < c->count; i++)
        send_text(c->members[i], NODE_OVER, "%d %d %s", c->code, c->root_rank,
                  c->failed_node == c->members[i] ? "" : c->why);
    rounds_leave(c);
}

/* ---- A round stops ------------------------------------------------------------ */

/* Stops the workers on all nodes except `from`, where the workers are already stopping.  `culprit`
 * is the rank that gets time to end by itself; -1 if no rank does.  Sets the timer that gives up
 * nodes on which workers still run when SIGKILL must have killed them. */
static void stop_all(struct coordinator *c, const struct member *from, int culprit)
{
    /* Workers that stop at a common step get the timeout twice: before SIGTERM and after it. */
    const struct timeval patience = { 2 * c->options->shutdown_timeout + GOODBYE_SECONDS, 0 };

    event_add(&c->tick, &patience);
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i] != from)
            send_text(c->ranked[i], NODE_STOP, "%d %d %s", c->signalled, culprit, c->why);
    if (from != &c->own)
        c->nodes.hooks->stop(c->nodes.job, c->signalled, culprit, c->why);
}

/* Stores a failure, unless a failure is stored already.  If no restart follows, the stored failure
 * sets ctrun's exit code and error message. */
static void note_failure(struct coordinator *c, const struct member *from,
                         const struct failure *failure)
{
    if (c->code != 0)
        return;
    c->code = failure->code;
    c->failed_node = from;
    c->failed_rank = failure->rank;
    c->is_cause = failure->is_cause;
    snprintf(c->why, sizeof c->why, "%s: %.900s", from->name, failure->what);
}

static int all_are_connected(const struct coordinator *c)
{
    for (int i = 0; i < c->ranked_count; i++)
        if (!c->ranked[i]->agent && c->ranked[i] != &c->own)
            return 0;
    return 1;
}

/* Sets the phase to RESTARTING or STOPPING.  A fixed job does not restart after it has lost a
 * node. */
static void decide_what_follows(struct coordinator *c, const struct failure *failure)
{
    const int again = failure->may_restart && (c->is_elastic || all_are_connected(c))
                      && (c->phase == RESTARTING || restarts_take(&c->budget, clock_ms()));

    c->phase = again ? RESTARTING : STOPPING;
}

static void stop_the_round(struct coordinator *c, const struct member *from,
                           const struct failure *failure)
{
    decide_what_follows(c, failure);
    stop_all(c, from, failure->culprit);
}

/* Replaces the stored failure by a later report if the stored failure is an exit and the later one
 * is a death by signal or a lost node.  The exit may be another node's reaction to the death,
 * although the exit was reported first. */
static void change_failure(struct coordinator *c, const struct member *from,
                           const struct failure *failure)
{
    if (c->signalled || c->is_cause || !failure->is_cause)
        return;
    c->code = 0;
    note_failure(c, from, failure);
    c->changed = 1;
    decide_what_follows(c, failure);
}

void rounds_failed(struct coordinator *c, struct member *from, const struct failure *failure)
{
    if (!from->in_round)
        return;
    if (c->phase == RESTARTING || c->phase == STOPPING)
        change_failure(c, from, failure);
    if (c->phase != RUNNING)
        return;
    c->code = 0; /* earlier losses that --on-failure=continue allowed don't count */
    note_failure(c, from, failure);
    stop_the_round(c, from, failure);
}

/* Counts `count` workers of one member as lost.  Stops the round if too few workers are left. */
static void lose_workers(struct coordinator *c, struct member *from, int count,
                         const struct failure *failure)
{
    int left = c->world;

    note_failure(c, from, failure);
    job_rendezvous_post_death(c->meet, failure->rank, failure->what);
    from->lost += count;
    for (int i = 0; i < c->ranked_count; i++)
        left -= c->ranked[i]->lost;
    if (left < c->options->on_failure.least)
        stop_the_round(c, NULL, failure);
}

void rounds_lost(struct coordinator *c, struct member *from, const struct failure *failure)
{
    if (c->phase == RUNNING && from->in_round && failure->rank >= from->base
        && failure->rank < from->base + from->workers && from->lost < from->workers)
        lose_workers(c, from, 1, failure);
}

/* Ends the job without a restart, since a restart would fail again. */
void rounds_refused(struct coordinator *c, struct member *from, int code)
{
    if (c->phase == RUNNING)
        rounds_failed(c, from,
                      &(struct failure){ -1, -1, code, 0, "it could not start its workers", 1 });
}

/* ---- Nodes join and leave ------------------------------------------------------ */

void rounds_regroup(struct coordinator *c, const struct member *from, const char *why)
{
    if (c->phase != RUNNING)
        return;
    c->phase = REGROUPING;
    c->code = 0;
    c->failed_node = NULL;
    c->failed_rank = -1;
    snprintf(c->why, sizeof c->why, "%s", why);
    stop_all(c, from, -1);
}

/* Handles a node's loss in an elastic job, which continues with the nodes that are left, or with a
 * new node.  The loss is not a failure of the job.  The loss replaces an exit as the reason of the
 * stop, since the exit may be a reaction to the loss. */
static void regroup_without(struct coordinator *c, const struct member *from, const char *what)
{
    char why[NODE_TEXT];

    snprintf(why, sizeof why, "%s: %s", from->name, what);
    rounds_regroup(c, from, why);
    if (c->phase == REGROUPING || c->signalled || c->is_cause) {
        if (strcmp(c->why, why) != 0)
            log_line(LOG_WARN, "%s", why);
        return;
    }
    if (c->phase == RESTARTING)
        restarts_give_back(&c->budget);
    c->phase = REGROUPING;
    c->code = 0;
    c->failed_node = NULL;
    c->failed_rank = -1;
    c->is_cause = c->changed = 1;
    snprintf(c->why, sizeof c->why, "%s", why);
}

/* Counts the workers of a lost node as dead.  If the node's ctrun is still alive, it stops these
 * workers, since it has lost the coordinator. */
void rounds_lose_node(struct coordinator *c, struct member *from)
{
    const struct node_death dead =
        node_host_lost(c->meet->generation, from->base, from->workers, from->host,
                       from->silent || from->unreachable ? CONTROL_SILENT : CONTROL_CLOSED);
    struct failure failure = {
        -1, -1, 1, 0, "its ctrun was lost: its connection was closed", !from->ended
    };
    const int stood_still = heartbeat_stood_still(&c->heartbeat);
    char words[128];

    if (from->silent) {
        snprintf(words, sizeof words, "its ctrun was lost: it has not answered for %lld s",
                 (long long)c->heartbeat.patience_ms / 1000);
        failure.what = words;
    } else if (from->unreachable) {
        failure.what = "its ctrun was lost: its host does not answer any more";
    } else if (stood_still > 0) {
        snprintf(words, sizeof words,
                 "its ctrun was lost: its connection was closed after %s had not run for %d s",
                 c->meet->title, stood_still);
        failure.what = words;
    }
    if (!from->ended)
        rounds_died(c, from, &dead);
    if (c->options->on_failure.go_on && !c->is_elastic && !from->ended && c->phase == RUNNING) {
        log_line(LOG_WARN, "%s: %s", from->name, failure.what);
        lose_workers(c, from, from->workers - from->lost, &failure);
        return;
    }
    if (c->is_elastic) {
        if (!from->ended)
            regroup_without(c, from, failure.what);
        return;
    }
    rounds_failed(c, from, &failure);
    if (c->phase == RESTARTING)
        c->phase = STOPPING;
    if (c->failed_node != from) /* another failure is the job's failure */
        log_line(LOG_WARN, "%s: %s", from->name, failure.what);
}

/* ---- A round ends ------------------------------------------------------------- */

/* Returns 1, and sets c->code to the workers' exit code, if all workers stopped at a common step
 * as they were asked to.  Else returns 0. */
static int take_code_of_workers(struct coordinator *c)
{
    int code = 0;

    for (int i = 0; i < c->ranked_count; i++) {
        const struct member *member = c->ranked[i];

        if (member->lost == member->workers) /* the other nodes continued without this node */
            continue;
        if (member->end.stop_code < 0)
            return 0;
        if (code == 0)
            code = member->end.stop_code;
    }
    c->code = code;
    c->why[0] = 0;
    return 1;
}

/* Sends the final failure to all nodes if they got another failure before. */
static void announce_changed_failure(struct coordinator *c)
{
    if (!c->changed)
        return;
    for (int i = 0; i < c->ranked_count; i++)
        send_text(c->ranked[i], NODE_STOP, "0 %d %s", c->root_rank,
                  c->failed_node == c->ranked[i] ? "" : c->why);
    c->nodes.hooks->stop(c->nodes.job, 0, c->root_rank, c->failed_node == &c->own ? "" : c->why);
}

/* Returns 1 if nodes leave an elastic job and too few nodes stay for the job to continue. */
static int too_few_stay(const struct coordinator *c)
{
    int leaving = 0;

    for (int i = 0; i < c->count; i++)
        leaving += c->members[i]->leaves != 0;
    return leaving > 0 && c->count - leaving < c->min;
}

static struct member *member_of_rank(const struct coordinator *c, int rank)
{
    for (int i = 0; i < c->ranked_count; i++)
        if (rank >= c->ranked[i]->base && rank < c->ranked[i]->base + c->ranked[i]->workers)
            return c->ranked[i];
    return NULL;
}

/* Replaces the failure that stopped the round by its root cause, if another rank caused it.  Called
 * when all workers on all nodes have ended, since only then the root cause is known.  Does not
 * replace a failure that no other rank can have caused, such as a lost node. */
static void settle_root_cause(struct coordinator *c)
{
    struct failure root = { .rank = -1 };
    const int was_restarting = c->phase == RESTARTING;
    char what[NODE_TEXT];
    struct member *node;

    if ((c->phase != RESTARTING && c->phase != STOPPING) || c->signalled || c->is_cause
        || c->failed_rank < 0 || c->options->on_failure.go_on)
        return;
    c->nodes.hooks->root_cause(c->nodes.job, &root, what);
    node = member_of_rank(c, root.rank);
    if (!node)
        return;
    c->changed |= node != c->failed_node || root.rank != c->failed_rank;
    root.what = what;
    root.may_restart &= c->stop_asked != 2; /* 2: no restart follows */
    c->code = 0;
    note_failure(c, node, &root);
    c->root_rank = root.rank;
    if (root.may_restart != was_restarting) {
        if (was_restarting)
            restarts_give_back(&c->budget);
        decide_what_follows(c, &root);
    }
}

static int rounds_all_are_done(const struct coordinator *c)
{
    for (int i = 0; i < c->ranked_count; i++)
        if (!c->ranked[i]->end.done)
            return 0;
    return 1;
}

void rounds_ended(struct coordinator *c, struct member *from, const struct round_end *end)
{
    if (!from->in_round || from->ended || c->phase == WAITING || c->phase == FINISHED)
        return;
    from->ended = 1;
    from->end = *end;
    for (int i = 0; i < c->ranked_count; i++)
        if (!c->ranked[i]->ended)
            return;
    settle_root_cause(c);
    if ((c->signalled || too_few_stay(c)) && take_code_of_workers(c))
        c->phase = STOPPING;
    if (c->phase == REGROUPING
        && rounds_all_are_done(c)) { /* all had finished before a node joined or left */
        c->phase = RUNNING;
        c->why[0] = 0;
    }
    if (c->phase == RESTARTING || c->phase == REGROUPING) {
        announce_changed_failure(c);
        c->restarts += c->phase == RESTARTING;
        next_round(c);
        return;
    }
    if (c->phase == RUNNING) /* the job succeeds if the other workers did */
        c->code = 0;
    rounds_end_job(c);
}

/* ---- A ctrun is told to stop -------------------------------------------------- */

/* Lets a node leave an elastic job.  If enough nodes are left, these continue, even if the leaving
 * node made all ranks stop at a common step. */
static void leave_job(struct coordinator *c, struct member *from, const char *signal_words,
                      int number)
{
    char why[NODE_TEXT];

    from->leaves = number;
    if (c->phase != RUNNING || !from->in_round || from->ended)
        return;
    snprintf(why, sizeof why, "%s has left the job: its ctrun was told to stop by %s", from->name,
             signal_words);
    rounds_regroup(c, from, why);
}

/* If this ctrun gets a second signal after its own workers have ended, it no longer waits for the
 * other nodes. */
void rounds_signalled(struct coordinator *c, struct member *from, int number)
{
    const int was = c->phase, is_own = from == &c->own;
    char name[32];

    signal_name(number, name, sizeof name);
    if (was == STOPPING && is_own && from->ended)
        rounds_end_job(c);
    if (was == STOPPING || was == FINISHED)
        return;
    if (c->is_elastic && !is_own) {
        leave_job(c, from, name, number);
        return;
    }
    c->phase = STOPPING;
    c->signalled = number;
    c->code = 128 + number;
    c->failed_node = from;
    c->failed_rank = -1;
    snprintf(c->why, sizeof c->why, "%s: its ctrun was told to stop by %s", from->name, name);
    if (number == CONNECTION_LOST) {
        c->signalled = SIGTERM;
        c->code = 1;
        snprintf(c->why, sizeof c->why, "%s: it lost its connection to the ctrun of --hosts",
                 from->name);
    }
    if (was == WAITING)
        rounds_end_job(c);
    else if (was == RUNNING)
        stop_all(c, from, -1);
}
