/* SPDX-License-Identifier: Apache-2.0 */
/* hand_over.c - how long it takes until one process sees what another wrote.
 *
 * Two processes raise two flags in turns, waiting for the other's by spinning, by yielding the
 * CPU after each look, or by sleeping in futex().  Spinning on one CPU is left out: the one who
 * waits keeps it for a tick. */
#include <linux/futex.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/ct_bench/crew.h"
#include "bench/ct_bench/limits.h"
#include "bench/ct_bench/measure.h"

#define ROUND_US 100000.0
#define LONGEST_ROUND_US \
    1e6 /* for two processes that have not had their CPUs at the same time yet */
#define UNDISTURBED_US 100.0
#define BURST 32 /* turns; short, so that on a busy host some go undisturbed */
#define SLOW_BURST_US \
    1e3 /* after one the next is of one turn: where each costs a time slice, 32 take long */
#define LAST 0x80000000u /* in a flag: the round's last turn */

enum way { SPIN, YIELD, FUTEX };

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    const struct timespec second = { 1, 0 }; /* a wake-up that is lost delays, and no more */

    syscall(SYS_futex, word, operation, value, operation == FUTEX_WAIT ? &second : NULL, NULL, 0);
}

static void raise_flag(enum way way, _Atomic uint32_t *flag, uint32_t value)
{
    atomic_store_explicit(flag, value, memory_order_release);
    if (way == FUTEX)
        futex(flag, FUTEX_WAKE, 1);
}

/* Returns what the flag has become. */
static uint32_t wait_for(enum way way, _Atomic uint32_t *flag, uint32_t before)
{
    uint32_t seen;

    while ((seen = atomic_load_explicit(flag, memory_order_acquire)) == before) {
        if (way == YIELD)
            sched_yield();
        else if (way == FUTEX)
            futex(flag, FUTEX_WAIT, before);
    }
    return seen;
}

/* Member 0 leads; the time of one way in the best burst of turns. */
static double lead(enum way way, _Atomic uint32_t *mine, _Atomic uint32_t *other, uint32_t *turn)
{
    const double began = now_us();
    double best = INFINITY;
    int turns = 1;

    for (int last = 0; !last;) {
        const double burst = now_us();
        double us;

        last = burst - began > (best < UNDISTURBED_US ? ROUND_US : LONGEST_ROUND_US);
        for (int i = 0; i < turns; i++) {
            const uint32_t before = *turn;

            *turn = ((before & ~LAST) + 1) | (last && i == turns - 1 ? LAST : 0);
            raise_flag(way, mine, *turn);
            wait_for(way, other, before);
        }
        us = now_us() - burst;
        best = fmin(best, us / (2 * turns));
        turns = us > SLOW_BURST_US ? 1 : BURST;
    }
    return best;
}

static void answer(enum way way, _Atomic uint32_t *mine, _Atomic uint32_t *other, uint32_t *turn)
{
    do {
        *turn = wait_for(way, other, *turn);
        raise_flag(way, mine, *turn);
    } while (!(*turn & LAST));
}

static int take_turns(const struct member *m)
{
    const enum way way = *(const enum way *)m->arg;
    _Atomic uint32_t *mine = &m->place->flag[m->index][0];
    _Atomic uint32_t *other = &m->place->flag[1 - m->index][0];
    uint32_t turn = 0;

    if (crew_meet(m) != 0)
        return -1;
    if (m->index == 1)
        answer(way, mine, other, &turn);
    else
        m->place->result[0] = lead(way, mine, other, &turn);
    return 0;
}

static int one_way(const cpu_set_t *cpus, int on_one, enum way way, double *us, char why[200])
{
    double result[CREW_RESULTS];
    const int failed = crew_run(2, cpus, on_one, take_turns, &way, result, why);

    *us = result[0];
    return failed;
}

int limits_hand_overs(struct limits *limits, const cpu_set_t *cpus, char why[200])
{
    struct hand_overs *h = &limits->hand_overs;

    *h = (struct hand_overs){ NAN, NAN, NAN, NAN, NAN };
    if (one_way(cpus, 1, YIELD, &h->yield_on_one, why) < 0
        || one_way(cpus, 1, FUTEX, &h->futex_on_one, why) < 0)
        return -1;
    if (CPU_COUNT(cpus) < 2)
        return 0;
    return one_way(cpus, 0, SPIN, &h->spin, why) < 0 || one_way(cpus, 0, YIELD, &h->yield, why) < 0
                   || one_way(cpus, 0, FUTEX, &h->futex, why) < 0
               ? -1
               : 0;
}
