/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - a ctrun that is not node 0: joins the one that is (connect_retry.c), starts
 * and stops as it is told, and tells it how the workers here fare.
 *
 * Losing node 0 stops the workers: nobody would hear of their failures any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/fixed/connect_retry.h"
#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_link.h"
#include "launcher/nodes/node_messages.h"
#include "launcher/nodes/nodes.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

struct agent {
    struct nodes nodes;
    struct event_base *base;
    struct rendezvous *meet;
    const struct options *options;
    int size;
    struct link_to host;
    struct dial dial;
    struct pulse pulse;
    int64_t heard;    /* clock_ms() of node 0's last word */
    int running;      /* a round */
    int first, world; /* rank of our first worker */
    char generation[NODE_GENERATION];
    char lost[NODE_TEXT]; /* why there is nobody to wait for when the workers are gone */
};

/* ---- In --------------------------------------------------------------------- */

static void over(struct agent *a, int code, const char *why)
{
    link_close(&a->host);
    dial_stop(&a->dial);
    a->nodes.hooks->over(a->nodes.job, code, why);
}

/* To whom else nobody tells us how the others fare.  Of two nodes we know the host's name. */
static void tell_all_others_lost(struct agent *a, int how)
{
    const char *host = a->options->nnodes.max == 2 ? a->meet->address : "";
    const int after = a->first + a->size;
    struct node_death dead = node_host_lost(a->generation, 0, a->first, host, how);

    node_death_deliver(&a->nodes, &dead);
    dead = node_host_lost(a->generation, after, a->world - after, host, how);
    node_death_deliver(&a->nodes, &dead);
}

static void take_death(struct agent *a, const struct node_death *dead)
{
    const int rank = dead->death.rank;

    if (!strcmp(dead->generation, a->generation) && rank + dead->count <= a->world
        && (rank + dead->count <= a->first || rank >= a->first + a->size))
        node_death_deliver(&a->nodes, dead);
}

static void answer_how_far(struct agent *a, const struct node_wish *wish)
{
    struct node_steps closed = { .for_good = wish->for_good };
    char text[NODE_TEXT];

    memcpy(closed.generation, wish->generation, sizeof closed.generation);
    if (!strcmp(wish->generation, a->generation))
        closed.step = a->nodes.hooks->close_steps(a->nodes.job);
    node_steps_print(&closed, text);
    link_tell(&a->host, NODE_CLOSED, "%s", text);
}

/* Nobody is left to agree with. */
static void stop_alone(struct agent *a)
{
    a->nodes.hooks->stop_at(a->nodes.job, a->nodes.hooks->close_steps(a->nodes.job) + 1, 0);
}

/* Node 0 is gone: when the workers are, so are we. */
static void lose_host(struct agent *a, int how, const char *cause)
{
    char why[NODE_TEXT];

    snprintf(why, sizeof why, "node 0 at %s port %d was lost: %s", a->meet->address, a->meet->port,
             cause);
    link_close(&a->host);
    log_line(LOG_ERROR, "%s", why);
    snprintf(a->lost, sizeof a->lost, "%s", why);
    a->nodes.hooks->member(a->nodes.job, 0, 0);
    if (a->running) {
        tell_all_others_lost(a, how);
        stop_alone(a);
        a->nodes.hooks->stop(a->nodes.job, why);
    } else {
        over(a, 1, why);
    }
}

/* It came over a network: no rank of ours lies outside of the world. */
static int can_be(const struct plan *plan, int size)
{
    return plan->world >= size && plan->world <= WORLD_MOST && plan->base >= 0
           && plan->base <= plan->world - size && plan->role_world >= size && plan->role_base >= 0
           && plan->role_base <= plan->role_world - size && plan->restarts >= 0;
}

static void begin_round(struct agent *a, const char *text)
{
    struct plan plan = { .node = a->options->node_rank,
                         .may_agree = 1,
                         .nodes = a->options->nnodes.max,
                         .generation = a->generation,
                         .address = a->meet->address,
                         .port = a->meet->port };

    if (sscanf(text, "%d %d %d %d %d %39s", &plan.base, &plan.world, &plan.role_base,
               &plan.role_world, &plan.restarts, a->generation)
            != 6
        || !can_be(&plan, a->size)) {
        log_line(LOG_ERROR,
                 "node 0 begins a round that can't be (\"%.60s\"); is it another version?", text);
        over(a, 1, "node 0 begins a round that can't be");
        return;
    }
    a->running = 1;
    a->first = plan.base;
    a->world = plan.world;
    a->nodes.hooks->round(a->nodes.job, &plan);
}

static void on_said(void *arg, int type, const char *text)
{
    struct agent *a = arg;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps steps;
    char why[NODE_TEXT];
    int code = 0, at = 0;

    a->heard = clock_ms();
    if (type == NODE_REFUSED) {
        snprintf(why, sizeof why, "node 0 refused this node: %s", text);
        over(a, 1, why);
    } else if (type == NODE_ROUND && !a->running) {
        begin_round(a, text);
    } else if (type == NODE_DIED && node_death_read(text, &dead) == 0) {
        take_death(a, &dead);
    } else if (type == NODE_CLOSE && node_wish_read(text, &wish) == 0) {
        answer_how_far(a, &wish);
    } else if (type == NODE_STOP_AT && node_steps_read(text, &steps) == 0 && steps.step > 0
               && !strcmp(steps.generation, a->generation)) {
        a->nodes.hooks->stop_at(a->nodes.job, steps.step, steps.for_good);
    } else if (type == NODE_CLOCK) {
        a->nodes.hooks->told(a->nodes.job, NULL, type, text, strlen(text));
    } else if (type == NODE_STOP && a->world > 0) { /* behind a round's end: the last word on it */
        a->nodes.hooks->stop(a->nodes.job, text);
    } else if (type == NODE_OVER && sscanf(text, "%d %n", &code, &at) == 1) {
        over(a, code >= 0 && code < 256 ? code : 1, text + at); /* 256 would end as 0 */
    }
}

