/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_observer.c - serves PMI to the workers of a job (launcher/pmi/pmi_server.h) if the program
 * uses MPI.  A PMI barrier covers the ranks of all nodes.  A fault of a rank fails the round. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/pmi/mpi_library.h"
#include "launcher/pmi/pmi_server.h"
#include "runtime/util/log.h"

struct pmi_watch {
    struct job *job;
    int serves;
    struct pmi_server server;
};

/* ---- What the server finds --------------------------------------------------------- */

static void pmi_observer_on_fence(void *arg, const char *puts, size_t bytes)
{
    struct nodes *nodes = ((struct pmi_watch *)arg)->job->nodes;

    nodes->ops->fence(nodes, puts, bytes);
}

static void pmi_observer_on_fault(void *arg, int local_rank)
{
    struct pmi_watch *pmi = arg;
    struct worker *worker = &pmi->job->workers[local_rank];

    if (pmi->job->state != RUNNING)
        return;
    worker->fault = *pmi_server_fault(&pmi->server, local_rank);
    job_found_fault(pmi->job, worker);
}

static void pmi_observer_on_gone(void *arg, int rank, const char *what)
{
    struct job *job = ((struct pmi_watch *)arg)->job;
    char words[160];

    snprintf(words, sizeof words, "rank %d %s", rank, what);
    job_found_failure(job,
                      (struct failure){ .rank = rank,
                                        .culprit = -1,
                                        .code = 1,
                                        .may_restart = job->options->restart.exits[1],
                                        .what = words },
                      "");
}

static const struct pmi_hooks pmi_hooks = { pmi_observer_on_fence, pmi_observer_on_fault,
                                            pmi_observer_on_gone };

/* ---- What the job tells ------------------------------------------------------------ */

static int pmi_observer_job_began(void *state, struct job *job)
{
    struct pmi_watch *pmi = state;

    pmi->job = job;
    pmi->serves = job->size > 0 && serves_pmi(job->options, &job->program);
    pmi_server_setup(&pmi->server, job->base, &pmi_hooks, pmi, job->options->stall);
    return 0;
}

static void pmi_observer_close(void *state, const struct job_end *end)
{
    (void)end;
    pmi_server_end(&((struct pmi_watch *)state)->server);
}

static int pmi_observer_round_begins(void *state, struct job *job, struct round *round)
{
    struct pmi_watch *pmi = state;
    const struct pmi_round its = { .base = round->base,
                                   .size = round->size,
                                   .world = round->world,
                                   .nodes = round->nodes,
                                   .generation = round->generation,
                                   .mapping = job->plan.mapping };

    round->serves_pmi = pmi->serves;
    if (!pmi->serves || pmi_server_begin(&pmi->server, &its) == 0)
        return 0;
    log_line(LOG_ERROR, "out of memory for PMI");
    return 1;
}

static int pmi_observer_inherits(void *state, int local_rank, struct inherited *inherited)
{
    struct pmi_watch *pmi = state;

    if (!pmi->serves)
        return 0;
    inherited->pmi = pmi_server_give(&pmi->server, local_rank);
    if (inherited->pmi >= 0)
        return 0;
    log_line(LOG_ERROR, "cannot make the socket by which rank %d speaks PMI: %s",
             pmi->server.round.base + local_rank, strerror(errno));
    return 1;
}

/* Tells the PMI server that the worker has inherited its socket.  If a worker did not start,
 * pmi_server_end() closes its socket. */
static void pmi_observer_worker_started(void *state, const struct worker *worker)
{
    pmi_server_given(&((struct pmi_watch *)state)->server, worker->local_rank);
}

/* Sets worker->fault if the worker's end is a fault.  A worker that was asked to stop may exit with
 * code 0 without MPI_Finalize(). */
static void pmi_observer_worker_died(void *state, struct worker *worker)
{
    const struct pmi_fault *fault =
        pmi_server_ended(&((struct pmi_watch *)state)->server, worker->local_rank,
                         worker->how == CLD_EXITED && worker->code == 0 && !worker->asked);

    if (fault)
        worker->fault = *fault;
}

static void pmi_observer_died_elsewhere(void *state, const struct control_death *death)
{
    if (death->how == CLD_EXITED && death->code == 0)
        pmi_server_ended_elsewhere(&((struct pmi_watch *)state)->server, death->rank);
}

static void pmi_observer_round_ended(void *state, struct job *job)
{
    (void)job;
    pmi_server_end(&((struct pmi_watch *)state)->server);
}

static void pmi_observer_puts(void *state, const char *puts, size_t bytes)
{
    if (pmi_server_merge(&((struct pmi_watch *)state)->server, puts, bytes) < 0)
        log_line(LOG_ERROR, "what ranks of other nodes put by PMI can't be read, or there is no "
                            "memory for it: ranks here will miss it");
}

static void pmi_observer_fenced(void *state, struct job *job)
{
    (void)job;
    pmi_server_fenced(&((struct pmi_watch *)state)->server);
}

const struct job_observer pmi_observer = { .bytes = sizeof(struct pmi_watch),
                                           .job_began = pmi_observer_job_began,
                                           .close = pmi_observer_close,
                                           .round_begins = pmi_observer_round_begins,
                                           .inherits = pmi_observer_inherits,
                                           .worker_started = pmi_observer_worker_started,
                                           .worker_died = pmi_observer_worker_died,
                                           .died_elsewhere = pmi_observer_died_elsewhere,
                                           .round_ended = pmi_observer_round_ended,
                                           .puts = pmi_observer_puts,
                                           .fenced = pmi_observer_fenced };
