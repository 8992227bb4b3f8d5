/* SPDX-License-Identifier: Apache-2.0 */
/* host_rounds.c - runtime/group/shm's rounds among the ranks of a host (rounds.h), simulated.
 *
 * A rank that waits for others goes on a hop after the last of them arrived.  Bytes in slots cost
 * what it takes to copy them; where they would lie is no matter, since nothing reads them. */
#include "bench/network_sim/host_rounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/network_sim/memory.h"
#include "bench/network_sim/network.h"
#include "bench/network_sim/scheduler.h"

enum { ALL = -1, NOT_WAITING = -2 };

struct shm_group {
    struct shm_group *host; /* the first of the host's; they are consecutive */
    int rank, count;        /* on the host; of the host */
    int global;             /* its rank */
    uint64_t round;         /* the last in which it arrived */
    double arrived;         /* when */
    /* What it waits for: arrival of that rank, or of all but one, in that round. */
    int awaited, but;
    uint64_t awaited_round;
};

struct shm_group *host_rounds_make(int hosts, int each)
{
    struct shm_group *all = calloc((size_t)hosts * (size_t)each, sizeof *all);

    for (int i = 0; all && i < hosts * each; i++)
        all[i] = (struct shm_group){ .host = &all[i / each * each],
                                     .rank = i % each,
                                     .count = each,
                                     .global = i,
                                     .awaited = NOT_WAITING };
    return all;
}

struct shm_group *host_rounds_of(struct shm_group *all, int rank)
{
    return all[rank].count > 1 ? &all[rank] : NULL;
}

/* When the last that f waits for arrived; -1: it has not yet. */
static double last_arrival(const struct shm_group *f)
{
    double last = 0;

    for (int i = 0; i < f->count; i++) {
        const struct shm_group *other = &f->host[i];

        if (other == f || i == f->but || (f->awaited != ALL && i != f->awaited))
            continue;
        if (other->round < f->awaited_round)
            return -1;
        /* Of a later round: it arrived in the awaited one before f could need it. */
        if (other->round == f->awaited_round && other->arrived > last)
            last = other->arrived;
    }
    return last;
}

static void wake_waiter(void *arg)
{
    struct shm_group *f = arg;

    works(f->global, now(), 0);
    wake(f->global);
}

static ct_status wait_for(struct shm_group *f, uint64_t round, int rank, int but)
{
    double last;

    f->awaited = rank;
    f->but = but;
    f->awaited_round = round;
    last = last_arrival(f);
    if (last >= 0) {
        f->awaited = NOT_WAITING;
        if (last > 0)
            works(f->global, last + model.hop_us, 0);
        return CT_OK;
    }
    sleep_here();
    return CT_OK;
}

static void arrive(struct shm_group *f)
{
    f->round++;
    f->arrived = clock_of(f->global);
    for (int i = 0; i < f->count; i++) {
        struct shm_group *other = &f->host[i];
        const double last = other->awaited == NOT_WAITING ? -1 : last_arrival(other);

        if (last < 0)
            continue;
        other->awaited = NOT_WAITING;
        at_time(last + model.hop_us, wake_waiter, other);
    }
}

/* ---- The verbs of rounds.h and slots.h ---------------------------------------------- */

size_t shm_group_slot_bytes(const struct shm_group *f)
{
    (void)f;
    return SHM_GROUP_MOST_SLOT;
}

/* As for large slots, which are still read until all have arrived in the round. */
ct_status shm_group_next_slot(struct shm_group *f, size_t bytes)
{
    (void)bytes;
    return wait_for(f, f->round, ALL, f->rank);
}

void *shm_group_own(const struct shm_group *f)
{
    (void)f;
    return simulated_memory();
}

const void *shm_group_slot(const struct shm_group *f, int rank)
{
    (void)f, (void)rank;
    return simulated_memory();
}

void *shm_group_answer(const struct shm_group *f)
{
    (void)f;
    return simulated_memory();
}

void shm_group_write(struct shm_group *f, size_t at, const void *from, size_t bytes)
{
    (void)at;
    simulated_copy(shm_group_own(f), from, bytes);
}

int shm_group_streams(const struct shm_group *f)
{
    (void)f;
    return 0;
}

ct_status shm_group_publish(struct shm_group *f)
{
    arrive(f);
    return CT_OK;
}

ct_status shm_group_wait(struct shm_group *f, int rank)
{
    return wait_for(f, f->round, rank, f->rank);
}

ct_status shm_group_wait_all(struct shm_group *f)
{
    return wait_for(f, f->round, ALL, f->rank);
}

ct_status shm_group_enter_gate(struct shm_group *f, int gate)
{
    (void)gate;
    arrive(f);
    return CT_OK;
}

ct_status shm_group_pass_gate(struct shm_group *f, int gate)
{
    return wait_for(f, f->round, gate, f->rank);
}

ct_status shm_group_hold_gate(struct shm_group *f, int gate)
{
    (void)gate;
    return wait_for(f, f->round + 1, ALL, f->rank);
}

void shm_group_open_gate(struct shm_group *f)
{
    arrive(f);
}

int shm_group_shares_processors(const struct shm_group *f)
{
    (void)f;
    return 0;
}
