/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.c - through the caches or past them, whichever is faster just now.
 *
 * Who overwrites memory that another processor has read must get its lines back from there.  Two
 * threads of one core share the cache, and that is nothing; from a core with another cache, 64 KiB
 * took 16 us here, and past the caches 6: a non-temporal store fetches nothing, and the reader
 * finds the bytes in memory.  With a shared cache it is the other way round, 3 us and 6.  On
 * virtual machines one becomes the other within seconds, and no topology says so.
 *
 * So the writer measures its own copies.  Now and then it tries the other way: once round all of
 * the memory and a bit, since the first ones find their lines where the last way has left them, and
 * only the last ones count.  Trials take a fiftieth of the time. */
#include "runtime/shm/copy_to_shared.h"

#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/util/clock.h"

#define LEAST_BYTES 4096  /* below, to look at the clock costs too much of it */
#define MEASURED 4        /* one of so many, outside of trials: each look costs some 40 ns */
#define THAT_COUNTS 4     /* the last one of so many parts of a lap */
#define BETWEEN_TRIALS 50 /* times as long as a trial, within these limits */
#define LEAST_BETWEEN_NS 1000000
#define MOST_BETWEEN_NS 50000000
#define SOONER 8   /* so many times sooner, if the way that is taken has become ... */
#define SLOWER 1.5 /* ... times slower since it was chosen */
/* The writer does not see that the reader has to fetch from memory what went past the caches: that
 * way has to be so many times faster for the writer (3 to 5 with caches apart, 0.5 to 1.4 with
 * one). */
#define AT_LEAST 2
#define MEMORY 4      /* measured copies that the mean goes back */
#define INTERRUPTED 4 /* times the mean: somebody else ran meanwhile */

enum { THROUGH, PAST }; /* the caches: of cost[] */

static void copy(int streams, void *to, const void *from, size_t bytes)
{
    if (streams)
        copy_streaming(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

static void end_trial(struct copy_shared *s, int64_t now)
{
    int64_t rest = s->took * BETWEEN_TRIALS;

    rest = rest > LEAST_BETWEEN_NS ? rest : LEAST_BETWEEN_NS;
    rest = rest < MOST_BETWEEN_NS ? rest : MOST_BETWEEN_NS;
    s->streams = AT_LEAST * s->cost[PAST] < s->cost[THROUGH];
    s->found = s->cost[s->streams];
    s->try_at = now + rest;
    s->try_soonest = now + rest / SOONER;
}

static void note_trial(struct copy_shared *s, double cost, size_t bytes, int64_t now)
{
    double *best = &s->cost[!s->streams];

    if (s->trying > s->counts || cost < *best)
        *best = cost;
    s->trying -= bytes < s->trying ? bytes : s->trying;
    if (s->trying == 0)
        end_trial(s, now);
}

static void note(struct copy_shared *s, double cost, int64_t now)
{
    const int is_first_lap = s->bytes <= s->lap; /* its memory is new: the kernel takes its time */
    double *mean = &s->cost[s->streams];

    if (*mean == 0 || is_first_lap)
        *mean = cost;
    else if (cost < INTERRUPTED * *mean)
        *mean += (cost - *mean) / MEMORY;
    else
        *mean *= 1 + 1.0 / MEMORY; /* or it became so slow for good */
    if (is_first_lap || now < s->try_soonest || (now < s->try_at && *mean < SLOWER * s->found))
        return;
    s->counts = s->lap / THAT_COUNTS;
    s->trying = s->lap + s->counts;
    s->took = 0;
}

void copy_shared(struct copy_shared *s, void *to, const void *from, size_t bytes)
{
    int64_t begun, now;
    double cost;

    if (bytes < LEAST_BYTES) {
        if (bytes > 0)
            memcpy(to, from, bytes);
        return;
    }
    s->copies++;
    s->bytes += bytes;
    if (!s->trying && s->copies % MEASURED != 0) {
        copy(s->streams, to, from, bytes);
        return;
    }
    begun = clock_ns(CLOCK_MONOTONIC);
    copy(s->trying ? !s->streams : s->streams, to, from, bytes);
    now = clock_ns(CLOCK_MONOTONIC);
    cost = (double)(now - begun + 1) / (double)bytes;
    s->took += now - begun;
    if (s->trying)
        note_trial(s, cost, bytes, now);
    else
        note(s, cost, now);
}
