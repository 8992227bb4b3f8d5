/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - how many there are for the ranks of a host, and who is on which.
 *
 * With a processor for each rank a wait spins, or sleeps if it is on the processor of the rank that
 * it waits for.  With fewer, spinning is in vain.  Where ranks run is the user's, ctrun's and
 * the scheduler's to say: nothing here changes an affinity. */
#include <sched.h>
#include <stdio.h>

#include "runtime/wait.h"

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

/* Two ranks that hand over to each other look idle half of the time: while they yield, the
 * scheduler leaves them on one processor for seconds.  One that sleeps is woken where nothing runs.
 */
void wait_for_rank(struct wait *wait, int local_rank)
{
    const struct waiter *waiter = wait->waiter;

    if (wait->turns < waiter->spins && wait->turns % TURNS_BETWEEN_LOOKS == 0
        && bell_is_on(&waiter->bells[local_rank], wait_say_where(waiter)))
        wait_sleeps_at_once(wait);
}
