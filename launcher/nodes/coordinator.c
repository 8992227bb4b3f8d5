/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator.c - stores a job's nodes and handles their events: ends of this ctrun's own workers,
 * messages from agents, broken connections, silent agents.  rounds.c decides what follows.
 *
 * If a member's connection breaks, the member counts as lost and its workers as ended.  The workers
 * die with their ctrun, or their ctrun stops them because it has lost the coordinator. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/nodes/coordinator.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

/* ---- The members ------------------------------------------------------------- */

static void member_setup(struct member *member, const struct node_join *join, int is_elastic)
{
    *member = (struct member){ .number = join->node, .pid = join->pid, .workers = join->workers };
    member->last_message = clock_ms();
    snprintf(member->host, sizeof member->host, "%s", join->host);
    snprintf(member->role, sizeof member->role, "%s", join->role);
    node_join_name(join, is_elastic, member->name, sizeof member->name);
}

static int coordinator_append(struct coordinator *c, struct member *member)
{
    if (c->count == c->room) {
        const int room = c->room ? 2 * c->room : 8;
        struct member **grown = realloc(c->members, (size_t)room * sizeof *grown);

        if (!grown)
            return -1;
        c->members = grown;
        c->room = room;
    }
    c->members[c->count++] = member;
    return 0;
}

struct member *members_add(struct coordinator *c, const struct node_join *join,
                           struct store_agent *agent)
{
    struct member *member = calloc(1, sizeof *member);

    if (!member || coordinator_append(c, member) < 0) {
        free(member);
        return NULL;
    }
    member_setup(member, join, c->is_elastic);
    member->agent = agent;
    store_agent_note(agent, member);
    return member;
}

/* Separates a member from its agent.  The coordinator then ignores the agent's messages and its
 * end. */
static void detach(struct member *member)
{
    if (member->agent)
        store_agent_note(member->agent, NULL);
    member->agent = NULL;
}

void members_remove(struct coordinator *c, struct member *member)
{
    int i = 0;

    while (c->members[i] != member)
        i++;
    memmove(&c->members[i], &c->members[i + 1], (size_t)(--c->count - i) * sizeof *c->members);
    detach(member);
    free(member);
}

int members_workers(const struct coordinator *c)
{
    int workers = 0;

    for (int i = 0; i < c->count; i++)
        workers += c->members[i]->workers;
    return workers;
}

/* ---- The order of a round ----------------------------------------------------- */

/* Compares two nodes for qsort().  Nodes with a number come first, ordered by that number:
 * --node-rank, or the number in their last round.  Newcomers follow in the natural order of their
 * hosts' names, in which node2 comes before node10. */
static int coordinator_by_number(const void *left, const void *right)
{
    const struct member *a = *(struct member *const *)left, *b = *(struct member *const *)right;
    const int order = strverscmp(a->host, b->host);

    if (a->number >= 0 && b->number >= 0)
        return a->number - b->number;
    if (a->number >= 0 || b->number >= 0)
        return a->number >= 0 ? -1 : 1;
    return order ? order : a->pid - b->pid;
}

int members_rank(struct coordinator *c)
{
    const int count = c->count < c->max ? c->count : c->max;
    struct member **ranked = realloc(c->ranked, (size_t)count * sizeof *ranked);
    int base = 0;

    if (!ranked)
        return -1;
    c->ranked = ranked;
    c->ranked_count = count;
    for (int i = 0; i < c->count; i++)
        c->members[i]->in_round = i < count;
    memcpy(ranked, c->members, (size_t)count * sizeof *ranked);
    qsort(ranked, (size_t)count, sizeof *ranked, coordinator_by_number);
    for (int i = 0; i < count; i++) {
        ranked[i]->number = i;
        ranked[i]->base = base;
        ranked[i]->ended = ranked[i]->lost = ranked[i]->has_shares = 0;
        ranked[i]->end = (struct round_end){ -1, 0 };
        base += ranked[i]->workers;
    }
    c->world = base;
    return 0;
}

static void members_free(struct coordinator *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->members[i] != &c->own)
            free(c->members[i]);
    free(c->members);
    free(c->ranked);
}

/* ---- Events of this node ------------------------------------------------------ */

static struct coordinator *of(struct nodes *nodes)
{
    return (struct coordinator *)nodes;
}

