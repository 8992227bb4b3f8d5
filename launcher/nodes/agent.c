/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - a ctrun that is not the coordinator.  An agent connects to the coordinator
 * (node_link.h), starts and stops its workers when the coordinator tells it to, and reports to the
 * coordinator how its workers end.
 *
 * An agent that loses the coordinator stops its workers, since no other node would learn of their
 * failures.  In a fixed job the agent then ends.  In an elastic job the agent may have been cut off
 * or stopped only for a while.  So the agent tries to join again for as long as a node may be
 * silent (--rdzv-conf=keep_alive_...). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_link.h"
#include "launcher/nodes/node_messages.h"
#include "launcher/nodes/nodes.h"
#include "runtime/net/socket.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

struct agent {
    struct nodes nodes;
    struct event_base *base;
    struct job_rendezvous *meet;
    const struct options *options;
    int size;
    struct node_link link;
    struct connect_retry retry;
    struct heartbeat heartbeat;
    int64_t last_message; /* clock_ms() of the coordinator's last message */
    int64_t asked_ns; /* CLOCK_MONOTONIC when this agent last asked for the coordinator's clock */
    int asks_at_once; /* questions about the clock left, each asked after the previous answer */
    int running;      /* true while this node has workers in a round */
    int signal;       /* the first signal that told this ctrun to stop; 0 if none */
    int first, world; /* rank of this node's first worker; workers of all nodes, 0 at first */
    char generation[NODE_GENERATION], mapping[NODE_MAPPING];
    char lost[NODE_TEXT]; /* why the coordinator was lost; "" while the agent is connected */
    int is_over, code;    /* true if the job ended while workers here still stop; its exit code */
};

/* ---- Messages from the coordinator ------------------------------------------ */

static void over_for(struct agent *a, int code, int rank, const char *why)
{
    node_link_close(&a->link);
    connect_retry_stop(&a->retry);
    a->nodes.hooks->over(a->nodes.job, code, rank, why);
}

static void over(struct agent *a, int code, const char *why)
{
    over_for(a, code, -1, why);
}

/* Ends the job on this node.  If node 0 ended the job before this node's workers have stopped,
 * stops these workers first. */
static void end_job(struct agent *a, int code, int rank, const char *why)
{
    if (a->world == 0)
        log_line(LOG_WARN, "the job at %s port %d ended before this node could take part",
                 a->meet->address, a->meet->port);
    if (!a->running) {
        over_for(a, code, rank, why);
        return;
    }
    a->is_over = 1;
    a->code = code;
    snprintf(a->lost, sizeof a->lost, "%s", why);
    node_link_close(&a->link);
    heartbeat_stop(&a->heartbeat);
    a->nodes.hooks->stop(a->nodes.job, 0, rank, why);
}

/* Tells this node's workers that all workers of other nodes are lost, since the coordinator can no
 * longer report deaths there.  Passes the name of the lost host only in a fixed job of two nodes,
 * where all other workers run on node 0's host.  In an elastic job of two nodes, the coordinator
 * may have no workers. */
static void deliver_all_others_lost(struct agent *a, int how)
{
    const char *host = a->options->nnodes.max == 2 && !a->meet->is_elastic ? a->meet->address : "";
    const int after = a->first + a->size;
    struct node_death dead = node_host_lost(a->generation, 0, a->first, host, how);

    a->nodes.hooks->died(a->nodes.job, &dead.death, dead.count);
    dead = node_host_lost(a->generation, after, a->world - after, host, how);
    a->nodes.hooks->died(a->nodes.job, &dead.death, dead.count);
}

static void take_death(struct agent *a, const struct node_death *dead)
{
    const int rank = dead->death.rank;

    if (!strcmp(dead->generation, a->generation) && rank + dead->count <= a->world
        && (rank + dead->count <= a->first || rank >= a->first + a->size))
        a->nodes.hooks->died(a->nodes.job, &dead->death, dead->count);
}

/* Tries to join an elastic job again, since the job may still run on other nodes.  All workers of
 * this node have ended. */
static void join_again(struct agent *a)
{
    log_line(LOG_WARN, "trying for %lld s to join the job again",
             (long long)a->heartbeat.patience_ms / 1000);
    connect_retry_start(&a->retry, (int)(a->heartbeat.patience_ms / 1000),
                        "--rdzv-conf=keep_alive_interval=...,keep_alive_max_attempt=...");
}

static void leave_without_coordinator(struct agent *a)
{
    if (a->is_over)
        over(a, a->code, a->lost);
    else if (a->signal)
        over(a, 128 + a->signal, a->lost);
    else if (a->meet->is_elastic)
        join_again(a);
    else
        over(a, 1, a->lost);
}

