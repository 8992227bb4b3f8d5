/* SPDX-License-Identifier: Apache-2.0 */
/* trace_ring_open.c - opens the ring of a rank: the ring that ctrun created, or else a ring that
 * the rank creates itself.
 *
 * ctrun passes CT_TRACE_RING="memory:ring", an inherited descriptor (memory_file.h) and the ring's
 * index.  A ring that the rank creates lives as long as the process.  So a program that destroys
 * its group and initializes again gets all events in one file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/trace/trace.h"
#include "runtime/trace/trace_json.h"
#include "runtime/util/memory_file.h"
#include "runtime/util/log.h"

/* ---- A ring of ctrun ----------------------------------------------------- */

static int is_trace(const struct trace_head *head, size_t bytes, int ring)
{
    return head->magic == TRACE_MAGIC && head->version == TRACE_VERSION && ring >= 0
           && ring < head->rings && head->events >= 64 && (head->events & (head->events - 1)) == 0
           && head->events <= bytes / sizeof(struct trace_event)
           && trace_bytes(head->rings, head->events) <= bytes;
}

static void use(struct trace *trace, struct trace_ring *ring, uint64_t events)
{
    trace->ring = ring;
    trace->events = trace_events_of(ring);
    trace->mask = events - 1;
}

/* Opens the ring that ctrun created.  Returns 1, or 0 if the ring is missing or not usable. */
static int open_inherited(const char *text, struct trace *trace)
{
    struct trace_head *head;
    int memory, ring;

    if (sscanf(text, "%d:%d", &memory, &ring) != 2
        || !(trace->memory = inherited_map(memory, TRACE_HEAD_BYTES, &trace->bytes)))
        return 0;
    head = trace->memory;
    if (is_trace(head, trace->bytes, ring)
        && inherited_claim(&trace_ring_at(trace->memory, ring, head->events)->pid)
               != INHERITED_BY_OTHER) {
        use(trace, trace_ring_at(trace->memory, ring, head->events), head->events);
        return 1;
    }
    munmap(trace->memory, trace->bytes);
    return 0;
}

/* ---- A ring of our own --------------------------------------------------- */

/* A ring that this process created.  There is one for each file; the rings are never freed. */
struct trace_own {
    struct trace_own *next;
    void *memory;
    uint64_t events;
    char path[];
};

static struct {
    pthread_mutex_t lock;
    struct trace_own *first;
} owns = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Writes to `path` the file name of a rank.  "%r" in the name is replaced with the rank.  Without
 * "%r", rank 3 of several ranks writes "run.rank3.json" for the name "run.json".  Returns the
 * length, or -1 if `room` is too small. */
static int trace_ring_path_of(const char *name, int rank, int size, char *path, size_t room)
{
    const char *at = strstr(name, "%r");
    char part[32];
    int length;

    snprintf(part, sizeof part, "rank%d", rank);
    if (!at)
        return trace_file_name(path, room, name, size == 1 ? "" : part);
    length = snprintf(path, room, "%.*s%d%s", (int)(at - name), name, rank, at + 2);
    return length < (int)room ? length : -1;
}

static struct trace_own *trace_ring_make_own(const char *path, size_t length, int rank)
{
    const uint64_t events = trace_events_for(TRACE_DEFAULT_BYTES, 1);
    struct trace_own *own = malloc(sizeof *own + length + 1);

    if (!own)
        return NULL;
    own->events = events;
    memcpy(own->path, path, length + 1);
    own->memory = mmap(NULL, trace_bytes(1, events), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own->memory == MAP_FAILED) {
        free(own);
        return NULL;
    }
    trace_ring_at(own->memory, 0, events)->rank = rank;
    own->next = owns.first;
    owns.first = own;
    return own;
}

static ct_status open_own(const char *name, int rank, int size, struct trace *trace)
{
    char path[4096];
    const int length = trace_ring_path_of(name, rank, size, path, sizeof path);
    struct trace_own *own;
    struct trace_ring *ring;

    if (length < 0)
        return ct_fail(CT_ERR_INVALID, "CT_TRACE: a path of %zu characters is too long",
                       strlen(name));
    pthread_mutex_lock(&owns.lock);
    for (own = owns.first; own && strcmp(own->path, path) != 0; own = own->next)
        continue;
    if (!own)
        own = trace_ring_make_own(path, (size_t)length, rank);
    pthread_mutex_unlock(&owns.lock);
    if (!own)
        return ct_fail(CT_ERR_NOMEM, "CT_TRACE=%s: no memory for it", name);
    ring = trace_ring_at(own->memory, 0, own->events);
    atomic_store(&ring->pid, getpid());
    use(trace, ring, own->events);
    trace->own = own;
    return CT_OK;
}

/* Writes the ring's file, under the lock since two meshes may write the same file. */
static void trace_ring_write_own(struct trace_own *own)
{
    ct_status status;

    pthread_mutex_lock(&owns.lock);
    status = trace_write_ring(own->path, own->memory, own->events);
    pthread_mutex_unlock(&owns.lock);
    if (status != CT_OK)
        log_line(LOG_WARN, "%s; the trace is lost", ct_last_error());
}

/* ---- Life ---------------------------------------------------------------- */

ct_status trace_open(int rank, int size, struct trace **trace)
{
    const char *ring = getenv("CT_TRACE_RING"), *file = getenv("CT_TRACE");
    ct_status status = CT_OK;
    struct trace *t;

    *trace = NULL;
    if ((!ring || !*ring) && (!file || !*file))
        return CT_OK;
    if (!(t = calloc(1, sizeof *t)))
        return ct_fail(CT_ERR_NOMEM, "no memory for the trace");
    if (ring && *ring && open_inherited(ring, t)) {
        *trace = t;
        return CT_OK;
    }
    if (file && *file) {
        memset(t, 0, sizeof *t);
        status = open_own(file, rank, size, t);
    } else {
        log_line(LOG_INFO, "another process of this worker writes ctrun's trace, or a wrapper "
                           "closed it; this process is not traced");
    }
    if (status == CT_OK && t->ring)
        *trace = t;
    else
        free(t);
    return status;
}

void trace_close(struct trace *trace)
{
    if (!trace)
        return;
    if (trace->own)
        trace_ring_write_own(trace->own);
    if (trace->memory)
        munmap(trace->memory, trace->bytes);
    free(trace);
}
