/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - groups of simulated ranks, and what stands between an operation's entry and its
 * algorithm.
 *
 * Each rank calls ct_all_reduce() or another real entry, which describes the call; call_run() here
 * makes a struct call of that as collectives/core/call.c does, and runs the wanted row.  The groups
 * share all arrays and differ in their rank. */
#include "bench/network_sim/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/network_sim/host_rounds.h"
#include "bench/network_sim/memory.h"
#include "bench/network_sim/scheduler.h"
#include "collectives/core/algorithms.h"
#include "collectives/registry.h"

static struct {
    ct_group *groups;
    int *order, *ends; /* the ranks, which are in the order of the hosts; where hosts end */
    struct shm_group *rounds;
    struct choices choices;
    struct network network;
    ct_status (*body)(ct_group *group);
    const struct job *job;
    int row;                                       /* that runs */
    double begin;                                  /* of the last rank */
    double *sample;                                /* [ranks] of its own time */
    void (*look)(const struct call *call, void *); /* instead of running it */
    void *look_arg;
} sim;

static struct mesh mesh; /* only its address is used */

/* ---- Groups ----------------------------------------------------------------------- */

static void close_groups(void)
{
    free(sim.groups);
    free(sim.order);
    free(sim.ends);
    free(sim.rounds);
    sim.groups = NULL;
    sim.order = sim.ends = NULL;
    sim.rounds = NULL;
}

static void fill(ct_group *g, int rank, int hosts, int each)
{
    g->mesh = &mesh;
    g->root = g;
    g->member = 1;
    g->rank = rank;
    g->size = hosts * each;
    g->ranks = g->order.fold_rank = g->order.fold_at = sim.order;
    g->order.node_end = sim.ends;
    g->order.hosts = hosts;
    g->order.host_least = g->order.host_most = each;
    g->order.fold = (struct fold){ .sources = g->size, .nodes = hosts, .node_end = sim.ends };
    g->algorithms.choices = &sim.choices;
    g->algorithms.network = &sim.network;
    g->host_shm = host_rounds_of(sim.rounds, rank);
    g->shm = hosts == 1 ? g->host_shm : NULL;
}

static int open_groups(int hosts, int each)
{
    const size_t ranks = (size_t)hosts * (size_t)each;

    sim.groups = calloc(ranks, sizeof *sim.groups);
    sim.order = malloc(ranks * sizeof *sim.order);
    sim.ends = malloc((size_t)hosts * sizeof *sim.ends);
    sim.rounds = host_rounds_make(hosts, each);
    sim.network = (struct network){ .model = model.network, .is_given = 1 };
    if (!sim.groups || !sim.order || !sim.ends || !sim.rounds)
        return -1;
    for (int i = 0; i < hosts; i++)
        sim.ends[i] = (i + 1) * each;
    for (int i = 0; i < (int)ranks; i++) {
        sim.order[i] = i;
        fill(&sim.groups[i], i, hosts, each);
    }
    return 0;
}

/* ---- A simulation ----------------------------------------------------------------- */

/* From 0 to 1, evenly spread, and the same in each run. */
static double spread(int number)
{
    const double golden = 0.6180339887498949 * number;

    return golden - floor(golden);
}

static void run_rank(int rank)
{
    works(rank, 0, model.skew_us * spread(rank));
    sim.begin = fmax(sim.begin, clock_of(rank));
    if (sim.body(&sim.groups[rank]) != CT_OK)
        simulation_fails("rank %d: %s", rank, ct_last_error());
}

static void name_deadlock(int ranks, int left)
{
    char text[200] = "";
    size_t used = 0;

    for (int i = 0, named = 0; i < ranks && named < 2; i++)
        if (!has_ended(i) && used < sizeof text) {
            char one[90];

            network_name_wait(i, one, sizeof one);
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s", named++ ? "; " : "", one);
        }
    simulation_fails("%d ranks wait for ever: %s", left, text);
}

static void check_end(int ranks, int left)
{
    char text[200];

    if (simulation_failure()[0])
        return;
    network_name_leftover(text, sizeof text);
    if (left > 0)
        name_deadlock(ranks, left);
    else if (*text)
        simulation_fails("%s", text);
}

void simulate(int hosts, int each, ct_status (*body)(ct_group *group), struct outcome *outcome)
{
    const int ranks = hosts * each;

    *outcome = (struct outcome){ 0 };
    if (simulated_memory_open() < 0 || network_open(hosts, each) < 0 || scheduler_open(ranks) < 0
        || open_groups(hosts, each) < 0) {
        snprintf(outcome->failure, sizeof outcome->failure, "no memory for %d ranks", ranks);
    } else {
        sim.body = body;
        sim.begin = 0;
        check_end(ranks, scheduler_run(run_rank));
        for (int i = 0; i < ranks; i++)
            outcome->us = fmax(outcome->us, clock_of(i) - sim.begin);
        outcome->traffic = network_traffic();
        snprintf(outcome->failure, sizeof outcome->failure, "%s", simulation_failure());
    }
    close_groups();
    network_close();
}

/* ---- A job ------------------------------------------------------------------------- */

#define DTYPE CT_I32 /* for which the rows of any order can, too */

static size_t block_count(const struct job *job, size_t blocks)
{
    const size_t count = job->bytes / ct_dtype_size(DTYPE) / blocks;

    return count > 0 ? count : 1;
}

static int has_blocks(int operation)
{
    return operation == OPERATION_ALL_GATHER || operation == OPERATION_REDUCE_SCATTER;
}

