/* SPDX-License-Identifier: Apache-2.0 */
/* trace_observer.c - ctrun's side of the trace (--trace).  ctrun makes a ring of events for each of
 * its workers, and a ring for the starts, deaths and stops that ctrun sees.  It writes the rings to
 * the trace file.
 *
 * ctrun makes the rings once, before it starts the guard.  The guard shares the rings, so it can
 * still write them if ctrun is killed.  At the end of each round ctrun writes the rings to the
 * file, a part in each turn of the event loop.  At the start of the next round ctrun empties the
 * rings.  Each node of a job writes its own file, with times of the coordinator's clock.  `ctctl
 * trace merge` (trace_merge.h) joins the files. */
#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/trace/clock_readings.h"
#include "runtime/trace/trace_json.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/log.h"

#define CHUNK 512       /* most events that are written in one turn of the event loop */
#define HALF_WRITTEN 16 /* no warning up to so many lost events, which a killed rank may leave */

/* Memory that ctrun shares with the guard, so the guard can write the trace if ctrun is killed. */
struct trace_shared {
    _Atomic int64_t body;  /* offset of the next event in the file */
    _Atomic int has_round; /* true if a round has begun and is not completely written */
    _Atomic int ring;      /* index of the ring being written; -1 if none is being written */
    _Atomic uint64_t at;   /* the next event of that ring */
    int first;             /* rank of this node's first worker */
    int64_t began_ns;      /* when the round began, by this node's clock */
    char path[PATH_MAX];   /* path of the file; "" before it is opened */
    struct clock_readings readings;
    struct trace_about about;
};

struct tracer {
    const char *path; /* the value of --trace; NULL without --trace */
    int nodes_most;   /* most nodes of the job; above 1, a file name has the node number */
    int memory;       /* descriptor of the rings, which workers inherit; -1 without --trace */
    void *base;
    size_t bytes;
    int rings; /* number of the workers' rings plus ctrun's ring */
    uint64_t events;
    struct trace own;
    uint64_t round; /* the event that marks the round in ctrun's ring */
    struct trace_shared *shared;
    struct trace_file file;
    /* Used while a round is written to the file. */
    int is_writing;
    struct trace_walk walk;
    struct trace_part part;
    struct event turn;
    struct job *job;
};

/* ---- Life ------------------------------------------------------------------ */

static ct_status tracer_make_memory(struct tracer *trace)
{
    const ct_status status =
        inherited_create(TRACE_NAME, trace->bytes, &trace->memory, &trace->base);

    if (status != CT_OK)
        return status;
    trace->shared = mmap(NULL, sizeof *trace->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trace->shared != MAP_FAILED)
        return CT_OK;
    trace->shared = NULL;
    return ct_fail(CT_ERR_NOMEM, "memory to share: %s", strerror(errno));
}

static void tracer_fill(struct tracer *trace)
{
    struct trace_head *head = trace->base;
    struct trace_ring *own = trace_ring_at(trace->base, trace->rings - 1, trace->events);

    head->version = TRACE_VERSION;
    head->rings = trace->rings;
    head->events = trace->events;
    head->magic = TRACE_MAGIC;
    own->rank = -1;
    atomic_store(&own->pid, getpid());
    trace->own =
        (struct trace){ .ring = own, .events = trace_events_of(own), .mask = trace->events - 1 };
}

static int tracer_job_began(void *state, struct job *job)
{
    const struct options *options = job->options;
    struct tracer *trace = state;

    *trace = (struct tracer){
        .memory = -1, .file.fd = -1, .job = job, .nodes_most = options->nnodes.max
    };
    if (!options->trace || job->size == 0)
        return 0;
    trace->path = options->trace;
    trace->rings = job->size + 1;
    trace->events = trace_events_for(options->trace_size, trace->rings);
    trace->bytes = trace_bytes(trace->rings, trace->events);
    if (tracer_make_memory(trace) == CT_OK) {
        tracer_fill(trace);
        return 0;
    }
    log_line(LOG_ERROR, "--trace=%s, --trace-size: %s", trace->path, ct_last_error());
    return 1;
}

/* ---- A round --------------------------------------------------------------- */

/* Opens the file.  Returns -1 if that failed and the error is logged.  If the job may have several
 * nodes, "run.json" becomes "run.node1.json".  On a node that joined later, it becomes
 * "run.node1.round2.json", since another node may have had the same number before. */
