/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.h - writes the events of rings as lines of a trace file.
 *
 * A part holds the events of one node in one round.  The timeline shows a part as a process, and
 * each thread of a rank as a track.  The programs that wrote the events may have died, so each
 * event is checked.  Invalid events are left out and counted.
 *
 * The times in rings are the node's CLOCK_MONOTONIC; the file has times of the part's clock. */
#ifndef RUNTIME_TRACE_TRACE_JSON_H
#define RUNTIME_TRACE_TRACE_JSON_H

#include "runtime/trace/trace.h"
#include "runtime/trace/trace_file.h"

#define TRACE_CLOCK_TEXT 96

/* A clock that shows ns + offset_ns + drift * ns when the node's CLOCK_MONOTONIC shows ns.  If all
 * fields are zero, the clock is the node's CLOCK_MONOTONIC itself. */
struct trace_clock {
    char name[TRACE_CLOCK_TEXT]; /* the same for parts with a common clock; "" for the node's own */
    int64_t offset_ns;
    double drift;
    int64_t error_ns; /* largest error of the clock, if it has a name */
};

static inline int64_t trace_clock_map(const struct trace_clock *clock, int64_t ns)
{
    return ns + clock->offset_ns + (int64_t)(clock->drift * (double)ns);
}

/* The properties of a part. */
struct trace_about {
    int32_t node, nodes; /* index of the node and number of nodes; without ctrun, the rank and 0 */
    int32_t round;       /* index of the round, which is a process in the timeline */
    int32_t restarts;
    char host[64];
    char generation[32];
    struct trace_clock clock;
};

#define TRACE_MOST_NS 1000000000000000000 /* 31 years, the limit of valid times */
/* The timeline numbers a node's process 1 + node + TRACE_PROCESSES_OF_ROUND * round. */
#define TRACE_PROCESSES_OF_ROUND 100000L
#define TRACE_THREADS 64 /* how many threads of a rank have a named track */

struct trace_part {
    struct trace_file *file;
    struct trace_about about;
    struct trace_ring ring; /* a copy of the head of the ring that is being written */
    int is_launcher;        /* 1 if the ring is ctrun's */
    int32_t threads[TRACE_THREADS];
    int known;             /* number of entries in threads[] */
    uint64_t events, lost; /* numbers of events written, and left out or overwritten */
};

void trace_part_begin(struct trace_part *part, struct trace_file *file,
                      const struct trace_about *about);
void trace_part_ring(struct trace_part *part, const struct trace_ring *ring, int is_launcher);
void trace_part_event(struct trace_part *part, const struct trace_event *event);
/* Adds `events`, the number of overwritten or incomplete events of the ring, to part->lost. */
void trace_part_lost(struct trace_part *part, uint64_t events);
/* Ends the part.  `missing` says why the part's last events are missing; "" if the part is
 * complete. */
void trace_part_end(struct trace_part *part, const char *missing);

/* ---- Reading rings --------------------------------------------------------- */

struct trace_walk {
    void *memory;
    int rings;
    uint64_t events; /* size of each ring, in events */
    struct trace_ring *ring;
    int index; /* of `ring` */
    /* number of the ring's next event to read, the number after its last event, and how many of its
     * events were overwritten or incomplete */
    uint64_t at, end, lost;
};

void trace_walk_begin(struct trace_walk *walk, void *memory, int rings, uint64_t events);
/* Moves to the next ring that has events.  Returns 1, or 0 if no ring is left. */
int trace_walk_ring(struct trace_walk *walk);
/* Copies the ring's next events, the oldest first and at most `most`.  Returns the number of
 * events, or 0 if no event is left. */
size_t trace_walk_events(struct trace_walk *walk, struct trace_event *events, size_t most);

/* Writes the file of a rank without ctrun. */
ct_status trace_write_ring(const char *path, void *memory, uint64_t events);

#endif
