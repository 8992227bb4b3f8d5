/* SPDX-License-Identifier: Apache-2.0 */
/* wait_for_nodes.c - the coordinator waits for the nodes of the next round.
 *
 * Each node sends its options about the job when it joins.  If the options differ from the
 * coordinator's, the coordinator refuses the node, tells it what differs, and continues to wait.  A
 * fixed job begins when all nodes have joined.  An elastic job begins with MAX nodes, or with at
 * least MIN nodes when the last call is over (--rdzv-conf=last_call_timeout).  After the first
 * round, an elastic job does not wait for more than MIN nodes; a node that joins later starts a new
 * round.
 *
 * During the wait the coordinator logs what is missing.  The job ends after --rdzv-conf=timeout, or
 * after join_timeout if the job is elastic. */
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "launcher/nodes/coordinator.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* ---- Are there enough nodes? --------------------------------------------------- */

/* Sets the timer to 1 s, or to the end of the last call if that is sooner.  Does not extend the
 * running 1 s when a node joins. */
static void wait_on(struct coordinator *c)
{
    const int64_t left = c->last_call ? c->last_call - clock_ms() : 1000;
    const int64_t ms = left < 0 ? 0 : left < 1000 ? left : 1000;
    const struct timeval wait = { ms / 1000, ms % 1000 * 1000 };

    if (left < 1000 || !event_pending(&c->tick, EV_TIMEOUT, NULL))
        event_add(&c->tick, &wait);
}

static void begin_if_enough(struct coordinator *c)
{
    if (c->count >= c->min && !c->last_call)
        c->last_call = clock_ms() + c->options->rdzv_conf.last_call_timeout * INT64_C(1000);
    if (c->count >= c->max || (c->count >= c->min && c->rounds > 0))
        rounds_begin(c);
    else
        wait_on(c);
}

void join_left(struct coordinator *c)
{
    if (c->count < c->min)
        c->last_call = 0;
}

void join_wait(struct coordinator *c)
{
    event_del(&c->tick); /* set in the last round */
    c->phase = WAITING;
    c->since = clock_ms();
    c->speak = FIRST_WORD_MS;
    c->last_call = 0;
    begin_if_enough(c);
}

/* ---- A node joins -------------------------------------------------------------- */

static void join_refuse(struct store_agent *agent, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses a node.  Logs the node's name and the reason, and sends the reason to the node. */
static void join_refuse(struct store_agent *agent, const char *name, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line(LOG_WARN, "%s was refused: %s", name, text);
    store_agent_send(agent, NODE_REFUSED, text, strlen(text));
    store_agent_end(agent);
}

/* Writes "4" if min and max are equal, else "2:4". */
static void print_range(int min, int max, char text[32])
{
    if (min == max)
        snprintf(text, 32, "%d", max);
    else
        snprintf(text, 32, "%d:%d", min, max);
}

/* Returns the connected node with that number; NULL if there is no such node. */
static const struct member *numbered(const struct coordinator *c, int number)
{
    for (int i = 0; i < c->count; i++)
        if (c->members[i]->number == number && (c->members[i]->agent || c->members[i] == &c->own))
            return c->members[i];
    return NULL;
}

/* Returns 1 if a node has the same options about the job as this ctrun.  Else refuses the node and
 * returns 0. */
static int belongs(const struct coordinator *c, struct store_agent *agent,
                   const struct node_join *join, const char *name)
{
    const char *title = c->meet->title;
    char theirs[32], ours[32];

    print_range(join->min, join->max, theirs);
    print_range(c->min, c->max, ours);
    if (strcmp(join->version, CT_VERSION) != 0)
        join_refuse(agent, name, "it has ctrun %s, %s has %s", join->version, title, CT_VERSION);
    else if (strcmp(join->job, c->meet->run_id) != 0)
        join_refuse(agent, name, "it has --rdzv-id=%.200s, %s has --rdzv-id=%.200s", join->job,
                    title, c->meet->run_id);
    else if ((join->node < 0) != c->is_elastic)
        join_refuse(agent, name, "it has --rdzv-backend=%s, %s has --rdzv-backend=%s",
                    join->node < 0 ? "c10d" : "static", title, c->is_elastic ? "c10d" : "static");
    else if (join->min != c->min || join->max != c->max)
        join_refuse(agent, name, "it has --nnodes=%s, %s has --nnodes=%s", theirs, title, ours);
    else
        return 1;
    return 0;
}

/* Sends NODE_OVER to a node that joins after the end of the job. */
static void tell_the_end(const struct coordinator *c, struct store_agent *agent)
{
    char text[NODE_TEXT];

    snprintf(text, sizeof text, "%d -1 %.1000s", c->code, c->why);
    store_agent_send(agent, NODE_OVER, text, strlen(text));
    store_agent_end(agent);
}

/* Returns 1 if the job has a place for a node now.  Else refuses the node, or tells it that the job
 * is over, and returns 0. */
static int has_place(const struct coordinator *c, struct store_agent *agent,
                     const struct node_join *join, const char *name)
{
    const struct member *other = c->is_elastic ? NULL : numbered(c, join->node);

    if (!c->is_elastic && (join->node < 1 || join->node >= c->max))
        join_refuse(agent, name, "--node-rank=%d: with --nnodes=%d the others are nodes 1 to %d",
                    join->node, c->max, c->max - 1);
    else if (other)
        join_refuse(agent, name, "%s (pid %d) has --node-rank=%d already", other->host, other->pid,
                    join->node);
    else if (members_workers(c) > WORLD_MOST - join->workers)
        join_refuse(agent, name, "with its %d workers the job would have more than %d",
                    join->workers, WORLD_MOST);
    else if (!c->is_elastic && c->phase != WAITING)
        join_refuse(agent, name, "the job runs without it");
    else if (c->phase == FINISHED)
        tell_the_end(c, agent);
    else
        return 1;
    return 0;
}

/* Returns 1 if an elastic job must stop its round for a node that joins.  Returns 0 if the newcomer
 * must wait, because the round has MAX nodes or the workers of a node have ended already. */
static int makes_room(const struct coordinator *c)
{
    if (c->phase != RUNNING || c->ranked_count == c->max)
        return 0;
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i]->ended)
            return 0;
    return 1;
}