static void lose_coordinator(struct agent *a, int how, const char *cause)
{
    node_link_close(&a->link);
    heartbeat_stop(&a->heartbeat);
    snprintf(a->lost, sizeof a->lost, "%s at %s port %d was lost: %s", a->meet->title,
             a->meet->address, a->meet->port, cause);
    log_line(LOG_ERROR, "%s", a->lost);
    if (!a->meet->is_elastic)
        a->nodes.hooks->member(a->nodes.job, 0, 0);
    if (a->running) {
        deliver_all_others_lost(a, how);
        a->nodes.hooks->stop_asked(a->nodes.job, 0); /* lets ranks that vote end before SIGTERM */
        a->nodes.hooks->stop(a->nodes.job, 0, -1, a->lost);
    } else {
        leave_without_coordinator(a);
    }
}

static void begin_round(struct agent *a, const char *text)
{
    struct plan plan = { .generation = a->generation,
                         .mapping = a->mapping,
                         .address = a->meet->address };

    if (node_round_read(text, a->size, &plan, a->generation, a->mapping) < 0) {
        log_line(LOG_ERROR, "%s begins an invalid round (\"%.60s\"); does it run another version?",
                 a->meet->title, text);
        over(a, 1, "");
        return;
    }
    a->running = 1;
    a->first = plan.base;
    a->world = plan.world;
    a->nodes.hooks->round(a->nodes.job, &plan);
}

static void send_beat(struct agent *a)
{
    a->asked_ns = clock_ns(CLOCK_MONOTONIC);
    if (a->options->trace)
        node_link_print(&a->link, NODE_BEAT, "%llx", (unsigned long long)a->asked_ns);
    else
        node_link_send(&a->link, NODE_BEAT, "", 0);
    node_link_flush(&a->link);
}

/* Handles a NODE_BEAT with the coordinator's clock.  Ignores an answer to any question but the
 * last, since such an answer came too late to be exact. */
static void agent_take_beat(struct agent *a, const char *text)
{
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    struct clock_reading reading;

    if (!a->options->trace || clock_reading_read(text, &reading) < 0
        || reading.asked_ns != a->asked_ns || !*reading.clock)
        return;
    reading.heard_ns = now;
    a->nodes.hooks->clock(a->nodes.job, &reading);
    if (a->asks_at_once > 0 && --a->asks_at_once > 0)
        send_beat(a);
}

static void on_message(void *arg, int type, const char *text)
{
    struct agent *a = arg;
    struct node_death dead;
    struct stop_request request;
    char why[NODE_TEXT];
    const char *words;
    int code, rank, look;

    a->last_message = clock_ms();
    if (type == NODE_REFUSED) {
        snprintf(why, sizeof why, "%s refused this node: %s", a->meet->title, text);
        over(a, 1, why);
    } else if (type == NODE_ROUND && !a->running) {
        begin_round(a, text);
    } else if (type == NODE_BEAT) {
        agent_take_beat(a, text);
    } else if (type == NODE_WAITING) {
        log_line(LOG_WARN, "%s", text);
    } else if (type == NODE_PROGRESS && !a->running) {
        a->nodes.hooks->waits(a->nodes.job, text);
    } else if (type == NODE_DIED && node_death_read(text, &dead) == 0) {
        take_death(a, &dead);
    } else if (type == NODE_ASK_STOP && stop_request_read(text, &request) == 0
               && !strcmp(request.generation, a->generation)) {
        a->nodes.hooks->stop_asked(a->nodes.job, request.for_good);
    } else if (type == NODE_LOOK && node_number_read(text, 0, INT_MAX, &look) == 0) {
        a->nodes.hooks->look(a->nodes.job, (unsigned)look);
    } else if (type == NODE_FENCE && a->running && !strcmp(text, a->generation)) {
        a->nodes.hooks->fenced(a->nodes.job);
    } else if (type == NODE_STOP && a->world > 0
               && node_code_read(text, &code, &rank, &words) == 0) {
        /* The job must know, even if this node's workers have ended. */
        a->nodes.hooks->stop(a->nodes.job, code, rank, words);
    } else if (type == NODE_OVER) {
        if (node_code_read(text, &code, &rank, &words) < 0)
            end_job(a, 1, -1,
                    "the job is over, but node 0 sent no exit code; does it run another version?");
        else
            end_job(a, code, rank, words);
    }
}

