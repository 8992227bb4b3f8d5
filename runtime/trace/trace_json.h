/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.h - the events of rings as lines of a trace file.
 *
 * A part is one node in one round: a process of the timeline, in which each thread of a rank is a
 * track.  Its events (trace_walk) were written by programs that may have died meanwhile, so each is
 * checked: an invalid one is left out and counted.
 *
 * Rings have the node's CLOCK_MONOTONIC, the file has the clock of the part. */
#ifndef RUNTIME_TRACE_TRACE_JSON_H
#define RUNTIME_TRACE_TRACE_JSON_H

#include "runtime/trace/trace.h"
#include "runtime/trace/trace_file.h"

#define TRACE_CLOCK_TEXT 96

/* The node's CLOCK_MONOTONIC, `offset_ns` more, and `drift` more for each nanosecond of it. Zeroed:
 * the node's own. */
struct trace_clock {
    char name[TRACE_CLOCK_TEXT]; /* parts on one clock have one name; "": compared with no other */
    int64_t offset_ns;
    double drift;
    int64_t error_ns; /* with a name: by which it may be wrong */
};

static inline int64_t trace_clock_map(const struct trace_clock *clock, int64_t ns)
{
    return ns + clock->offset_ns + (int64_t)(clock->drift * (double)ns);
}

/* What all events of a part have in common. */
struct trace_about {
    int32_t node, nodes; /* without ctrun: the rank, 0 */
    int32_t round;       /* of the job: each has its own process in the timeline */
    int32_t restarts;
    char host[64];
    char generation[32];
    struct trace_clock clock;
};

#define TRACE_MOST_NS 1000000000000000000 /* 31 years: a larger time is invalid */
/* A node's process has the number 1 + node + this * round. */
#define TRACE_PROCESSES_OF_ROUND 100000L
#define TRACE_THREADS 64 /* named threads of a rank */

struct trace_part {
    struct trace_file *file;
    struct trace_about about;
    struct trace_ring ring; /* a copy of the ring whose events come now */
    int is_launcher;        /* the ring is ctrun's */
    int32_t threads[TRACE_THREADS];
    int known; /* threads */
    uint64_t events, lost;
};

void trace_part_begin(struct trace_part *part, struct trace_file *file,
                      const struct trace_about *about);
void trace_part_ring(struct trace_part *part, const struct trace_ring *ring, int is_launcher);
void trace_part_event(struct trace_part *part, const struct trace_event *event);
void trace_part_lost(struct trace_part *part, uint64_t events); /* of that ring */
/* missing: why the end of the part is missing; "": it is not. */
void trace_part_end(struct trace_part *part, const char *missing);

/* ---- Reading rings --------------------------------------------------------- */

struct trace_walk {
    void *memory;
    int rings;
    uint64_t events; /* of a ring */
    struct trace_ring *ring;
    int index;
    uint64_t at, end, lost;
};

void trace_walk_begin(struct trace_walk *walk, void *memory, int rings, uint64_t events);
/* The next ring that has events; 0: there is none. */
int trace_walk_ring(struct trace_walk *walk);
/* Its next events, at most `most`, oldest first; 0: there are no more. */
size_t trace_walk_events(struct trace_walk *walk, struct trace_event *events, size_t most);

/* Writes the file of a rank without ctrun. */
ct_status trace_write_ring(const char *path, void *memory, uint64_t events);

#endif