static struct member *own(struct nodes *nodes)
{
    return &of(nodes)->own;
}

static void own_died(struct nodes *nodes, const struct control_death *death)
{
    struct node_death dead = { .count = 1, .death = *death };

    snprintf(dead.generation, sizeof dead.generation, "%s", of(nodes)->meet->generation);
    rounds_died(of(nodes), own(nodes), &dead);
}

static void own_failed(struct nodes *nodes, const struct failure *failure)
{
    rounds_failed(of(nodes), own(nodes), failure);
}

static void own_lost(struct nodes *nodes, const struct failure *failure)
{
    rounds_lost(of(nodes), own(nodes), failure);
}

static void own_refused(struct nodes *nodes, int code)
{
    rounds_refused(of(nodes), own(nodes), code);
}

static void own_signalled(struct nodes *nodes, int number)
{
    rounds_signalled(of(nodes), own(nodes), number);
}

static void own_ask_stop(struct nodes *nodes, int for_good)
{
    const struct stop_request request = stop_request(of(nodes)->meet->generation, for_good);

    rounds_ask_stop(of(nodes), own(nodes), &request);
}

static void own_fence(struct nodes *nodes, const char *puts, size_t bytes)
{
    fence_own(of(nodes), puts, bytes);
}

static void own_shares(struct nodes *nodes, const struct collective_shares *shares)
{
    struct node_shares message = { .shares = *shares };

    snprintf(message.generation, sizeof message.generation, "%s", of(nodes)->meet->generation);
    rounds_shares(of(nodes), own(nodes), &message);
}

static int own_look(struct nodes *nodes, unsigned look)
{
    struct coordinator *c = of(nodes);
    char number[16];
    int asked = 0;

    if (c->phase == WAITING || c->phase == FINISHED) /* `ranked` may have freed members */
        return 0;
    snprintf(number, sizeof number, "%u", look);
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i]->agent && !c->ranked[i]->is_asked) {
            store_agent_send(c->ranked[i]->agent, NODE_LOOK, number, strlen(number));
            c->ranked[i]->is_asked = 1;
            asked++;
        }
    return asked;
}

static void own_ended(struct nodes *nodes, const struct round_end *end)
{
    rounds_ended(of(nodes), own(nodes), end);
}

/* ---- Events of agents --------------------------------------------------------- */

/* Writes a name of this host's clock to c->clock.  All processes on this host write the same name,
 * even a later ctrun in another container.  Processes on other hosts write other names. */
static void coordinator_name_clock(struct coordinator *c)
{
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "re");
    struct stat space = { .st_ino = 0 };
    char boot[40];

    snprintf(c->clock, sizeof c->clock, "%s", c->own.name);
    stat("/proc/self/ns/time", &space);
    if (file && fgets(boot, sizeof boot, file))
        snprintf(c->clock, sizeof c->clock, "%.*s/%llu", (int)strcspn(boot, "\n"), boot,
                 (unsigned long long)space.st_ino);
    if (file)
        fclose(file);
}

/* Answers a heartbeat that asks for the clock.  Returns 0 if the text is not valid, else 1. */
static int coordinator_take_beat(struct coordinator *c, struct member *from, const char *text)
{
    const unsigned long long now = (unsigned long long)clock_ns(CLOCK_MONOTONIC);
    struct clock_reading reading;
    char answer[NODE_TEXT];

    if (!*text)
        return 1;
    if (clock_reading_read(text, &reading) < 0)
        return 0;
    snprintf(answer, sizeof answer, "%llx %llx %s", (unsigned long long)reading.asked_ns, now,
             c->clock);
    store_agent_send(from->agent, NODE_BEAT, answer, strlen(answer));
    return 1;
}

/* Handles a message from an agent.  Returns 0 if the message is not valid, else 1.  Ignores types
 * of messages that a newer version may have added. */
