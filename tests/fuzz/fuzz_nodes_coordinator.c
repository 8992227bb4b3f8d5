/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nodes_coordinator.c - what the coordinator gets from agents: texts of any kind, from agents
 * that joined and agents that did not, which come and go, while its own workers fail, end and are
 * told to stop, and time passes.
 *
 * The input is a byte for the options, then a row of steps: a byte that says what happens (its
 * low half) and to which agent (its high half), then what the step needs.  The store and
 * its connections are not there: the agents are told apart by their addresses. */
#include <stdint.h>

#include "launcher/nodes/coordinator.c"
#include "tests/fuzz/input.h"

enum { AGENTS = 5, WORKERS = 2, NODES = 4, LEAST = 2, MOST_WORKERS = 1 << 20 };

struct scene {
    struct event_base *base;
    struct nodes *nodes;
    int here[AGENTS];
    int world; /* of the last round */
    int is_elastic;
    int workers; /* of node 0; 0: it is none */
    int runs, is_over;
};

static char agents[AGENTS]; /* their addresses count */
static void *notes[AGENTS];
static int is_ended[AGENTS]; /* node 0 ended their connections */
static const struct store_agent_hooks *of_agents;

static struct store_agent *agent_at(int i)
{
    return (struct store_agent *)&agents[i];
}

/* ---- Instead of the store -------------------------------------------------------------- */

void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg)
{
    (void)server;
    (void)arg;
    of_agents = hooks;
}

void store_agent_send(struct store_agent *agent, int type, const void *data, size_t bytes)
{
    const char *at = (const char *)agent, *text = data;

    holds(at >= agents && at < agents + AGENTS);
    holds(type == NODE_REFUSED || type == NODE_ROUND || type == NODE_STOP || type == NODE_OVER
          || type == NODE_BEAT || type == NODE_DIED || type == NODE_ASK_STOP || type == NODE_PUTS
          || type == NODE_FENCE);
    if (type == NODE_PUTS) { /* as they came: only ranks read them */
        holds(bytes <= NODE_PIECE);
        return;
    }
    holds(bytes < NODE_TEXT);
    for (size_t i = 0; i < bytes; i++) /* nothing that a terminal obeys is passed on */
        holds((unsigned char)text[i] >= ' ');
}

void store_agent_send_shared(struct store_agent *agent, int type, const void *data, size_t bytes,
                             struct value **shared)
{
    (void)shared;
    store_agent_send(agent, type, data, bytes);
}

void store_agent_flush(struct store_agent *agent)
{
    (void)agent;
}

int store_server_newcomers(const struct store_server *server)
{
    (void)server;
    return 0;
}

void store_server_accept_no_more(struct store_server *server)
{
    (void)server;
}

void store_agent_end(struct store_agent *agent)
{
    is_ended[(const char *)agent - agents] = 1;
}

void store_agent_note(struct store_agent *agent, void *note)
{
    notes[(const char *)agent - agents] = note;
}

void *store_agent_noted(const struct store_agent *agent)
{
    return notes[(const char *)agent - agents];
}

void job_rendezvous_new_round(struct job_rendezvous *meet)
{
    (void)meet;
}

void job_rendezvous_post_death(const struct job_rendezvous *meet, int rank, const char *cause)
{
    (void)meet;
    holds(rank >= -1 && rank < WORKERS + (NODES - 1) * MOST_WORKERS && strlen(cause) < NODE_TEXT);
}

/* ---- The job ------------------------------------------------------------------------------ */

static void round_begins(void *job, const struct plan *plan)
{
    struct scene *s = job;

    holds(!s->is_over && !s->runs);
    holds(plan->base == 0 && plan->node == (s->workers ? 0 : -1) && plan->nodes <= NODES);
    holds(plan->nodes >= (s->is_elastic ? LEAST : NODES));
    holds(plan->world >= (s->workers ? WORKERS + plan->nodes - 1 : plan->nodes));
    holds(plan->role_base == 0 && plan->role_world >= s->workers
          && plan->role_world <= plan->world);
    s->runs = s->workers > 0;
    s->world = plan->world;
}

static void stop(void *job, int number, int rank, const char *why)
{
    (void)job;
    holds(number >= 0 && number <= 255 && rank >= -1 && strlen(why) < NODE_TEXT);
}

