/* SPDX-License-Identifier: Apache-2.0 */
/* status_observer.c - the status page of a job (launcher/status/status_server.h).  The coordinator
 * serves the page, and asks the other nodes what their ranks do. */
#include <stdlib.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/status/status_server.h"

struct status_watch {
    struct job *job;
    int has_round;
    struct status_server server;
};

static int status_observer_ask_nodes(void *arg, unsigned look)
{
    struct nodes *nodes = ((struct status_watch *)arg)->job->nodes;

    return nodes ? nodes->ops->look(nodes, look) : 0;
}

static void status_observer_facts(void *arg, struct job_facts *facts)
{
    const struct job *job = ((struct status_watch *)arg)->job;

    facts->job = job_name(job);
    facts->program = job->options->program[0] ? job->options->program[0] : "";
    facts->state = job_state_words(job);
    facts->world = job->plan.world;
    facts->restarts = job->plan.restarts;
    facts->started_s = job->started_s;
    facts->said = &job->output.said;
    facts->node = job->plan.node;
    facts->nodes = job->plan.nodes;
}

static const struct status_hooks status_hooks = { status_observer_ask_nodes,
                                                  status_observer_facts };

static int status_observer_job_began(void *state, struct job *job)
{
    struct status_watch *status = state;

    status->job = job;
    if (job->options->status.is_on)
        output_open_consoles(&job->output); /* the page also shows ctrun's messages */
    return status_open(&status->server, job->base, job->options, &job->control,
                       job->meet.is_coordinator, &status_hooks, status);
}

static void status_observer_close(void *state, const struct job_end *end)
{
    (void)end;
    status_close(&((struct status_watch *)state)->server);
}

static void status_observer_round_began(void *state, struct job *job)
{
    struct status_watch *status = state;

    status_begin_round(&status->server, job->workers, job->size);
    status->has_round = 1;
}

/* Sends the state of this node's ranks to the coordinator, as the answer to request `look`. */
static void status_observer_look(void *state, unsigned look)
{
    struct status_watch *status = state;
    struct nodes *nodes = status->job->nodes;
    struct text rows = { 0 };

    status_rows(&status->server, status->job->plan.restarts, &rows);
    nodes->ops->rows(nodes, look, rows.data, rows.used);
    free(rows.data);
}

static void status_observer_round_ended(void *state, struct job *job)
{
    (void)job;
    status_end_round(&((struct status_watch *)state)->server);
}

/* Sends the last state of this node's workers to the coordinator if a client read the page in this
 * round. */
static void status_observer_drain(void *state, struct job *job)
{
    struct status_watch *status = state;

    if (status->has_round && status->server.was_asked && !job->meet.is_coordinator)
        status_observer_look(status, 0);
    status->has_round = 0;
    job_drained(job);
}

static void status_observer_rows(void *state, int node, unsigned look, const char *rows,
                                 size_t bytes)
{
    status_take(&((struct status_watch *)state)->server, node, look, rows, bytes);
}

const struct job_observer status_observer = { .bytes = sizeof(struct status_watch),
                                              .job_began = status_observer_job_began,
                                              .close = status_observer_close,
                                              .round_began = status_observer_round_began,
                                              .round_ended = status_observer_round_ended,
                                              .drain = status_observer_drain,
                                              .look = status_observer_look,
                                              .rows = status_observer_rows };