static int trace_open_round_file(struct tracer *trace, const struct plan *plan)
{
    struct trace_shared *shared = trace->shared;
    char part[64] = "";
    int used = 0;

    if (trace->nodes_most > 1)
        used = snprintf(part, sizeof part, "node%d", plan->node);
    if (used > 0 && plan->round > 0)
        snprintf(part + used, sizeof part - (size_t)used, ".round%d", plan->round);
    if (trace_file_name(shared->path, sizeof shared->path, trace->path, part) < 0)
        log_line(LOG_ERROR, "--trace: a path of %zu characters is too long", strlen(trace->path));
    else if (trace_file_open(&trace->file, shared->path, &shared->body) == CT_OK)
        return 0;
    else
        log_line(LOG_ERROR, "--%s", ct_last_error()); /* begins with "trace FILE:" */
    shared->path[0] = 0;
    return -1;
}

static void tracer_describe(struct trace_about *about, const struct plan *plan)
{
    *about = (struct trace_about){
        .node = plan->node, .nodes = plan->nodes, .round = plan->round, .restarts = plan->restarts
    };
    gethostname(about->host, sizeof about->host - 1);
    snprintf(about->generation, sizeof about->generation, "%s", plan->generation);
}

/* Empties the rings and frees their memory. */
static void tracer_empty(struct tracer *trace)
{
    char *rings = (char *)trace->base + TRACE_HEAD_BYTES;
    const size_t bytes = trace->bytes - TRACE_HEAD_BYTES;

    if (madvise(rings, bytes, MADV_REMOVE) < 0)
        memset(rings, 0, bytes);
    tracer_fill(trace);
}

static int tracer_round_begins(void *state, struct job *job, struct round *round)
{
    struct tracer *trace = state;
    struct trace_shared *shared = trace->shared;
    const struct plan *plan = &job->plan;

    if (!trace->path)
        return 0;
    round->inherited.trace_memory = trace->memory;
    if (*shared->path)
        tracer_empty(trace);
    else if (trace_open_round_file(trace, plan) < 0)
        return 1;
    tracer_describe(&shared->about, plan);
    shared->first = plan->base;
    shared->began_ns = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < trace->rings - 1; i++)
        trace_ring_at(trace->base, i, trace->events)->rank = plan->base + i;
    atomic_store(&shared->ring, -1);
    atomic_store(&shared->has_round, 1);
    trace->round = trace_begin_now(
        &trace->own,
        &(struct trace_what){ .kind = TRACE_ROUND, .peer = -1, .group = TRACE_GROUPS });
    return 0;
}

static void tracer_worker_died(void *state, struct worker *worker)
{
    struct tracer *trace = state;
    uint64_t event;

    if (!trace->path)
        return;
    event = trace_begin_now(&trace->own, &(struct trace_what){ .kind = TRACE_DIED,
                                                               .peer = worker->rank,
                                                               .bytes = (uint64_t)worker->pid,
                                                               .tag = worker->how,
                                                               .group = TRACE_GROUPS });
    if (event)
        trace_end_now(&trace->own, event, worker->code);
}

static void tracer_stopping(void *state, int signal, const char *why)
{
    struct tracer *trace = state;

    (void)why;
    if (trace->path)
        trace_begin_now(&trace->own, &(struct trace_what){ .kind = TRACE_STOPPING,
                                                           .peer = -1,
                                                           .tag = signal,
                                                           .group = TRACE_GROUPS });
}

static void tracer_clock(void *state, const struct clock_reading *reading)
{
    struct tracer *trace = state;

    if (trace->path)
        clock_readings_add(&trace->shared->readings, reading);
}

/* ---- Writing a round -------------------------------------------------------- */

/* Writes the pending text to the file, and then stores the position in the rings.  In this order,
 * each event is written once, even if the guard continues the file. */
static void tracer_settle(struct tracer *trace)
{
    struct trace_shared *shared = trace->shared;

    if (trace_file_settle(&trace->file) != CT_OK)
        log_line(LOG_WARN, "%s; the rest of the trace is lost, but the job continues",
                 ct_last_error());
    atomic_store(&shared->at, trace->walk.at);
    atomic_store(&shared->ring, trace->walk.ring ? trace->walk.index : -1);
}

static int is_own(const struct trace_walk *walk)
{
    return walk->index == walk->rings - 1;
}

static void warn_of_loss(const struct tracer *trace)
{
    const struct trace_walk *walk = &trace->walk;
    char writer[32] = "ctrun";

    if (!is_own(walk))
        snprintf(writer, sizeof writer, "rank %d", trace->shared->first + walk->index);
    log_line(LOG_WARN,
             "the trace lacks %llu events of %s, the oldest: its ring holds %llu; a larger "
             "--trace-size holds more",
             (unsigned long long)walk->lost, writer, (unsigned long long)trace->events);
}

