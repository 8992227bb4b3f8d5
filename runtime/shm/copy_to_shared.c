/* SPDX-License-Identifier: Apache-2.0 */
/* copy_to_shared.c - copies with ordinary or with non-temporal stores, whichever is
 * faster at present.
 *
 * A writer that overwrites memory which another processor has read must first get the cache lines
 * back from that processor.  That costs nothing between two threads of one core, which share the
 * cache.  From a core with another cache, a copy of 64 KiB took 16 us here with ordinary stores and
 * 6 us with non-temporal stores, which fetch nothing and leave the bytes in memory for the reader.
 * With a shared cache ordinary stores took 3 us and non-temporal stores 6 us.  On virtual machines
 * one case becomes the other within seconds, and no topology shows it.
 *
 * So the writer measures its own copies.  From time to time it tries the other kind of stores, for
 * a bit more than one lap through the memory.  In a trial only the last copies count, since the
 * first ones find the cache lines as the previous kind of stores left them.  Trials take a fiftieth
 * of the time. */
#include "runtime/shm/copy_to_shared.h"

#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/util/clock.h"

#define LEAST_BYTES 4096 /* for fewer bytes, reading the clock would cost too much */
/* One copy in this many is timed while no two ways to copy are compared, since reading the clock
 * costs about 40 ns. */
#define MEASURED 4
#define THAT_COUNTS 4     /* in a trial only the last lap/THAT_COUNTS bytes count */
#define BETWEEN_TRIALS 50 /* pause after a trial, as a multiple of the trial's length */
#define LEAST_BETWEEN_NS 1000000
#define MOST_BETWEEN_NS 50000000
/* The pause is so many times shorter if the chosen kind of stores has become SLOWER times slower
 * since it was chosen. */
#define SOONER 8
#define SLOWER 1.5
/* Non-temporal stores are chosen only if the writer is so many times faster with them, since the
 * writer does not see what it costs the reader to fetch the bytes from memory.  They were 3 to 5
 * times as fast with separate caches, and 0.5 to 1.4 times as fast with a shared cache. */
#define AT_LEAST 2
#define MEMORY 4      /* the mean is taken over about this many measured copies */
#define INTERRUPTED 4 /* a copy that takes so many times the mean was interrupted */

enum { ORDINARY, STREAMING }; /* the kinds of stores; indices of cost[] */

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
    /* The memory is new in the first lap, so the time includes page faults. */
    const int is_first_lap = s->bytes <= s->lap;
    double *mean = &s->cost[s->streams];

    if (*mean == 0 || is_first_lap)
        *mean = cost;
    else if (cost < INTERRUPTED * *mean)
        *mean += (cost - *mean) / MEMORY;
    else
        *mean *= 1 + 1.0 / MEMORY; /* rises slowly, in case the copies stay so slow */
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
