/* SPDX-License-Identifier: Apache-2.0 */
/* trace_reader.c - reading rings, whose writers may be at it, or have died over it. */
#include <string.h>
#include <unistd.h>

#include "runtime/trace/trace_json.h"

void trace_walk_begin(struct trace_walk *walk, void *memory, int rings, uint64_t events)
{
    *walk = (struct trace_walk){ .memory = memory, .rings = rings, .events = events, .index = -1 };
}

int trace_walk_ring(struct trace_walk *walk)
{
    while (++walk->index < walk->rings) {
        walk->ring = trace_ring_at(walk->memory, walk->index, walk->events);
        walk->end = atomic_load_explicit(&walk->ring->next, memory_order_acquire);
        walk->at = walk->end > walk->events ? walk->end - walk->events : 0;
        walk->lost = walk->at;
        if (walk->end > 0)
            return 1;
    }
    return 0;
}

/* Whole before and after it was copied? */
static int copy(const struct trace_event *from, uint64_t number, struct trace_event *to)
{
    if (atomic_load_explicit(&from->mark, memory_order_acquire) != number + 1)
        return 0;
    memcpy((void *)to, (const void *)from, sizeof *to);
#ifndef CT_THREAD_SANITIZER
    atomic_thread_fence(memory_order_acquire);
#endif
    return atomic_load_explicit(&from->mark, memory_order_relaxed) == number + 1;
}

size_t trace_walk_events(struct trace_walk *walk, struct trace_event *events, size_t most)
{
    const struct trace_event *ring = trace_events_of(walk->ring);
    size_t count = 0;

    for (; count < most && walk->at < walk->end; walk->at++)
        if (copy(&ring[walk->at & (walk->events - 1)], walk->at, &events[count]))
            count++;
        else
            walk->lost++;
    return count;
}

ct_status trace_write_ring(const char *path, void *memory, uint64_t events)
{
    struct trace_about about = { .node = trace_ring_at(memory, 0, events)->rank };
    struct trace_event some[256];
    struct trace_file file;
    struct trace_part part;
    struct trace_walk walk;
    ct_status status = trace_file_open(&file, path, NULL);
    size_t count;

    if (status != CT_OK)
        return status;
    gethostname(about.host, sizeof about.host - 1);
    trace_part_begin(&part, &file, &about);
    trace_walk_begin(&walk, memory, 1, events);
    while (trace_walk_ring(&walk) && status == CT_OK) {
        trace_part_ring(&part, walk.ring, 0);
        while (status == CT_OK && (count = trace_walk_events(&walk, some, 256)) > 0) {
            for (size_t i = 0; i < count; i++)
                trace_part_event(&part, &some[i]);
            status = trace_file_settle(&file);
        }
        trace_part_lost(&part, walk.lost);
    }
    trace_part_end(&part, "");
    if (status == CT_OK)
        status = trace_file_settle(&file);
    trace_file_close(&file);
    return status;
}
