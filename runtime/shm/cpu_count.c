/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_count.c - how many there are for the ranks of a host, and who is on which.
 *
 * With a processor for each rank a wait spins, or sleeps if it is on the processor of the rank that
 * it waits for.  With fewer, spinning is in vain.  Where ranks run is the user's, ctrun's and
 * the scheduler's to say: nothing here changes an affinity. */
#include <sched.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/cgroup.h"

#define TURNS_BETWEEN_LOOKS 64 /* at where the awaited rank is: the line is another core's */

int processors_usable(const char *root)
{
    const long long limit = cgroup_milli_cpus(root);
    cpu_set_t set;
    int cores = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    if (limit == 0 || limit / 1000 >= cores)
        return cores;
    return limit < 1000 ? 1 : (int)(limit / 1000);
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
