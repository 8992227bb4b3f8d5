/* SPDX-License-Identifier: Apache-2.0 */
/* trace_host.c - see trace_host.h. */
#include "launcher/trace_host.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/worker.h"
#include "runtime/log.h"

/* ---- Life ------------------------------------------------------------------ */

/* Sealed: a worker that made it smaller would kill ctrun by SIGBUS. */
static int make_memory(struct trace_host *trace)
{
    trace->memory = memfd_create(TRACE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (trace->memory < 0 || ftruncate(trace->memory, (off_t)trace->bytes) < 0
        || fcntl(trace->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -1;
    trace->base = mmap(NULL, trace->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, trace->memory, 0);
    trace->shared = mmap(NULL, sizeof *trace->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trace->base == MAP_FAILED)
        trace->base = NULL;
    if (trace->shared == MAP_FAILED)
        trace->shared = NULL;
    return trace->base && trace->shared ? 0 : -1;
}

static void fill(struct trace_host *trace)
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
    *trace = (struct trace_host){ .memory = -1, .file.fd = -1, .path = options->trace };
    if (!trace->path)
        return 0;
    trace->rings = size + 1;
    trace->events = trace_events_for(options->trace_size, trace->rings);
    trace->bytes = trace_bytes(trace->rings, trace->events);
    if (make_memory(trace) < 0) {
        log_line(LOG_ERROR, "--trace=%s: no memory for it: %s", trace->path, strerror(errno));
        return -1;
    }
    fill(trace);
    if (trace_file_open(&trace->file, trace->path, &trace->shared->body) == CT_OK)
        return 0;
    log_line(LOG_ERROR, "--trace: %s", ct_last_error());
    return -1;
}

/* ---- A round --------------------------------------------------------------- */

void trace_host_round(struct trace_host *trace, const struct plan *plan)
{
    struct trace_shared *shared = trace->shared;
    int before;

    if (!trace->path)
        return;
    before = shared->about.host[0] ? shared->about.round + 1 : 0;
    shared->about = (struct trace_about){
        .node = plan->node, .nodes = plan->nodes, .round = before, .restarts = plan->restarts
    };
    gethostname(shared->about.host, sizeof shared->about.host - 1);
    snprintf(shared->about.generation, sizeof shared->about.generation, "%s", plan->generation);
    if (before
        && madvise((char *)trace->base + TRACE_HEAD_BYTES, trace->bytes - TRACE_HEAD_BYTES,
                   MADV_REMOVE)
               < 0)
        memset((char *)trace->base + TRACE_HEAD_BYTES, 0, trace->bytes - TRACE_HEAD_BYTES);
    fill(trace);
    for (int i = 0; i < trace->rings - 1; i++)
        trace_ring_at(trace->base, i, trace->events)->rank = plan->base + i;
    atomic_store(&shared->ring, -1);
    atomic_store(&shared->begun, 0);
    atomic_store(&shared->has_round, 1);
    trace->round = trace_begin_now(
        &trace->own,
        &(struct trace_what){ .kind = TRACE_ROUND, .peer = -1, .group = TRACE_GROUPS });
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

/* ---- Writing --------------------------------------------------------------- */

static void say(struct trace_host *trace, int word, const void *data, size_t size)
{
    trace_take(&trace->part, &trace->file, word, data, size);
}

/* What was written stays written, whoever goes on: the file first, then how far it is. */
static void settle(struct trace_host *trace)
{
    struct trace_shared *shared = trace->shared;

    if (trace_file_settle(&trace->file) != CT_OK)
        log_line(LOG_WARN, "%s; the rest of the trace is lost, the job goes on", ct_last_error());
    atomic_store(&shared->at, trace->walk.at);
    atomic_store(&shared->ring, trace->walk.ring ? trace->walk.index : -1);
    atomic_store(&shared->begun, 1);
}

static void say_loss(const struct trace_host *trace, const struct trace_ring *ring, uint64_t lost)
{
    if (ring->rank >= 0)
        log_line(LOG_WARN,
                 "the trace lacks the oldest %llu events of rank %d: its ring holds %llu; a larger "
                 "--trace-size holds more",
                 (unsigned long long)lost, ring->rank, (unsigned long long)trace->events);
}

static void next_ring(struct trace_host *trace)
{
    struct trace_walk *walk = &trace->walk;

    if (walk->ring && walk->lost > 0) {
        say_loss(trace, walk->ring, walk->lost);
        say(trace, TRACE_LOST, &walk->lost, sizeof walk->lost);
    }
    if (trace_walk_ring(walk))
        say(trace, walk->index == walk->rings - 1 ? TRACE_OURS : TRACE_RING, walk->ring,
            sizeof *walk->ring);
    else
        walk->ring = NULL;
}

/* A piece; 0: there is no more. */
static int write_some(struct trace_host *trace)
{
    struct trace_event events[TRACE_CHUNK];
    const size_t count =
        trace->walk.ring ? trace_walk_events(&trace->walk, events, TRACE_CHUNK) : 0;

    if (count > 0)
        say(trace, TRACE_EVENTS, events, count * sizeof *events);
    else
        next_ring(trace);
    settle(trace);
    return trace->walk.ring != NULL;
}

static void begin_writing(struct trace_host *trace)
{
    trace->part.file = NULL;
    say(trace, TRACE_ABOUT, &trace->shared->about, sizeof trace->shared->about);
    trace_walk_begin(&trace->walk, trace->base, trace->rings, trace->events);
    trace->writes = 1;
}

static void end_writing(struct trace_host *trace, const char *missing)
{
    say(trace, TRACE_END, missing, strlen(missing));
    settle(trace);
    atomic_store(&trace->shared->has_round, 0);
    trace->writes = 0;
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    static const struct timeval now = { 0, 0 };
    struct trace_host *trace = arg;

    (void)fd;
    (void)what;
    if (write_some(trace)) {
        event_add(&trace->turn, &now);
        return;
    }
    end_writing(trace, "");
    trace->done(trace->arg);
}

void trace_host_ended(struct trace_host *trace, struct event_base *base, void (*done)(void *arg),
                      void *arg)
{
    if (!trace->path) {
        done(arg);
        return;
    }
    trace_end(&trace->own, trace->round, CT_OK);
    trace->done = done;
    trace->arg = arg;
    begin_writing(trace);
    evtimer_assign(&trace->turn, base, on_turn, trace);
    event_active(&trace->turn, EV_TIMEOUT, 0);
}

/* All at once: no event loop runs any more. */
static void write_rest(struct trace_host *trace, const char *missing)
{
    if (!trace->writes)
        begin_writing(trace);
    while (write_some(trace))
        continue;
    end_writing(trace, missing);
}

void trace_host_close(struct trace_host *trace)
{
    if (trace->writes)
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

/* Goes on where ctrun stood: its part may be half written. */
void trace_host_save(void *arg)
{
    struct trace_host *trace = arg;
    struct trace_shared *shared = trace->shared;
    const int ring = shared ? atomic_load(&shared->ring) : -1;

    if (!shared || !atomic_load(&shared->has_round)
        || trace_file_resume(&trace->file, trace->path, &shared->body) != CT_OK)
        return;
    begin_writing(trace);
    if (atomic_load(&shared->begun) && ring >= 0) {
        while (trace->walk.index < ring && trace_walk_ring(&trace->walk))
            continue;
        trace->walk.at = atomic_load(&shared->at);
        if (trace->walk.ring)
            say(trace, ring == trace->rings - 1 ? TRACE_OURS : TRACE_RING, trace->walk.ring,
                sizeof *trace->walk.ring);
    }
    write_rest(trace, "ctrun was killed");
    trace_file_close(&trace->file);
}