static void agent_on_puts(void *arg, const char *data, size_t bytes)
{
    struct agent *a = arg;
    const char *puts = fence_puts_read(data, bytes, a->generation);

    a->last_message = clock_ms();
    if (puts && a->running)
        a->nodes.hooks->puts(a->nodes.job, puts, bytes - (size_t)(puts - data));
}

/* Handles the loss of the coordinator.  If this ctrun itself did not run for a while, reports that
 * pause as the cause, since the coordinator drops an agent that does not answer. */
static void on_broke(void *arg, int error, const char *cause)
{
    struct agent *a = arg;
    const int stood_still = heartbeat_stood_still(&a->heartbeat);
    char words[96];

    snprintf(words, sizeof words, "this ctrun had not run for %d s, and the connection was closed",
             stood_still);
    lose_coordinator(a, socket_error_is_silence(error) ? CONTROL_SILENT : CONTROL_CLOSED,
                     stood_still > 0 ? words : cause);
}

static const struct node_link_hooks link_hooks = { .message = on_message,
                                                   .puts = agent_on_puts,
                                                   .broke = on_broke };

static void agent_on_beat(void *arg)
{
    struct agent *a = arg;
    char cause[64];

    send_beat(a);
    if (a->link.fd < 0 || !heartbeat_is_silent(&a->heartbeat, a->last_message))
        return;
    snprintf(cause, sizeof cause, "it has not answered for %lld s",
             (long long)a->heartbeat.patience_ms / 1000);
    lose_coordinator(a, CONTROL_SILENT, cause);
}

/* ---- Joining ---------------------------------------------------------------- */

static void join(void *arg, int fd, struct secure_channel *channel)
{
    struct agent *a = arg;
    struct node_join join = { .node = a->meet->is_elastic ? -1 : a->options->node_rank,
                              .min = a->meet->is_elastic ? a->options->nnodes.min
                                                         : a->options->nnodes.max,
                              .max = a->options->nnodes.max,
                              .workers = a->size,
                              .version = CT_VERSION,
                              .pid = getpid(),
                              .job = a->meet->run_id };
    char text[NODE_TEXT];

    if (node_link_start(&a->link, a->base, fd, channel) < 0) {
        log_line(LOG_ERROR, "out of memory");
        over(a, 1, "out of memory");
        return;
    }
    node_host_name(a->options, join.host, sizeof join.host);
    snprintf(join.role, sizeof join.role, "%s", a->options->role);
    node_join_print(&join, text);
    node_link_print(&a->link, NODE_JOIN, "%s", text);
    if (a->options->trace) {
        a->asks_at_once = CLOCK_ASKS;
        send_beat(a);
    }
    a->last_message = clock_ms();
    a->lost[0] = 0;
    a->nodes.hooks->waits(a->nodes.job, "");
    heartbeat_start(&a->heartbeat);
}

/* Ends this node.  a->lost is the reason if the agent had lost the coordinator; else "". */
static void on_gave_up(void *arg)
{
    struct agent *a = arg;

    over(a, 1, a->lost);
}

static void agent_on_waits(void *arg, int seconds)
{
    const struct agent *a = arg;
    char text[NODE_TEXT];

    if (*a->meet->address)
        snprintf(text, sizeof text, "waiting %d of %d s for %s at %s port %d", seconds,
                 a->retry.timeout, a->meet->title, a->meet->address, a->meet->port);
    else
        snprintf(text, sizeof text, "waiting %d of %d s for %s, which writes where it is to %s",
                 seconds, a->retry.timeout, a->meet->title, a->meet->file);
    a->nodes.hooks->waits(a->nodes.job, text);
}

static const struct connect_retry_hooks retry_hooks = { .connected = join,
                                                        .gave_up = on_gave_up,
                                                        .waits = agent_on_waits };

static void agent_start(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;
    const struct rdzv_conf *conf = &a->options->rdzv_conf;

    if (a->meet->is_elastic)
        connect_retry_start(&a->retry, conf->join_timeout, "--rdzv-conf=join_timeout=...");
    else
        connect_retry_start(&a->retry, conf->timeout, "--rdzv-conf=timeout=...");
}

/* ---- Messages to the coordinator -------------------------------------------- */

static void agent_died(struct nodes *nodes, const struct control_death *death)
{
    struct agent *a = (struct agent *)nodes;
    struct node_death dead = { .count = 1, .death = *death };
    char text[NODE_TEXT];

    snprintf(dead.generation, sizeof dead.generation, "%s", a->generation);
    node_death_print(&dead, text);
    node_link_print(&a->link, NODE_DIED, "%s", text);
    node_link_flush(&a->link);
}

