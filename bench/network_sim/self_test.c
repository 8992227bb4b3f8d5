/* SPDX-License-Identifier: Apache-2.0 */
/* self_test.c - schedules of which the time is known, and wrong ones, which must be named. */
#include "bench/network_sim/self_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/network_sim/memory.h"
#include "bench/network_sim/simulate.h"
#include "collectives/core/sendrecv.h"

static int failures;

/* With its header. */
static double on_wire(size_t bytes)
{
    return (double)(bytes + sizeof(struct frame)) * model.network.us_per_byte;
}

static double one_way(size_t bytes)
{
    return 2 * model.network.overhead_us + latency_us() + on_wire(bytes);
}

static void expect_time(const char *what, const struct outcome *o, double us)
{
    if (!o->failure[0] && fabs(o->us - us) < 1e-6 * us)
        return;
    printf("%s: %.3f us, not %.3f; %s\n", what, o->us, us, o->failure);
    failures++;
}

static void expect_failure(const char *what, ct_status (*body)(ct_group *), int hosts,
                           const char *sentence)
{
    struct outcome o;

    simulate(hosts, 1, body, &o);
    if (!strcmp(o.failure, sentence))
        return;
    printf("%s: \"%s\", not \"%s\"\n", what, o.failure, sentence);
    failures++;
}

static struct span some(size_t bytes)
{
    return span_of(simulated_memory(), bytes);
}

static struct call call_of(ct_group *g)
{
    return (struct call){ .group = g, .element = 1 };
}

/* ---- Messages of two ranks --------------------------------------------------------- */

static size_t bytes_there;

static ct_status there_and_back(ct_group *g)
{
    struct call c = call_of(g);
    ct_status status = CT_OK;

    for (int turn = 0; turn < 2; turn++)
        status = g->rank == turn ? send_to(&c, 1 - g->rank, some(bytes_there))
                                 : recv_from(&c, 1 - g->rank, some(bytes_there));
    return status;
}

static void ping_pong_takes_two_ways(void)
{
    struct outcome o;

    for (bytes_there = 0; bytes_there <= EAGER_MOST; bytes_there += 1 << 16) {
        simulate(2, 1, there_and_back, &o);
        expect_time("ping-pong", &o, 2 * one_way(bytes_there));
    }
}

/* RTS and CTS are a way each, with the work of a message at the end of each and at the RTS's begin.
 */
static void large_messages_ask_first(void)
{
    const double asks = 3 * model.network.overhead_us + 2 * latency_us();
    struct outcome o;

    bytes_there = 1 << 20;
    simulate(2, 1, there_and_back, &o);
    expect_time("ping-pong of 1 MiB", &o,
                2 * (asks + model.network.overhead_us + latency_us() + on_wire(bytes_there)));
}

static ct_status all_to_the_last(ct_group *g)
{
    struct call c = call_of(g);
    ct_status status = CT_OK;

    if (g->rank < g->size - 1)
        return send_to(&c, g->size - 1, some(65536));
    for (int from = 0; from < g->size - 1 && status == CT_OK; from++)
        status = recv_from(&c, from, some(65536));
    return status;
}

static void a_wire_carries_one_at_a_time(void)
{
    struct outcome o;

    simulate(9, 1, all_to_the_last, &o);
    expect_time("eight to one", &o, one_way(65536) + 7 * on_wire(65536));
}

/* ---- Algorithms -------------------------------------------------------------------- */

static int row_named(const struct job *job, const char *name)
{
    struct row_info rows[MOST_ROWS];
    const int count = job_rows(job, rows);

    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name))
            return i;
    return -1;
}

static void run_row(const struct job *job, const char *name, struct outcome *o)
{
    const int row = row_named(job, name);

    if (row >= 0)
        job_simulate(job, row, o);
    else
        snprintf(o->failure, sizeof o->failure, "no row %s", name);
}

/* First the own block is copied to its place. */
static void ring_takes_its_formula(void)
{
    const double copy = (1 << 14) * model.copy_us_per_byte;

    for (int hosts = 2; hosts <= 32; hosts *= 2) {
        const struct job job = { OPERATION_ALL_GATHER, (size_t)hosts << 14, hosts, 1 };
        struct outcome o;

        run_row(&job, "ring", &o);
        expect_time("all_gather in a ring", &o, copy + (hosts - 1) * one_way(1 << 14));
    }
}

static void barrier_takes_its_formula(void)
{
    for (int hosts = 2; hosts <= 1000; hosts = 2 * hosts - 1) {
        const struct job job = { OPERATION_BARRIER, 0, hosts, 1 };
        struct outcome o;

        run_row(&job, "nodes", &o);
        expect_time("barrier", &o, ceil(log2(hosts)) * one_way(0));
    }
}

static void all_operations_end_as_they_did_before(void)
{
    static const int operations[] = { OPERATION_BROADCAST,      OPERATION_REDUCE,
                                      OPERATION_ALL_REDUCE,     OPERATION_ALL_GATHER,
                                      OPERATION_REDUCE_SCATTER, OPERATION_BARRIER };

    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (int hosts = 2; hosts <= 21; hosts += 19)
            for (size_t bytes = 8; bytes <= 10000000; bytes *= 10) {
                const struct job job = { operations[i], bytes, hosts, 3 };
                struct row_info rows[MOST_ROWS];
                const int count = job_rows(&job, rows);
                struct outcome o, again;

                for (int row = 0; row < count; row++) {
                    if (!rows[row].can)
                        continue;
                    job_simulate(&job, row, &o);
                    job_simulate(&job, row, &again);
                    expect_time(rows[row].name, &again, o.us);
                    if (o.us >= job_bound(&job) || model.skew_us > 0)
                        continue;
                    printf("%s by %s, %zu bytes, %d hosts: %.1f us, less than the bound\n",
                           operation_name(job.operation), rows[row].name, bytes, hosts, o.us);
                    failures++;
                }
            }
}

/* ---- Wrong schedules ----------------------------------------------------------------- */

static ct_status sizes_differ(ct_group *g)
{
    struct call c = call_of(g);

    return g->rank == 0 ? send_to(&c, 1, some(8)) : recv_from(&c, 0, some(16));
}

static ct_status each_waits(ct_group *g)
{
    struct call c = call_of(g);

    return recv_from(&c, (g->rank + 1) % g->size, some(8));
}

static ct_status nobody_receives(ct_group *g)
{
    struct call c = call_of(g);

    return g->rank == 0 ? send_to(&c, 1, some(8)) : CT_OK;
}

static void wrong_schedules_are_named(void)
{
    expect_failure("sizes that differ", sizes_differ, 2,
                   "rank 0 sent 8 bytes to rank 1, which receives 16");
    expect_failure("a deadlock", each_waits, 3,
                   "3 ranks wait for ever: rank 0 waits for a message of rank 1 (8 bytes); "
                   "rank 1 waits for a message of rank 2 (8 bytes)");
    expect_failure("a message too many", nobody_receives, 2,
                   "rank 0 sent 8 bytes to rank 1, which did not receive them");
}

int self_test(void)
{
    model.skew_us = 0;
    ping_pong_takes_two_ways();
    large_messages_ask_first();
    a_wire_carries_one_at_a_time();
    ring_takes_its_formula();
    barrier_takes_its_formula();
    all_operations_end_as_they_did_before();
    wrong_schedules_are_named();
    model.skew_us = 100;
    all_operations_end_as_they_did_before();
    if (failures == 0)
        printf("as the formulas have it\n");
    return failures > 0;
}