void join_agent(struct coordinator *c, struct store_agent *agent, const char *text)
{
    struct member *member;
    struct node_join join;
    char name[96], why[160];

    if (node_join_read(text, &join) < 0) {
        join_refuse(agent, "a node",
                    "its message is not understood (\"%.60s\"); does it run another version?",
                    text);
        return;
    }
    node_join_name(&join, join.node < 0, name, sizeof name);
    if (!belongs(c, agent, &join, name) || !has_place(c, agent, &join, name))
        return;
    if (!(member = members_add(c, &join, agent))) {
        join_refuse(agent, name, "%s is out of memory", c->meet->title);
        return;
    }
    if (!c->is_elastic)
        c->nodes.hooks->member(c->nodes.job, member->number, 1);
    if (c->phase == WAITING)
        begin_if_enough(c);
    else if (makes_room(c)) {
        snprintf(why, sizeof why, "%s has come", name);
        rounds_regroup(c, NULL, why);
    }
}

/* ---- What does the job wait for? ------------------------------------------------ */

/* Writes the nodes that are missing: "--node-rank 1, 3", or under --hosts "hostb (node 1), hostd
 * (node 3)". */
static void list_missing(const struct coordinator *c, char *text, size_t size)
{
    const char *name = c->options->surroundings.host_names;
    size_t used = name ? 0 : (size_t)snprintf(text, size, "--node-rank ");
    int listed = 0;

    for (int i = 0; i < c->max; i++) {
        const int length = name ? (int)strcspn(name, ",") : 0;

        if (!numbered(c, i) && used + (size_t)length + 32 < size)
            used +=
                (size_t)snprintf(text + used, size - used, name ? "%s%.*s (node %d)" : "%s%.*s%d",
                                 listed++ ? ", " : "", length, name ? name : "", i);
        if (name)
            name += length + (name[length] == ',');
    }
}

static void describe_missing(const struct coordinator *c, char text[NODE_TEXT])
{
    char missing[256];

    list_missing(c, missing, sizeof missing);
    if (*c->meet->elsewhere)
        snprintf(text, NODE_TEXT, "%d/%d nodes are here, at %s port %d; missing %s; %s %s",
                 c->count, c->max, c->meet->elsewhere, c->meet->port, missing, c->meet->address,
                 c->meet->has_no_address
                     ? "did not resolve here: is it node 0's host?"
                     : "is not an address of this host: is --node-rank=0 right?");
    else
        snprintf(text, NODE_TEXT, "%d/%d nodes are at %s port %d; missing %s", c->count, c->max,
                 c->meet->address, c->meet->port, missing);
}

/* Writes which nodes have joined: "1 nodes are at hosta port 29400 (hosta), 2 to 4 make the
 * job". */