static int coordinator_take_message(struct coordinator *c, struct member *from, int type,
                                    const char *text)
{
    struct failure failure;
    struct node_death dead;
    struct stop_request request;
    struct node_shares shares;
    struct round_end end;
    int number;

    switch (type) {
    case NODE_FAILED:
    case NODE_LOST:
        if (node_failure(text, &failure) < 0)
            return 0;
        (type == NODE_FAILED ? rounds_failed : rounds_lost)(c, from, &failure);
        return 1;
    case NODE_DIED:
        if (node_death_read(text, &dead) < 0)
            return 0;
        rounds_died(c, from, &dead);
        return 1;
    case NODE_CANNOT:
        if (node_number_read(text, 1, 255, &number) < 0)
            return 0;
        rounds_refused(c, from, number);
        return 1;
    case NODE_SIGNALLED:
        if (node_number_read(text, CONNECTION_LOST, SIGRTMAX, &number) < 0)
            return 0;
        rounds_signalled(c, from, number);
        return 1;
    case NODE_ASK_STOP:
        if (stop_request_read(text, &request) < 0)
            return 0;
        rounds_ask_stop(c, from, &request);
        return 1;
    case NODE_SHARES:
        if (node_shares_read(text, &shares) < 0)
            return 0;
        rounds_shares(c, from, &shares);
        return 1;
    case NODE_BEAT:
        return coordinator_take_beat(c, from, text);
    case NODE_FENCE:
        fence_in(c, from, text);
        return 1;
    case NODE_ENDED:
        if (round_end_read(text, &end) < 0)
            return 0;
        rounds_ended(c, from, &end);
        return 1;
    default:
        return 1;
    }
}

/* Passes a piece of an agent's rows to the job.  Returns 0 if the text is not valid, else 1. */
static int take_rows(struct coordinator *c, struct member *from, const char *data, size_t bytes)
{
    unsigned look;
    const char *const rows = node_rows_read(data, bytes, &look);
    const size_t size = rows ? bytes - (size_t)(rows - data) : 0;

    if (!rows)
        return 0;
    if (size == 0)
        from->is_asked = 0;
    if (from->in_round && c->phase != WAITING)
        c->nodes.hooks->rows(c->nodes.job, from->number, look, rows, size);
    return 1;
}

/* Handles a message from an agent.  Closes the connection to an agent that sends a message that is
 * not valid, since the round might wait forever for this agent. */
static void on_said(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes)
{
    struct coordinator *c = arg;
    struct member *from = store_agent_noted(agent);
    char text[NODE_TEXT];

    node_text(text, sizeof text, data, bytes);
    if (!from) {
        if (type == NODE_JOIN)
            join_agent(c, agent, text);
        return;
    }
    from->last_message = clock_ms();
    if (type == NODE_PUTS   ? fence_puts(c, from, data, bytes)
        : type == NODE_ROWS ? take_rows(c, from, data, bytes)
                            : coordinator_take_message(c, from, type, text))
        return;
    log_line(LOG_ERROR,
             "%s: its message is not understood (\"%.60s\"); does it run another version?",
             from->name, text);
    store_agent_end(agent);
}

/* The end of a round on a lost node, which can't report how its workers ended. */
static const struct round_end lost_end = { -1, 0 };

static void on_left(void *arg, struct store_agent *agent, int error)
{
    struct coordinator *c = arg;
    struct member *from = store_agent_noted(agent);

    if (!from)
        return;
    detach(from);
    from->unreachable = socket_error_is_silence(error);
    if (!c->is_elastic && c->phase != FINISHED)
        c->nodes.hooks->member(c->nodes.job, from->number, 0);
    if (c->phase == FINISHED) {
        rounds_leave(c);
    } else if (c->phase == WAITING || !from->in_round) { /* the node may join again */
        members_remove(c, from);
        if (c->phase == WAITING)
            join_left(c);
    } else {
        rounds_lose_node(c, from);
        rounds_ended(c, from, &lost_end);
    }
}

static const struct store_agent_hooks agent_hooks = { .said = on_said, .left = on_left };

/* ---- Timers ------------------------------------------------------------------- */

/* Gives up the nodes that have not reported in time that their workers have stopped.  Marks all of
 * these nodes but the last as ended, and then handles the end of the last node, which may begin the
 * next round. */
static void give_up_the_silent(struct coordinator *c)
{
    struct member *last = NULL;

    for (int i = 0; i < c->ranked_count; i++) {
        struct member *member = c->ranked[i];

        if (member->ended || member == &c->own)
            continue;
        log_line(LOG_ERROR, "%s has not reported that its workers stopped; ctrun waits no longer",
                 member->name);
        if (member->agent)
            store_agent_end(member->agent);
        detach(member);
        if (last) {
            last->ended = 1;
            last->end = lost_end;
        }
        last = member;
    }
    if (last && !c->is_elastic)
        c->phase = STOPPING;
    if (last)
        rounds_ended(c, last, &lost_end);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct coordinator *c = arg;

    (void)fd;
    (void)what;
    if (c->phase == WAITING) {
        join_tick(c);
    } else if (c->phase == FINISHED) { /* some agents have not left in time */
        for (int i = 0; i < c->count; i++)
            detach(c->members[i]);
        rounds_leave(c);
    } else {
        give_up_the_silent(c);
    }
}