static void is_over(void *job, int code, int rank, const char *why)
{
    struct scene *s = job;

    holds(rank >= -1 && code >= 0 && code <= 255 && strlen(why) < NODE_TEXT);
    s->is_over = 1;
}

/* Sometimes a rank of another node. */
static void root_cause(void *job, struct failure *root, char what[NODE_TEXT])
{
    const struct scene *s = job;

    if (s->world % 2)
        *root = (struct failure){ s->world - 1, -1, 3, s->world % 4 == 1, NULL, 0 };
    snprintf(what, NODE_TEXT, "rank %d exited with code 3", s->world - 1);
}

static void member(void *job, int node, int there)
{
    (void)job;
    (void)there;
    holds(node >= 1 && node < NODES);
}

/* Of another node's workers. */
static void died(void *job, const struct control_death *death, int count)
{
    const struct scene *s = job;

    holds(death->rank >= s->workers && count > 0 && death->rank + count <= s->world);
    holds(death->tombs >= 0 && death->tombs <= CONTROL_TOMBS);
}

static void stop_asked(void *job, int for_good)
{
    (void)job;
    holds(for_good == 0 || for_good == 1);
}

static void puts_come(void *job, const char *puts, size_t bytes)
{
    (void)job;
    (void)puts;
    holds(bytes <= (size_t)(WORKERS + (NODES - 1) * 300) << 20);
}

static void fenced(void *job)
{
    holds(((struct scene *)job)->runs);
}

static void rows_come(void *job, int node, unsigned look, const char *rows, size_t bytes)
{
    (void)look;
    (void)rows;
    holds(((struct scene *)job)->nodes && node >= 0 && node < NODES && bytes < NODE_PIECE + 16);
}

static void slow(void *job, const struct slow_rank *found, const char *node)
{
    holds(((struct scene *)job)->runs && (found->rank >= 0) == !*node);
}

static void waits(void *job, const char *text)
{
    holds(!((struct scene *)job)->runs && strlen(text) < NODE_TEXT);
}

static void clock_shows(void *job, const struct clock_reading *reading)
{
    (void)job;
    holds(*reading->clock && strlen(reading->clock) < NODE_TEXT);
}

static const struct nodes_hooks hooks = { .round = round_begins,
                                          .stop = stop,
                                          .over = is_over,
                                          .root_cause = root_cause,
                                          .member = member,
                                          .died = died,
                                          .stop_asked = stop_asked,
                                          .puts = puts_come,
                                          .fenced = fenced,
                                          .slow = slow,
                                          .rows = rows_come,
                                          .waits = waits,
                                          .clock = clock_shows };

/* ---- Steps ----------------------------------------------------------------------------------- */

static void say(struct scene *s, int i, int type, struct fuzz_input *in)
{
    size_t bytes = take(in);

    bytes = bytes < in->left ? bytes : in->left;
    s->here[i] = 1;
    of_agents->said(s->nodes, agent_at(i), type, in->data, bytes);
    in->data += bytes;
    in->left -= bytes;
}

/* As an agent of this version says it: its node is `i`, unless the step says otherwise. */
static void say_join(struct scene *s, int i, struct fuzz_input *in)
{
    const unsigned what = take(in);
    const int node = s->is_elastic ? -1 : i;
    char text[128];
    const int size = snprintf(text, sizeof text, "%d %d %d %d %s h%d %d 1 %c none",
                              what % 8 ? node : (int)(what >> 3) - 4, s->is_elastic ? LEAST : NODES,
                              NODES, 1 + (int)(what >> 3) % 7, CT_VERSION, i, i, "ab"[what >> 7]);

    s->here[i] = 1;
    of_agents->said(s->nodes, agent_at(i), NODE_JOIN, text, (size_t)size);
}

static void leave(struct scene *s, int i)
{
    if (s->here[i])
        of_agents->left(s->nodes, agent_at(i), 0);
    s->here[i] = 0;
}

/* Agents that were silent for long are given up. */
static void fall_silent(struct scene *s)
{
    struct coordinator *c = (struct coordinator *)s->nodes;

    c->heartbeat.woke = 0;
    for (int i = 0; i < c->count; i++)
        c->members[i]->last_message = 0;
    coordinator_on_beat(c);
}