static void send_failure(struct nodes *nodes, int type, const struct failure *failure)
{
    char text[NODE_TEXT];

    node_failure_print(failure, text);
    node_link_print(&((struct agent *)nodes)->link, type, "%s", text);
}

static void agent_failed(struct nodes *nodes, const struct failure *failure)
{
    send_failure(nodes, NODE_FAILED, failure);
}

static void agent_lost(struct nodes *nodes, const struct failure *failure)
{
    send_failure(nodes, NODE_LOST, failure);
}

static void agent_refused(struct nodes *nodes, int code)
{
    node_link_print(&((struct agent *)nodes)->link, NODE_CANNOT, "%d", code);
}

static void agent_signalled(struct nodes *nodes, int number)
{
    struct agent *a = (struct agent *)nodes;

    if (number != CONNECTION_LOST && !a->signal)
        a->signal = number;
    node_link_print(&a->link, NODE_SIGNALLED, "%d", number);
    node_link_flush(&a->link); /* over() closes the link */
    if (!a->running)           /* this node has no workers to wait for */
        over(a, number == CONNECTION_LOST ? 1 : 128 + number, "");
}

static void agent_ask_stop(struct nodes *nodes, int for_good)
{
    struct agent *a = (struct agent *)nodes;

    node_link_print(&a->link, NODE_ASK_STOP, "%s %d", a->generation, for_good);
}

static void send_puts(void *arg, const char *data, size_t bytes)
{
    node_link_send(arg, NODE_PUTS, data, bytes);
}

static void agent_fence(struct nodes *nodes, const char *puts, size_t bytes)
{
    struct agent *a = (struct agent *)nodes;

    node_pieces(a->generation, puts, bytes, send_puts, &a->link);
    node_link_print(&a->link, NODE_FENCE, "%s", a->generation);
}

static void agent_shares(struct nodes *nodes, const struct collective_shares *shares)
{
    struct agent *a = (struct agent *)nodes;
    struct node_shares message = { .shares = *shares };
    char text[NODE_TEXT];

    snprintf(message.generation, sizeof message.generation, "%s", a->generation);
    node_shares_print(&message, text);
    node_link_print(&a->link, NODE_SHARES, "%s", text);
}

static void send_rows(void *arg, const char *data, size_t bytes)
{
    node_link_send(arg, NODE_ROWS, data, bytes);
}

static void agent_rows(struct nodes *nodes, unsigned look, const char *rows, size_t bytes)
{
    struct agent *a = (struct agent *)nodes;
    char number[16];

    snprintf(number, sizeof number, "%u", look);
    node_pieces(number, rows, bytes, send_rows, &a->link);
    node_link_print(&a->link, NODE_ROWS, "%s\n", number);
}

/* Does nothing, since only the coordinator asks for the state of the ranks. */
static int agent_look(struct nodes *nodes, unsigned look)
{
    (void)nodes;
    (void)look;
    return 0;
}

static void agent_ended(struct nodes *nodes, const struct round_end *end)
{
    struct agent *a = (struct agent *)nodes;
    char text[NODE_TEXT];

    a->running = 0;
    if (a->link.fd >= 0) {
        round_end_print(end, text);
        node_link_print(&a->link, NODE_ENDED, "%s", text);
    } else {
        leave_without_coordinator(a);
    }
}

static void agent_alive(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    if (a->link.fd >= 0)
        send_beat(a);
}

static void agent_destroy(struct nodes *nodes)
{
    struct agent *a = (struct agent *)nodes;

    node_link_close(&a->link);
    heartbeat_stop(&a->heartbeat);
    connect_retry_stop(&a->retry);
    free(a);
}

static const struct nodes_ops agent_ops = { .start = agent_start,
                                            .died = agent_died,
                                            .failed = agent_failed,
                                            .lost = agent_lost,
                                            .refused = agent_refused,
                                            .signalled = agent_signalled,
                                            .ask_stop = agent_ask_stop,
                                            .fence = agent_fence,
                                            .shares = agent_shares,
                                            .look = agent_look,
                                            .rows = agent_rows,
                                            .ended = agent_ended,
                                            .alive = agent_alive,
                                            .destroy = agent_destroy };

struct nodes *nodes_agent(struct event_base *base, struct job_rendezvous *meet,
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
    node_link_setup(&a->link, &link_hooks, a);
    connect_retry_setup(&a->retry, base, meet, &retry_hooks, a);
    heartbeat_setup(&a->heartbeat, base, &options->rdzv_conf, !meet->is_elastic, agent_on_beat, a);
    return &a->nodes;
}