static void on_broke(void *arg, const char *cause)
{
    lose_host(arg, CONTROL_CLOSED, cause);
}

static const struct link_hooks link_hooks = { .said = on_said, .broke = on_broke };

static void on_beat(void *arg)
{
    struct agent *a = arg;
    char cause[64];

    link_tell(&a->host, NODE_BEAT, "%s", "");
    if (!a->host.stream || !pulse_is_silent(&a->pulse, a->heard))
        return;
    snprintf(cause, sizeof cause, "it has not answered for %lld s",
             (long long)a->pulse.patience_ms / 1000);
    lose_host(a, CONTROL_SILENT, cause);
}

/* ---- Joining ---------------------------------------------------------------- */

static void join(void *arg, int fd)
{
    struct agent *a = arg;
    char host[64] = "";

    if (link_start(&a->host, a->base, fd) < 0) {
        log_line(LOG_ERROR, "out of memory");
        over(a, 1, "out of memory");
        return;
    }
    gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        if (*c == ' ')
            *c = '_';
    link_tell(&a->host, NODE_JOIN, "%d %d %d %s %s %zu %s %s", a->options->node_rank,
              a->options->nnodes.max, a->size, CT_VERSION, *host ? host : "-",
              strlen(a->options->role), a->options->role, a->meet->run_id);
    a->heard = clock_ms();
    pulse_start(&a->pulse);
}

static void on_gave_up(void *arg, const char *why)
{
    over(arg, 1, why);
}

static const struct dial_hooks dial_hooks = { .connected = join, .gave_up = on_gave_up };

static void agent_start(struct nodes *nodes)
{
    dial_start(&((struct agent *)nodes)->dial);
}

/* ---- What this node tells --------------------------------------------------- */

static void agent_died(struct nodes *nodes, const struct control_death *death)
{
    struct agent *a = (struct agent *)nodes;
    struct node_death dead = { .count = 1, .death = *death };
    char text[NODE_TEXT];

    snprintf(dead.generation, sizeof dead.generation, "%s", a->generation);
    node_death_print(&dead, text);
    link_tell(&a->host, NODE_DIED, "%s", text);
    link_flush(&a->host);
}

static void tell_failure(struct nodes *nodes, int type, const struct failure *failure)
{
    char text[NODE_TEXT];

    node_failure_print(failure, text);
    link_tell(&((struct agent *)nodes)->host, type, "%s", text);
}

static void agent_failed(struct nodes *nodes, const struct failure *failure)
{
    tell_failure(nodes, NODE_FAILED, failure);
}

static void agent_lost(struct nodes *nodes, const struct failure *failure)
{
    tell_failure(nodes, NODE_LOST, failure);
}

static void agent_refused(struct nodes *nodes, int code)
{
    link_tell(&((struct agent *)nodes)->host, NODE_CANNOT, "%d", code);
}

static void agent_signalled(struct nodes *nodes, int number)
{
    struct agent *a = (struct agent *)nodes;

    link_tell(&a->host, NODE_SIGNALLED, "%d", number);
    if (!a->running) /* nobody to wait for */
        over(a, 128 + number, "");
}

static void agent_ask_stop(struct nodes *nodes, int for_good)
{
    struct agent *a = (struct agent *)nodes;

    if (a->host.stream)
        link_tell(&a->host, NODE_WISH, "%s %d", a->generation, for_good);
    else if (a->running)
        stop_alone(a);
}

static void agent_ended(struct nodes *nodes, int gave)
{
    struct agent *a = (struct agent *)nodes;

    a->running = 0;
    if (a->host.stream)
        link_tell(&a->host, NODE_ENDED, "%d", gave);
    else
        over(a, 1, a->lost);
}

static struct link_to *agent_keeper(struct nodes *nodes)
{
    return &((struct agent *)nodes)->host;
}

static void agent_destroy(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    link_close(&a->host);
    pulse_stop(&a->pulse);
    dial_stop(&a->dial);
    free(a);
}

static const struct nodes_ops agent_ops = { .start = agent_start,
                                            .died = agent_died,
                                            .failed = agent_failed,
                                            .lost = agent_lost,
                                            .refused = agent_refused,
                                            .signalled = agent_signalled,
                                            .ask_stop = agent_ask_stop,
                                            .ended = agent_ended,
                                            .keeper = agent_keeper,
                                            .destroy = agent_destroy };

struct nodes *nodes_agent(struct event_base *base, struct rendezvous *meet,
                          const struct options *options, int size, const struct nodes_hooks *hooks,
                          void *job)
{
    struct agent *a = calloc(1, sizeof *a);

    if (!a) {
        log_line(LOG_ERROR, "out of memory");
        return NULL;
    }
    a->nodes = (struct nodes){ .ops = &agent_ops, .hooks = hooks, .job = job };
    a->base = base;
    a->meet = meet;
    a->options = options;
    a->size = size;
    link_setup(&a->host, &link_hooks, a);
    dial_setup(&a->dial, base, meet, options->rdzv_conf.timeout, &dial_hooks, a);
    pulse_setup(&a->pulse, base, &options->rdzv_conf, 1, on_beat, a);
    return &a->nodes;
}
