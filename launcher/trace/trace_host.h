/* SPDX-License-Identifier: Apache-2.0 */
/* trace_host.h - ctrun's side of the trace (--trace): the rings of its workers, one of its own
 * for starts, deaths and stops, and the file.
 *
 * The rings are made once, before the guard: it shares them, so that what happened can still be
 * written when ctrun is killed.  At the end of each round they go to the file, a piece at
 * each turn of the event loop, and are empty again for the next.  Each node of a job writes its own
 * file, all on the coordinator's clock; `ctctl trace merge` (trace_merge.h) makes one of them. */
#ifndef LAUNCHER_TRACE_TRACE_HOST_H
#define LAUNCHER_TRACE_TRACE_HOST_H

#include <event2/event_struct.h>
#include <limits.h>

#include "config/options.h"
#include "launcher/nodes/nodes.h"
#include "launcher/trace/clock_readings.h"
#include "runtime/trace/trace_json.h"

struct worker;

/* What the guard has to know, in memory that ctrun shares with it. */
struct trace_shared {
    _Atomic int64_t body;  /* of the file */
    _Atomic int has_round; /* one that is not all written; the file is open then */
    _Atomic int ring;      /* of it, is being written; -1: none yet */
    _Atomic uint64_t at;   /* and that event comes next */
    int first;             /* rank of the first worker here */
    int64_t began_ns;      /* the round, by this node's clock */
    char path[PATH_MAX];   /* of the file; "": it was not opened yet */
    struct clock_readings readings;
    struct trace_about about;
};

struct trace_host {
    const char *path; /* --trace; NULL: off */
    int nodes_most;   /* of the job; with more than one, each writes FILE.node<N> */
    int memory;       /* handed down to each worker; -1: off */
    void *base;
    size_t bytes;
    int rings; /* of the workers, and ours */
    uint64_t events;
    struct trace own;
    uint64_t round; /* its event */
    struct trace_shared *shared;
    struct trace_file file;
    /* Writing a round. */
    int is_writing;
    struct trace_walk walk;
    struct trace_part part;
    struct event turn;
    void (*done)(void *arg);
    void *arg;
};

/* 0, or -1 and the error is logged. */
int trace_host_open(struct trace_host *trace, const struct options *options, int size);
void trace_host_close(struct trace_host *trace); /* what is not written yet is, now */

/* What happens; all of it may be called when it is off. */
/* The first round opens the file, which says by its name which node this is: 0, or -1 and the
 * error is logged. */
int trace_host_round(struct trace_host *trace, const struct plan *plan);
void trace_host_died(struct trace_host *trace, const struct worker *worker);
void trace_host_stopping(struct trace_host *trace, int signal);
void trace_host_clock(struct trace_host *trace, const struct clock_reading *reading);
/* No worker is left: writes what they did, then calls done. */
void trace_host_ended(struct trace_host *trace, struct event_base *base, void (*done)(void *arg),
                      void *arg);

/* In the guard, when ctrun was killed: struct trace_host as ctrun had it before. */
void trace_host_save(void *trace);

#endif
