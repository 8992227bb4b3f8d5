/* SPDX-License-Identifier: Apache-2.0 */
/* trace_host.c - the rings, what ctrun itself adds to them, and their way to the file. */
#include "launcher/trace/trace_host.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/workers/worker.h"
#include "runtime/util/clock.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/log.h"

#define CHUNK 512       /* events at each turn of the event loop, which has more to do */
#define HALF_WRITTEN 16 /* events that a killed rank may leave so: not worth a warning */

/* ---- Life ------------------------------------------------------------------ */

static ct_status trace_host_make_memory(struct trace_host *trace)
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

static void trace_host_fill(struct trace_host *trace)
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

int trace_host_open(struct trace_host *trace, const struct options *options, int size)
{
    *trace = (struct trace_host){
        .memory = -1, .file.fd = -1, .path = options->trace, .nodes_most = options->nnodes.max
    };
    if (!trace->path)
        return 0;
    trace->rings = size + 1;
    trace->events = trace_events_for(options->trace_size, trace->rings);
    trace->bytes = trace_bytes(trace->rings, trace->events);
    if (trace_host_make_memory(trace) == CT_OK) {
        trace_host_fill(trace);
        return 0;
    }
    log_line(LOG_ERROR, "--trace=%s, --trace-size: %s", trace->path, ct_last_error());
    return -1;
}

/* ---- A round --------------------------------------------------------------- */

/* "run.json" is "run.node1.json" where there may be several nodes; of a node that joined later
 * "run.node1.round2.json", since a node before it may have had its number. */
static int trace_host_open_file(struct trace_host *trace, const struct plan *plan)
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
        log_line(LOG_ERROR, "--%s", ct_last_error()); /* "trace run.json: ..." */
    shared->path[0] = 0;
    return -1;
}

static void trace_host_describe(struct trace_about *about, const struct plan *plan)
{
    *about = (struct trace_about){
        .node = plan->node, .nodes = plan->nodes, .round = plan->round, .restarts = plan->restarts
    };
    gethostname(about->host, sizeof about->host - 1);
    snprintf(about->generation, sizeof about->generation, "%s", plan->generation);
}

/* As new: nothing of it takes memory any more. */
static void empty(struct trace_host *trace)
{
    char *rings = (char *)trace->base + TRACE_HEAD_BYTES;
    const size_t bytes = trace->bytes - TRACE_HEAD_BYTES;

    if (madvise(rings, bytes, MADV_REMOVE) < 0)
        memset(rings, 0, bytes);
    trace_host_fill(trace);
}

int trace_host_round(struct trace_host *trace, const struct plan *plan)
{
    struct trace_shared *shared = trace->shared;

    if (!trace->path)
        return 0;
    if (*shared->path)
        empty(trace);
    else if (trace_host_open_file(trace, plan) < 0)
        return -1;
    trace_host_describe(&shared->about, plan);
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

void trace_host_died(struct trace_host *trace, const struct worker *worker)
{
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

void trace_host_stopping(struct trace_host *trace, int signal)
{
    if (trace->path)
        trace_begin_now(&trace->own, &(struct trace_what){ .kind = TRACE_STOPPING,
                                                           .peer = -1,
                                                           .tag = signal,
                                                           .group = TRACE_GROUPS });
}

void trace_host_clock(struct trace_host *trace, const struct clock_reading *reading)
{
    if (trace->path)
        clock_readings_add(&trace->shared->readings, reading);
}

/* ---- Writing a round -------------------------------------------------------- */

/* Written once, whether ctrun or the guard goes on: first the file, then how far it is. */
static void trace_host_settle(struct trace_host *trace)
{
    struct trace_shared *shared = trace->shared;

    if (trace_file_settle(&trace->file) != CT_OK)
        log_line(LOG_WARN, "%s; the rest of the trace is lost, the job goes on", ct_last_error());
    atomic_store(&shared->at, trace->walk.at);
    atomic_store(&shared->ring, trace->walk.ring ? trace->walk.index : -1);
}

static int is_own(const struct trace_walk *walk)
{
    return walk->index == walk->rings - 1;
}

static void warn_of_loss(const struct trace_host *trace)
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

static void next_ring(struct trace_host *trace)
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

/* A piece; 0: there is no more. */
static int trace_host_write_some(struct trace_host *trace)
{
    struct trace_event events[CHUNK];
    const size_t count = trace->walk.ring ? trace_walk_events(&trace->walk, events, CHUNK) : 0;

    for (size_t i = 0; i < count; i++)
        trace_part_event(&trace->part, &events[i]);
    if (count == 0)
        next_ring(trace);
    trace_host_settle(trace);
    return trace->walk.ring != NULL;
}

/* All events of the round are put on the same clock, whoever writes them. */
static void trace_host_begin(struct trace_host *trace)
{
    struct trace_shared *shared = trace->shared;

    trace->is_writing = 1;
    if (atomic_load(&shared->ring) < 0)
        shared->about.clock =
            clock_readings_clock(&shared->readings, shared->began_ns, clock_ns(CLOCK_MONOTONIC));
    trace_part_begin(&trace->part, &trace->file, &shared->about);
    trace_walk_begin(&trace->walk, trace->base, trace->rings, trace->events);
}

static void end(struct trace_host *trace, const char *missing)
{
    trace_part_end(&trace->part, missing);
    trace_host_settle(trace);
    atomic_store(&trace->shared->has_round, 0);
    trace->is_writing = 0;
}

static void trace_host_on_turn(evutil_socket_t fd, short what, void *arg)
{
    const struct timeval now = { 0, 0 };
    struct trace_host *trace = arg;

    (void)fd;
    (void)what;
    if (trace_host_write_some(trace)) {
        event_add(&trace->turn, &now);
        return;
    }
    end(trace, "");
    trace->done(trace->arg);
}

void trace_host_ended(struct trace_host *trace, struct event_base *base, void (*done)(void *arg),
                      void *arg)
{
    if (!trace->path || !atomic_load(&trace->shared->has_round)) {
        done(arg);
        return;
    }
    trace_end(&trace->own, trace->round, CT_OK);
    trace->done = done;
    trace->arg = arg;
    evtimer_assign(&trace->turn, base, trace_host_on_turn, trace);
    trace_host_begin(trace);
    event_active(&trace->turn, EV_TIMEOUT, 0);
}

static void write_rest(struct trace_host *trace, const char *missing)
{
    if (!trace->is_writing)
        trace_host_begin(trace);
    while (trace_host_write_some(trace))
        continue;
    end(trace, missing);
}

/* Goes on where ctrun stopped: its part may be half written. */
void trace_host_save(void *arg)
{
    struct trace_host *trace = arg;
    struct trace_shared *shared = trace->shared;
    const int ring = shared ? atomic_load(&shared->ring) : -1;
    const uint64_t at = shared ? atomic_load(&shared->at) : 0;

    if (!shared || !atomic_load(&shared->has_round)
        || trace_file_resume(&trace->file, shared->path, &shared->body) != CT_OK)
        return;
    trace_host_begin(trace);
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

void trace_host_close(struct trace_host *trace)
{
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
    *trace = (struct trace_host){ .memory = -1, .file.fd = -1 };
}