static void next_ring(struct tracer *trace)
{
    struct trace_walk *walk = &trace->walk;

    if (walk->ring && walk->lost > HALF_WRITTEN)
        warn_of_loss(trace);
    if (walk->ring)
        trace_part_lost(&trace->part, walk->lost);
    if (trace_walk_ring(walk))
        trace_part_ring(&trace->part, walk->ring, is_own(walk));
    else
        walk->ring = NULL;
}

/* Writes a part of the round.  Returns 0 if nothing is left to write. */
static int tracer_write_some(struct tracer *trace)
{
    struct trace_event events[CHUNK];
    const size_t count = trace->walk.ring ? trace_walk_events(&trace->walk, events, CHUNK) : 0;

    for (size_t i = 0; i < count; i++)
        trace_part_event(&trace->part, &events[i]);
    if (count == 0)
        next_ring(trace);
    tracer_settle(trace);
    return trace->walk.ring != NULL;
}

/* Begins to write a round, or to continue in the guard a round that ctrun began to write.  The
 * round's clock is computed only once, so ctrun and the guard use the same clock. */
static void tracer_begin(struct tracer *trace)
{
    struct trace_shared *shared = trace->shared;

    trace->is_writing = 1;
    if (atomic_load(&shared->ring) < 0)
        shared->about.clock =
            clock_readings_clock(&shared->readings, shared->began_ns, clock_ns(CLOCK_MONOTONIC));
    trace_part_begin(&trace->part, &trace->file, &shared->about);
    trace_walk_begin(&trace->walk, trace->base, trace->rings, trace->events);
}

static void tracer_end(struct tracer *trace, const char *missing)
{
    trace_part_end(&trace->part, missing);
    tracer_settle(trace);
    atomic_store(&trace->shared->has_round, 0);
    trace->is_writing = 0;
}

static void tracer_on_turn(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval now = { 0, 0 };
    struct tracer *trace = arg;

    (void)fd;
    (void)what;
    if (tracer_write_some(trace)) {
        event_add(&trace->turn, &now);
        return;
    }
    tracer_end(trace, "");
    job_drained(trace->job);
}

static void tracer_drain(void *state, struct job *job)
{
    struct tracer *trace = state;

    if (!trace->path || !atomic_load(&trace->shared->has_round)) {
        job_drained(job);
        return;
    }
    trace_end(&trace->own, trace->round, CT_OK);
    evtimer_assign(&trace->turn, job->base, tracer_on_turn, trace);
    tracer_begin(trace);
    event_active(&trace->turn, EV_TIMEOUT, 0);
}

static void write_rest(struct tracer *trace, const char *missing)
{
    if (!trace->is_writing)
        tracer_begin(trace);
    while (tracer_write_some(trace))
        continue;
    tracer_end(trace, missing);
}

/* Runs in the guard.  Writes the rest of the round, from the event at which ctrun was killed. */
static void tracer_save(void *state)
{
    struct tracer *trace = state;
    struct trace_shared *shared = trace->shared;
    const int ring = shared ? atomic_load(&shared->ring) : -1;
    const uint64_t at = shared ? atomic_load(&shared->at) : 0;

    if (!shared || !atomic_load(&shared->has_round)
        || trace_file_resume(&trace->file, shared->path, &shared->body) != CT_OK)
        return;
    tracer_begin(trace);
    while (trace->walk.index < ring && trace_walk_ring(&trace->walk))
        continue;
    if (trace->walk.ring && ring >= 0) {
        trace_part_ring(&trace->part, trace->walk.ring, is_own(&trace->walk));
        trace->walk.at = at;
    }
    write_rest(trace, "ctrun was killed");
    trace_file_close(&trace->file);
}

/* ---- End -------------------------------------------------------------------- */

/* Writes the events that are not written yet, and frees everything. */
static void tracer_close(void *state, const struct job_end *end)
{
    struct tracer *trace = state;

    (void)end;
    if (!trace->job)
        return; /* the job was refused before job_began() */
    if (trace->is_writing)
        event_del(&trace->turn);
    if (trace->shared && atomic_load(&trace->shared->has_round))
        write_rest(trace, "");
    trace_file_close(&trace->file);
    if (trace->base)
        munmap(trace->base, trace->bytes);
    if (trace->shared)
        munmap(trace->shared, sizeof *trace->shared);
    if (trace->memory >= 0)
        close(trace->memory);
}

const struct job_observer trace_observer = { .bytes = sizeof(struct tracer),
                                             .job_began = tracer_job_began,
                                             .close = tracer_close,
                                             .save = tracer_save,
                                             .round_begins = tracer_round_begins,
                                             .worker_died = tracer_worker_died,
                                             .stopping = tracer_stopping,
                                             .drain = tracer_drain,
                                             .clock = tracer_clock };
