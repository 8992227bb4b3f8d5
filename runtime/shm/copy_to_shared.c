/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.c - copies by ordinary or by non-temporal stores, whichever is faster at present.
 *
 * A writer that overwrites memory which another processor has read must first get the cache lines
 * back from that processor.  Two threads of one core share the cache, so that costs nothing.  From
 * a core with another cache, 64 KiB took 16 us here, and 6 us by non-temporal stores: those fetch
 * nothing, and the reader finds the bytes in memory.  With a shared cache it is the other way
 * round, 3 us and 6 us.  On virtual machines one case becomes the other within seconds, and no
 * topology shows it.
 *
 * So the writer measures its own copies.  Now and then it tries the other way, for a bit more
 * than one lap of all of the memory: the first copies find their lines where the last way has
 * left them, so only the last ones count.  Trials take a fiftieth of the time. */
#include "runtime/shm/copy_to_shared.h"

#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/util/clock.h"

#define LEAST_BYTES 4096 /* for fewer bytes, reading the clock costs too large a part */
/* one of so many copies outside of trials: each reading of the clock costs some 40 ns */
#define MEASURED 4
#define THAT_COUNTS 4     /* the last one of so many parts of a lap counts */
#define BETWEEN_TRIALS 50 /* so many times as long as a trial, within these limits */
#define LEAST_BETWEEN_NS 1000000
#define MOST_BETWEEN_NS 50000000
#define SOONER 8   /* so many times sooner if the chosen way has become */
#define SLOWER 1.5 /* this many times slower since it was chosen */
/* The writer does not see the reader's cost of fetching from memory what non-temporal stores
 * wrote.  So they must be this many times faster for the writer (measured: 3 to 5 times with
 * separate caches, 0.5 to 1.4 times with a shared one). */
#define AT_LEAST 2
#define MEMORY 4      /* how many measured copies the mean goes back */
#define INTERRUPTED 4 /* so many times the mean: another process ran meanwhile */

enum { ORDINARY, STREAMING }; /* ordinary stores, non-temporal stores: indices of cost[] */

static void copy_by(int streams, void *to, const void *from, size_t bytes)
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
    s->streams = AT_LEAST * s->cost[STREAMING] < s->cost[ORDINARY];
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

static void note_copy(struct copy_shared *s, double cost, int64_t now)
{
    /* the memory is new, so the time includes page faults */
    const int is_first_lap = s->bytes <= s->lap;
    double *mean = &s->cost[s->streams];

    if (*mean == 0 || is_first_lap)
        *mean = cost;
    else if (cost < INTERRUPTED * *mean)
        *mean += (cost - *mean) / MEMORY;
    else
        *mean *= 1 + 1.0 / MEMORY; /* unless it became so slow for good */
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
        copy_by(s->streams, to, from, bytes);
        return;
    }
    begun = clock_ns(CLOCK_MONOTONIC);
    copy_by(s->trying ? !s->streams : s->streams, to, from, bytes);
    now = clock_ns(CLOCK_MONOTONIC);
    cost = (double)(now - begun + 1) / (double)bytes;
    s->took += now - begun;
    if (s->trying)
        note_trial(s, cost, bytes, now);
    else
        note_copy(s, cost, now);
}