size_t job_bytes(const struct job *job)
{
    const size_t blocks = has_blocks(job->operation) ? (size_t)job->hosts * (size_t)job->each : 1;

    return job->operation == OPERATION_BARRIER
               ? 0
               : block_count(job, blocks) * blocks * ct_dtype_size(DTYPE);
}

static ct_status make_call(ct_group *g)
{
    const size_t all = block_count(sim.job, 1), each = block_count(sim.job, (size_t)g->size);
    void *const memory = simulated_memory();

    switch (sim.job->operation) {
    case OPERATION_ALL_REDUCE:
        return ct_all_reduce(g, memory, memory, all, DTYPE, CT_SUM, NULL);
    case OPERATION_REDUCE:
        return ct_reduce(g, memory, memory, all, DTYPE, CT_SUM, 0, NULL);
    case OPERATION_BROADCAST:
        return ct_broadcast(g, memory, all, DTYPE, 0, NULL);
    case OPERATION_ALL_GATHER:
        return ct_all_gather(g, memory, memory, each, DTYPE, NULL);
    case OPERATION_REDUCE_SCATTER:
        return ct_reduce_scatter(g, memory, memory, each, DTYPE, CT_SUM, NULL);
    default:
        return ct_barrier(g, NULL);
    }
}

int ct_rank(const ct_group *group)
{
    return group->rank;
}

int ct_size(const ct_group *group)
{
    return group->size;
}

ct_status call_run(const struct request_of_call *r, ct_work **work)
{
    struct call c = { .group = r->group,
                      .network = &sim.network.model,
                      .algorithms = r->algorithms,
                      .element = operation_is_barrier(r->operation) ? 1 : ct_dtype_size(r->dtype),
                      .send = r->send,
                      .recv = r->recv,
                      .signature = { .count = r->count,
                                     .operation = (uint8_t)r->operation,
                                     .dtype = (uint8_t)r->dtype,
                                     .op = (int16_t)(r->op == NONE ? -1 : r->op),
                                     .root = r->root == NONE ? -1 : r->root } };

    (void)work;
    if (sim.look) {
        sim.look(&c, sim.look_arg);
        return CT_OK;
    }
    if (r->operation == sim.job->operation)
        c.algorithm = operation_algorithms(r->operation)[sim.row];
    else if (call_choose(&c) != CT_OK)
        return CT_ERR_UNSUPPORTED;
    else
        call_choose_fastest(&c);
    return c.algorithm->run(&c);
}

const struct algorithm *const *operation_algorithms(int operation)
{
    static const struct algorithm *const *const algorithms[OPERATION_COUNT] = {
        [OPERATION_BROADCAST] = broadcast_algorithms,
        [OPERATION_REDUCE] = reduce_algorithms,
        [OPERATION_ALL_REDUCE] = all_reduce_algorithms,
        [OPERATION_REDUCE_SCATTER] = reduce_scatter_algorithms,
        [OPERATION_ALL_GATHER] = all_gather_algorithms,
        [OPERATION_BARRIER] = barrier_algorithms,
    };

    return algorithms[operation];
}

/* ---- What the library says of it ---------------------------------------------------- */

struct look {
    struct row_info *rows;
    int count;
};

static void look_at_rows(const struct call *call, void *arg)
{
    struct look *look = arg;
    struct call c = *call;
    const struct algorithm *const *rows = operation_algorithms(c.signature.operation);

    if (call_choose(&c) != CT_OK)
        return;
    call_choose_fastest(&c);
    for (; rows[look->count] && look->count < MOST_ROWS; look->count++) {
        const struct algorithm *row = rows[look->count];
        const int can = !row->fits || row->fits(&c);

        look->rows[look->count] =
            (struct row_info){ row->name, can, row == c.algorithm,
                               can && row->cost ? row->cost(&c, row->way) : (double)NAN };
    }
}

int job_rows(const struct job *job, struct row_info rows[MOST_ROWS])
{
    struct look look = { rows, 0 };

    sim.job = job;
    sim.look = look_at_rows;
    sim.look_arg = &look;
    if (open_groups(job->hosts, job->each) == 0)
        make_call(&sim.groups[0]);
    sim.look = NULL;
    close_groups();
    return look.count > 0 ? look.count : -1;
}

void job_simulate(const struct job *job, int row, struct outcome *outcome)
{
    sim.job = job;
    sim.row = row;
    simulate(job->hosts, job->each, make_call, outcome);
}

enum { SAMPLES = 4 };

static ct_status make_samples(ct_group *g)
{
    ct_status status = CT_OK;

    for (int i = 0; i < SAMPLES && status == CT_OK; i++) {
        double begin;

        status = ct_barrier(g, NULL);
        works(g->rank, 0, model.jitter_us * spread(g->rank * (i + 3)));
        begin = clock_of(g->rank);
        if (status == CT_OK)
            status = make_call(g);
        sim.sample[g->rank] = clock_of(g->rank) - begin;
    }
    return status;
}

void job_sample(const struct job *job, int row, struct outcome *outcome)
{
    const size_t ranks = (size_t)job->hosts * (size_t)job->each;

    sim.job = job;
    sim.row = row;
    sim.sample = calloc(ranks, sizeof *sim.sample);
    if (!sim.sample) {
        *outcome = (struct outcome){ .failure = "no memory for the times of all ranks" };
        return;
    }
    simulate(job->hosts, job->each, make_samples, outcome);
    outcome->us = 0;
    for (size_t i = 0; i < ranks; i++)
        outcome->us = fmax(outcome->us, sim.sample[i]);
    free(sim.sample);
    sim.sample = NULL;
}
