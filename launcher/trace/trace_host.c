/* SPDX-License-Identifier: Apache-2.0 */
/* trace_host.c - the rings, and what ctrun itself has to tell. */
#include "launcher/trace/trace_host.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/workers/worker.h"
#include "runtime/util/inherited_memory.h"
#include "runtime/util/log.h"

/* ---- Life ------------------------------------------------------------------ */

static ct_status make_memory(struct trace_host *trace)
{
    const ct_status status = hand_down(TRACE_NAME, trace->bytes, &trace->memory, &trace->base);

    if (status != CT_OK)
        return status;
    trace->shared = mmap(NULL, sizeof *trace->shared, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trace->shared != MAP_FAILED)
        return CT_OK;
    trace->shared = NULL;
    return ct_fail(CT_ERR_NOMEM, "memory to share: %s", strerror(errno));
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
    if (make_memory(trace) == CT_OK) {
        fill(trace);
        return 0;
    }
    log_line(LOG_ERROR, "--trace=%s, --trace-size: %s", trace->path, ct_last_error());
    return -1;
}

int trace_host_meet(struct trace_host *trace, struct nodes *nodes)
{
    trace->nodes = nodes;
    if (!trace->path || trace_link(trace))
        return 0;
    if (trace_file_open(&trace->file, trace->path, &trace->shared->body) == CT_OK) {
        atomic_store(&trace->shared->has_file, 1);
        return 0;
    }
    log_line(LOG_ERROR, "--%s", ct_last_error()); /* "trace run.json: ..." */
    return -1;
}

void trace_host_close(struct trace_host *trace)
{
    if (trace->state != TRACE_IDLE)
        event_del(&trace->turn);
    if (trace->shared && atomic_load(&trace->shared->has_round))
        trace_write_rest(trace, "");
    trace_say_who_is_missing(trace);
    trace_forget_guests(trace);
    trace_file_close(&trace->file);
    if (trace->base)
        munmap(trace->base, trace->bytes);
    if (trace->shared)
        munmap(trace->shared, sizeof *trace->shared);
    if (trace->memory >= 0)
        close(trace->memory);
    *trace = (struct trace_host){ .memory = -1, .file.fd = -1 };
}

/* ---- A round --------------------------------------------------------------- */

static void describe(struct trace_about *about, const struct plan *plan)
{
    const int round = about->host[0] ? about->round + 1 : 0;

    *about = (struct trace_about){
        .node = plan->node, .nodes = plan->nodes, .round = round, .restarts = plan->restarts
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
    fill(trace);
}

void trace_host_round(struct trace_host *trace, const struct plan *plan)
{
    struct trace_shared *shared = trace->shared;

    if (!trace->path)
        return;
    trace_say_who_is_missing(trace);
    describe(&shared->about, plan);
    shared->first = plan->base;
    if (shared->about.round > 0)
        empty(trace);
    for (int i = 0; i < trace->rings - 1; i++)
        trace_ring_at(trace->base, i, trace->events)->rank = plan->base + i;
    atomic_store(&shared->ring, -1);
    atomic_store(&shared->has_round, 1);
    trace->round = trace_begin_now(
        &trace->own,
        &(struct trace_what){ .kind = TRACE_ROUND, .peer = -1, .group = TRACE_GROUPS });
    trace_expect_nodes(trace);
    if (trace_link(trace))
        trace_ask_clock(trace, 0);
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