static void describe_present(const struct coordinator *c, char text[NODE_TEXT])
{
    char hosts[256] = "", follows[128] = "";
    size_t used = 0;

    for (int i = 0; i < c->count && used < sizeof hosts - 67; i++)
        used += (size_t)snprintf(hosts + used, sizeof hosts - used, "%s%s", i ? ", " : " (",
                                 c->members[i]->host);
    if (c->last_call)
        snprintf(follows, sizeof follows,
                 "; it begins in %lld s unless more come (--rdzv-conf=last_call_timeout)",
                 (long long)(c->last_call - clock_ms() + 999) / 1000);
    snprintf(text, NODE_TEXT, "%d nodes are at %s port %d%s%s, %d to %d make the job%s", c->count,
             c->meet->address, c->meet->port, hosts, used ? ")" : "", c->min, c->max, follows);
}

/* Logs what is missing.  The other nodes log the same line after NEXT_WORD_MS, but not earlier,
 * since a thousand nodes that start slowly would log it a thousand times. */
static void say_what_is_missing(const struct coordinator *c, int seconds)
{
    char text[NODE_TEXT], line[NODE_TEXT + 32];

    (c->is_elastic ? describe_present : describe_missing)(c, text);
    snprintf(line, sizeof line, "waiting %d s: %s", seconds, text);
    log_line(LOG_WARN, "%s", line);
    for (int i = 0; i < c->count && seconds >= NEXT_WORD_MS / 1000; i++)
        if (c->members[i]->agent)
            store_agent_send(c->members[i]->agent, NODE_WAITING, line, strlen(line));
}

static int limit_of(const struct coordinator *c)
{
    const struct rdzv_conf *conf = &c->options->rdzv_conf;

    return c->is_elastic ? conf->join_timeout : conf->timeout;
}

/* Shows the progress of the wait on the terminals of all waiting nodes.  The line has only numbers,
 * since it changes each second. */
static void show_how_far(const struct coordinator *c, int64_t waited)
{
    char wanted[32], text[NODE_TEXT];

    if (c->min == c->max)
        snprintf(wanted, sizeof wanted, "%d", c->max);
    else
        snprintf(wanted, sizeof wanted, "%d to %d", c->min, c->max);
    if (c->last_call)
        snprintf(text, sizeof text,
                 "waiting %lld s: %d of %s nodes have joined; it begins in %lld s",
                 (long long)waited / 1000, c->count, wanted,
                 (long long)(c->last_call - clock_ms() + 999) / 1000);
    else
        snprintf(text, sizeof text, "waiting %lld of %d s: %d of %s nodes %s joined",
                 (long long)waited / 1000, limit_of(c), c->count, wanted,
                 c->count == 1 ? "has" : "have");
    c->nodes.hooks->waits(c->nodes.job, text);
    for (int i = 0; i < c->count; i++)
        if (c->members[i]->agent)
            store_agent_send(c->members[i]->agent, NODE_PROGRESS, text, strlen(text));
}

/* Ends the job.  The error messages contain PyTorch's wording, for which PyTorch's users search. */
static void join_give_up(struct coordinator *c)
{
    const struct rdzv_conf *conf = &c->options->rdzv_conf;

    c->code = 1;
    if (c->is_elastic)
        snprintf(c->why, sizeof c->why,
                 "RendezvousTimeoutError: %d of at least %d nodes came to %s port %d within %d s "
                 "(--rdzv-conf=join_timeout=...)",
                 c->count, c->min, c->meet->address, c->meet->port, conf->join_timeout);
    else
        snprintf(c->why, sizeof c->why,
                 "Timed out after %d seconds waiting for clients. %d/%d clients joined: node 0 "
                 "waited at %s port %d (--rdzv-conf=timeout=...)",
                 conf->timeout, c->count, c->max, c->meet->address, c->meet->port);
    rounds_end_job(c);
}

void join_tick(struct coordinator *c)
{
    const int64_t now = clock_ms(), waited = now - c->since;

    if (c->last_call && now >= c->last_call) {
        rounds_begin(c);
        return;
    }
    if (waited >= c->speak) {
        say_what_is_missing(c, (int)(waited / 1000));
        c->speak += NEXT_WORD_MS;
    }
    if (!c->last_call && waited >= limit_of(c) * INT64_C(1000)) {
        join_give_up(c);
        return;
    }
    if (waited >= 1000)
        show_how_far(c, waited);
    wait_on(c);
}