/* Of node 0's own workers, as a job says it. */
static void happen(struct scene *s, unsigned what)
{
    static const struct round_end failed = { -1, 0 }, stopped = { 3, 0 }, done = { -1, 1 };
    const struct failure failure = {
        1, -1, 1 + (int)what % 255, (int)what >> 3 & 1, "rank 1 failed", (int)what >> 4 & 1
    };
    const struct control_death death = { .rank = 1, .how = CLD_KILLED, .code = SIGKILL };

    if (what == 14)
        s->nodes->ops->ask_stop(s->nodes, 0);
    else if (what == 13 && s->runs)
        s->nodes->ops->fence(s->nodes, "a 1\n", 4);
    else if (what % 7 == 0)
        s->nodes->ops->signalled(s->nodes, SIGTERM);
    else if (what % 7 == 6)
        fall_silent(s);
    else if (!s->runs)
        return;
    else if (what % 7 == 5)
        s->nodes->ops->died(s->nodes, &death);
    else if (what % 7 == 1)
        s->nodes->ops->failed(s->nodes, &failure);
    else if (what % 7 == 2)
        s->nodes->ops->lost(s->nodes, &failure);
    else if (what % 7 == 3)
        s->nodes->ops->refused(s->nodes, 127);
    else {
        s->runs = 0;
        s->nodes->ops->ended(s->nodes, what < 7 ? &failed : what < 14 ? &stopped : &done);
    }
}

static void let_time_pass(struct scene *s)
{
    struct coordinator *c = (struct coordinator *)s->nodes;

    if (!event_pending(&c->tick, EV_TIMEOUT, NULL))
        return;
    event_del(&c->tick);
    on_tick(-1, 0, c);
}

static void step(struct scene *s, unsigned what, struct fuzz_input *in)
{
    const int i = (int)(what >> 4) % AGENTS;

    switch (what % 16) {
    case 0:
        say_join(s, i, in);
        break;
    case 1:
        leave(s, i);
        break;
    case 2:
        happen(s, take(in));
        break;
    case 3:
        let_time_pass(s);
        break;
    case 4:
        say(s, i, (int)take(in), in);
        break;
    default:
        say(s, i, NODE_JOIN + (int)(what % 24) - 5, in);
    }
}

/* A connection that node 0 ended is gone at the loop's next turn. */
static void let_them_leave(struct scene *s)
{
    for (int i = 0; i < AGENTS; i++)
        if (is_ended[i] && !s->is_over) {
            is_ended[i] = 0;
            leave(s, i);
        }
}

static void check(const struct coordinator *c)
{
    for (int i = 0; i < c->count; i++)
        holds(c->members[i]->lost >= 0 && c->members[i]->lost <= c->members[i]->workers);
    holds(c->code >= 0 && c->code <= 255);
    holds(c->ranked_count <= NODES && (c->own.workers == 0 || c->own.number == 0));
}

/* ---- One input ----------------------------------------------------------------------------------
 */

/* Bit 0: the others go on after a failure; bits 1 and 2: how many restarts; bit 3: elastic; bit 4:
 * node 0 has no workers, of an elastic job. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    const unsigned what = take(&in);
    const struct options options = { .nnodes = { LEAST, NODES },
                                     .role = "a",
                                     .on_failure = { (int)what & 1, 2 },
                                     .max_restarts = { (int)what >> 1 & 3, 0 } };
    struct job_rendezvous meet = { .address = "10.0.0.1",
                                   .port = 29500,
                                   .run_id = "none",
                                   .generation = "g",
                                   .title = "node 0",
                                   .is_elastic = (int)what >> 3 & 1 };
    struct event_base *base = event_base_new();
    struct scene s = { .base = base,
                       .is_elastic = meet.is_elastic,
                       .workers = meet.is_elastic && what & 16 ? 0 : WORKERS };

    log_setup("fuzz", LOG_NONE);
    memset(is_ended, 0, sizeof is_ended);
    memset(notes, 0, sizeof notes);
    meet.server = (struct store_server *)&agents; /* not NULL */
    holds(base && (s.nodes = nodes_coordinator(base, &meet, &options, s.workers, &hooks, &s)));
    s.nodes->ops->start(s.nodes);
    while (in.left > 0 && !s.is_over) {
        step(&s, take(&in), &in);
        let_them_leave(&s);
        check((struct coordinator *)s.nodes);
    }
    s.nodes->ops->destroy(s.nodes);
    event_base_free(base);
    return 0;
}