static void coordinator_on_beat(void *arg)
{
    struct coordinator *c = arg;

    for (int i = 0; i < c->count; i++) {
        struct member *member = c->members[i];

        if (!member->agent)
            continue;
        store_agent_send(member->agent, NODE_BEAT, "", 0);
        if (!member->silent && heartbeat_is_silent(&c->heartbeat, member->last_message)) {
            member->silent = 1;
            store_agent_end(member->agent);
        }
    }
}

static void own_alive(struct nodes *nodes)
{
    struct coordinator *c = of(nodes);

    for (int i = 0; i < c->count; i++)
        if (c->members[i]->agent) {
            store_agent_send(c->members[i]->agent, NODE_BEAT, "", 0);
            store_agent_flush(c->members[i]->agent);
        }
}

/* ---- Start and end ------------------------------------------------------------ */

static void coordinator_start(struct nodes *nodes)
{
    struct coordinator *c = of(nodes);
    const struct clock_reading own = { .clock = c->clock };

    coordinator_name_clock(c);
    nodes->hooks->clock(nodes->job, &own);
    if (c->max > 1 || c->is_elastic) /* spare nodes may join an elastic job */
        heartbeat_start(&c->heartbeat);
    join_wait(c);
}

static void coordinator_destroy(struct nodes *nodes)
{
    struct coordinator *c = of(nodes);

    if (c->meet->server)
        store_server_on_agents(c->meet->server, NULL, NULL);
    event_del(&c->tick);
    heartbeat_stop(&c->heartbeat);
    restarts_free(&c->budget);
    fence_free(c);
    members_free(c);
    free(c);
}

static const struct nodes_ops coordinator_ops = { .start = coordinator_start,
                                                  .died = own_died,
                                                  .failed = own_failed,
                                                  .lost = own_lost,
                                                  .refused = own_refused,
                                                  .signalled = own_signalled,
                                                  .ask_stop = own_ask_stop,
                                                  .fence = own_fence,
                                                  .shares = own_shares,
                                                  .look = own_look,
                                                  .ended = own_ended,
                                                  .alive = own_alive,
                                                  .destroy = coordinator_destroy };

/* Adds this ctrun to the members if it has workers.  A ctrun without workers takes part in each
 * round as a node that has ended already.  Returns -1 if out of memory, else 0. */
static int add_own(struct coordinator *c, int size)
{
    struct node_join join = { .node = 0, .pid = getpid(), .workers = size };

    snprintf(join.role, sizeof join.role, "%s", c->options->role);
    node_host_name(c->options, join.host, sizeof join.host);
    member_setup(&c->own, &join, c->is_elastic);
    c->own.in_round = c->own.ended = size == 0;
    return size > 0 ? coordinator_append(c, &c->own) : 0;
}

struct nodes *nodes_coordinator(struct event_base *base, struct job_rendezvous *meet,
                                const struct options *options, int size,
                                const struct nodes_hooks *hooks, void *job)
{
    struct coordinator *c = calloc(1, sizeof *c);

    if (!c) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    c->nodes = (struct nodes){ .ops = &coordinator_ops, .hooks = hooks, .job = job };
    c->meet = meet;
    c->options = options;
    c->failed_rank = c->root_rank = -1;
    c->is_elastic = meet->is_elastic;
    c->budget.limit = options->max_restarts;
    c->max = options->nnodes.max;
    c->min = c->is_elastic ? options->nnodes.min : c->max;
    evtimer_assign(&c->tick, base, on_tick, c);
    heartbeat_setup(&c->heartbeat, base, &options->rdzv_conf, !c->is_elastic, coordinator_on_beat,
                    c);
    store_server_on_agents(meet->server, &agent_hooks, c);
    if (add_own(c, size) == 0)
        return &c->nodes;
    log_line(LOG_ERROR, "out of memory");
    coordinator_destroy(&c->nodes);
    return NULL;
}
