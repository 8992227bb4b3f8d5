/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - what each pair of GPUs does: bandwidth one way and both ways, and latency.
 *
 * Bandwidth is timed by events in the streams, four copies at a time, so that what the processor
 * needs to begin a copy does not count; latency by the processor's clock, from the call until it
 * sees that the 16 bytes are there. */
#include <math.h>
#include <time.h>

#include "examples/topology/copies.h"

enum { COPIES = 4, TURNS = 5, SMALL = 16, SMALL_TURNS = 100 };

/* Of each GPU: what it sends, where it receives, and to time it. */
struct side {
    device_pointer out, in;
    device_stream stream;
    device_event begin, end;
};

struct bench {
    const struct machine *machine;
    struct pattern pattern;
    struct side side[GPUS_MOST];
};

static void open_side(struct bench *b, int gpu)
{
    struct side *side = &b->side[gpu];

    side->out = alloc_on(b->machine, gpu, b->pattern.size);
    side->in = alloc_on(b->machine, gpu, b->pattern.size);
    side->stream = stream_on(b->machine, gpu);
    side->begin = event_on(b->machine, gpu);
    side->end = event_on(b->machine, gpu);
    put_window(b->machine, &b->pattern, gpu, side->out);
}

static void close_side(struct bench *b, int gpu)
{
    const struct driver *driver = &b->machine->driver;
    struct side *side = &b->side[gpu];

    use_gpu(b->machine, gpu);
    must(b->machine, driver->stream_destroy(side->stream), "to end a stream");
    must(b->machine, driver->event_destroy(side->begin), "to end an event");
    must(b->machine, driver->event_destroy(side->end), "to end an event");
    must(b->machine, driver->release(side->out), "to free memory");
    must(b->machine, driver->release(side->in), "to free memory");
}

/* In the sender's stream; its context is the current one. */
static void copy(const struct bench *b, int from, int to, size_t bytes)
{
    const struct machine *m = b->machine;

    must(m,
         m->driver.copy_peer(b->side[to].in, m->gpu[to].context, b->side[from].out,
                             m->gpu[from].context, bytes, b->side[from].stream),
         "a copy between GPUs");
}

static void record(const struct bench *b, device_event event, int gpu)
{
    must(b->machine, b->machine->driver.event_record(event, b->side[gpu].stream), "an event");
}

static void wait_for(const struct bench *b, int gpu, device_event event)
{
    must(b->machine, b->machine->driver.stream_wait(b->side[gpu].stream, event, 0), "an event");
}

static double gb_per_s(const struct bench *b, int gpu, double copies)
{
    float ms;

    must(b->machine, b->machine->driver.event_ms(&ms, b->side[gpu].begin, b->side[gpu].end),
         "the time between two events");
    return copies * (double)b->pattern.size / (double)ms / 1e6;
}

static double one_way(const struct bench *b, int from, int to)
{
    use_gpu(b->machine, from);
    record(b, b->side[from].begin, from);
    for (int i = 0; i < COPIES; i++)
        copy(b, from, to, b->pattern.size);
    record(b, b->side[from].end, from);
    finish_copies(b->machine, b->side[from].stream, from, to);
    return gb_per_s(b, from, COPIES);
}

/* The other's stream begins after the event at the beginning of this one's, which waits for its
 * end. */
static double both_ways(const struct bench *b, int one, int other)
{
    use_gpu(b->machine, one);
    record(b, b->side[one].begin, one);
    for (int i = 0; i < COPIES; i++)
        copy(b, one, other, b->pattern.size);
    use_gpu(b->machine, other);
    wait_for(b, other, b->side[one].begin);
    for (int i = 0; i < COPIES; i++)
        copy(b, other, one, b->pattern.size);
    record(b, b->side[other].end, other);
    use_gpu(b->machine, one);
    wait_for(b, one, b->side[other].end);
    record(b, b->side[one].end, one);
    finish_copies(b->machine, b->side[one].stream, one, other);
    return gb_per_s(b, one, 2 * COPIES);
}

static double latency(const struct bench *b, int from, int to)
{
    struct timespec begin, end;

    use_gpu(b->machine, from);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    copy(b, from, to, SMALL);
    finish_copies(b->machine, b->side[from].stream, from, to);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
}

static void spoil_at(const struct bench *b, int gpu, size_t bytes)
{
    use_gpu(b->machine, gpu);
    spoil(b->machine, &b->pattern, b->side[gpu].in, bytes);
}

static int arrived(const struct bench *b, int from, int to, size_t bytes)
{
    use_gpu(b->machine, to);
    return holds_window(b->machine, &b->pattern, from, b->side[to].in, bytes);
}

/* The median of the turns after one for nothing; -1 if what arrived is wrong. */
static double measure(const struct bench *b, int from, int to,
                      double (*how)(const struct bench *b, int from, int to))
{
    const int turns = how == latency ? SMALL_TURNS : TURNS;
    const size_t bytes = how == latency ? SMALL : b->pattern.size;
    double values[SMALL_TURNS];

    spoil_at(b, from, bytes);
    spoil_at(b, to, bytes);
    how(b, from, to);
    for (int i = 0; i < turns; i++)
        values[i] = how(b, from, to);
    if (!arrived(b, from, to, bytes) || (how == both_ways && !arrived(b, to, from, bytes)))
        return -1;
    return median(values, turns);
}

/* Both ways is one value for the two. */
static void measure_pair(const struct bench *b, int from, int to, int on, struct measured *m)
{
    const enum kind way = on ? ONE_WAY : ONE_WAY_OFF, both = on ? BOTH_WAYS : BOTH_WAYS_OFF,
                    small = on ? LATENCY : LATENCY_OFF;

    m->value[way][from][to] = measure(b, from, to, one_way);
    m->value[small][from][to] = measure(b, from, to, latency);
    if (from < to)
        m->value[both][from][to] = m->value[both][to][from] = measure(b, from, to, both_ways);
}

static void count_wrong(const struct machine *machine, struct measured *measured)
{
    for (int kind = 0; kind < KINDS_COUNT; kind++)
        for (int from = 0; from < machine->count; from++)
            for (int to = 0; to < machine->count; to++)
                measured->wrong += measured->value[kind][from][to] < 0;
}

void measure_pairs(const struct machine *machine, size_t bytes, struct measured *measured)
{
    struct bench b = { .machine = machine };

    measured->wrong = 0;
    for (int kind = 0; kind < KINDS_COUNT; kind++)
        for (int i = 0; i < GPUS_MOST * GPUS_MOST; i++)
            measured->value[kind][i / GPUS_MOST][i % GPUS_MOST] = NAN;
    pattern_make(&b.pattern, bytes, machine->count);
    for (int i = 0; i < machine->count; i++)
        open_side(&b, i);
    for (int from = 0; from < machine->count; from++)
        for (int to = 0; to < machine->count; to++) {
            if (from != to)
                measure_pair(&b, from, to, 0, measured);
            if (from != to && !machine->peer[from][to].access)
                continue;
            peer_access(machine, from, to, 1);
            measure_pair(&b, from, to, 1, measured);
            peer_access(machine, from, to, 0);
        }
    count_wrong(machine, measured);
    for (int i = 0; i < machine->count; i++)
        close_side(&b, i);
    pattern_free(&b.pattern);
}
