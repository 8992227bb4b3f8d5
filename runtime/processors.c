/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - how many there are for the ranks of a host, and who is on which.
 *
 * With a processor for each rank a wait spins, and a rank that finds itself on the processor of the
 * one that it waits for goes elsewhere.  With fewer, spinning is in vain. */
#include <sched.h>
#include <stdio.h>

#include "runtime/clock.h"
#include "runtime/wait.h"

/* How long a rank stays where it is after it stepped aside: each move takes some 5 us. */
#define STAYS_AT_LEAST_NS 2000000
#define STAYS_AT_MOST_NS 64000000
/* Stayed so much longer than it had to, a move is not the last one's echo. */
#define STAYED_LONG 8
/* The scheduler puts a rank back on the processor of a busier one, and it leaves again. */
#define LEAVES_EVERY_NS 4000000
#define TURNS_BETWEEN_LOOKS 64 /* at where the awaited rank is: the line is another core's */

/* What the cgroup lets us use, in whole cores (at least 1); 0: no limit known. */
static int cgroup_cores(void)
{
    long quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        quota = 0;
    fclose(file);
    return quota == 0 ? 0 : quota < period ? 1 : (int)(quota / period);
}

int processors_usable(void)
{
    cpu_set_t set;
    const int limit = cgroup_cores();
    int cores = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    return limit > 0 && limit < cores ? limit : cores;
}

/* Others see where we are.  Written only if it is news: they read it all the time. */
int wait_say_where(const struct waiter *waiter)
{
    const int here = sched_getcpu();

    if (atomic_load_explicit(&waiter->bell->processor, memory_order_relaxed) != here + 1)
        atomic_store_explicit(&waiter->bell->processor, here + 1, memory_order_relaxed);
    return here;
}

static void go_elsewhere(const struct waiter *waiter)
{
    const int here = sched_getcpu();
    cpu_set_t all, others;

    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) < 0)
        return;
    others = all;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof all, &all);
    wait_say_where(waiter);
}

/* The scheduler leaves two ranks that hand over to each other on one processor for seconds, since
 * each looks idle half of the time: an all-reduce of 8 bytes takes 6 us there and 0.5 on two.  Who
 * soon finds itself there again, since others use the rest, moves ever more seldom. */
static void step_aside(struct waiter *waiter)
{
    const uint64_t now = clock_coarse_ns();
    const uint64_t since = now - atomic_load_explicit(&waiter->stepped_aside, memory_order_relaxed);
    uint64_t stays = atomic_load_explicit(&waiter->stays, memory_order_relaxed);

    if (waiter->spins == 0 || since < stays)
        return;
    stays = since > STAYED_LONG * stays || stays == 0 ? STAYS_AT_LEAST_NS : 2 * stays;
    stays = stays < STAYS_AT_MOST_NS ? stays : STAYS_AT_MOST_NS;
    atomic_store_explicit(&waiter->stays, stays, memory_order_relaxed);
    atomic_store_explicit(&waiter->stepped_aside, now, memory_order_relaxed);
    go_elsewhere(waiter);
}

void wait_for_rank(struct wait *wait, int local_rank)
{
    struct waiter *waiter = wait->waiter;

    if (wait->turns >= waiter->spins || wait->turns % TURNS_BETWEEN_LOOKS != 0
        || !bell_is_on(&waiter->bells[local_rank], wait_say_where(waiter)))
        return;
    wait_for_processor(wait);
    if (local_rank < waiter->rank) /* of two only one, or they meet again elsewhere */
        step_aside(waiter);
}

/* With fewer processors than ranks the scheduler gives each its share, also the one that all others
 * wait for.  Those that gather on the other processors have less of these, and wait less. */
void wait_leave_processor(struct waiter *waiter, int local_rank)
{
    const uint64_t now = clock_coarse_ns();

    if (waiter->spins > 0
        || now - atomic_load_explicit(&waiter->stepped_aside, memory_order_relaxed)
               < LEAVES_EVERY_NS
        || !bell_is_on(&waiter->bells[local_rank], wait_say_where(waiter)))
        return;
    atomic_store_explicit(&waiter->stepped_aside, now, memory_order_relaxed);
    go_elsewhere(waiter);
}
