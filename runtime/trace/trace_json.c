/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c - converts the events of rings to the phases of Chrome's JSON trace format:
 *
 *   a call, a wait, bytes sent    a slice ("X"; "B" if it never ended) with its arguments
 *   a message                     an arrow ("s", "f") from the sender's slice to the receiver's
 *   a death, a stop               an instant ("i")
 *   a node, a rank, a thread      names ("M")
 *
 * The timeline sorts processes and threads by number.  A node's process has the number
 * 1 + node + 100000 * round.  A rank's first thread has the number 100 * (rank + 1).  An arrow
 * begins in the first nanosecond of a slice and ends in the last nanosecond of another, so each
 * slice is at least 1 ns long.
 *
 * The ranks may write to a ring while this code reads it. */
#include "runtime/trace/trace_json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/types/dtype.h"
#include "runtime/util/clock.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/signal_name.h"

#define LAUNCHERS_TRACK 1

/* ---- A line ---------------------------------------------------------------- */

static long process_of(const struct trace_part *part)
{
    return 1 + part->about.node + TRACE_PROCESSES_OF_ROUND * part->about.round;
}

static long track_of_rank(int rank)
{
    return 100L * rank + 100;
}

static long first_track(const struct trace_part *part)
{
    return part->is_launcher ? LAUNCHERS_TRACK : track_of_rank(part->ring.rank);
}

static struct json_text begin_line(const struct trace_part *part, const char *phase,
                                   const char *name, long track)
{
    struct json_text json = { .to = trace_file_line(part->file), .gap = "" };

    json_open(&json, NULL, '{');
    json_string(&json, "ph", phase);
    json_string(&json, "name", name);
    json_number(&json, "pid", process_of(part));
    json_number(&json, "tid", track);
    return json;
}

static void microseconds(struct json_text *json, const char *name, uint64_t ns)
{
    json_thousandths(json, name, (int64_t)ns);
}

static void metadata(const struct trace_part *part, const char *what, const char *key,
                     const char *value, long track)
{
    struct json_text json = begin_line(part, "M", what, track);

    json_open(&json, "args", '{');
    json_string(&json, key, value);
    json_close(&json, '}');
    json_close(&json, '}');
}

/* ---- Names ----------------------------------------------------------------- */

void trace_part_begin(struct trace_part *part, struct trace_file *file,
                      const struct trace_about *about)
{
    char name[160], again[32] = "";

    *part = (struct trace_part){ .file = file, .about = *about };
    part->about.host[sizeof about->host - 1] = 0;
    part->about.generation[sizeof about->generation - 1] = 0;
    if (about->restarts > 0)
        snprintf(again, sizeof again, ", restart %d", about->restarts);
    else if (about->round > 0)
        snprintf(again, sizeof again, ", round %d", about->round);
    if (about->nodes > 0)
        snprintf(name, sizeof name, "node %d: %s%s", about->node, part->about.host, again);
    else
        snprintf(name, sizeof name, "%s", part->about.host);
    metadata(part, "process_name", "name", name, 0);
}

void trace_part_ring(struct trace_part *part, const struct trace_ring *ring, int is_launcher)
{
    part->ring = *ring;
    part->is_launcher = is_launcher;
    part->known = 0;
    for (int i = 0; i < TRACE_GROUPS; i++)
        part->ring.groups[i].name[sizeof part->ring.groups[i].name - 1] = 0;
    for (int i = 0; i < OPERATION_COUNT; i++)
        for (int j = 0; j < TRACE_ALGORITHMS; j++)
            part->ring.algorithms[i][j][sizeof part->ring.algorithms[i][j] - 1] = 0;
}

/* Returns the number of the thread's track, and writes the track's name at its first event. */
static long track_of(struct trace_part *part, int32_t thread)
{
    const long first = first_track(part);
    const int pid = atomic_load(&part->ring.pid);
    char name[80];
    int i = 0;

    while (i < part->known && part->threads[i] != thread)
        i++;
    if (i < part->known)
        return first + i;
    if (i == TRACE_THREADS)
        return first + TRACE_THREADS;
    part->threads[part->known++] = thread;
    if (part->is_launcher)
        snprintf(name, sizeof name, "ctrun (pid %d)", pid);
    else if (i == 0)
        snprintf(name, sizeof name, "rank %d (pid %d)", part->ring.rank, pid);
    else
        snprintf(name, sizeof name, "rank %d, thread %d", part->ring.rank, thread);
    metadata(part, "thread_name", "name", name, first + i);
    return first + i;
}

/* ---- Events ---------------------------------------------------------------- */

/* Returns the time on the part's clock, limited to 0 .. TRACE_MOST_NS since a dead rank's event may
 * have any time. */
static uint64_t part_clock(const struct trace_part *part, uint64_t ns)
{
    const int64_t there = trace_clock_map(&part->about.clock, (int64_t)ns);

    return there < 0 ? 0 : there > TRACE_MOST_NS ? TRACE_MOST_NS : (uint64_t)there;
}

/* Writes the name of the event's slice to `text` and returns the category. */
static const char *event_name_of(const struct trace_event *event, int peer, char *text, size_t size)
{
    char other[32] = "any rank";

    if (peer >= 0)
        snprintf(other, sizeof other, "rank %d", peer);
    switch (event->kind) {
    case TRACE_CALL:
        snprintf(text, size, "%s", operation_name(event->operation));
        return "call";
    case TRACE_MESSAGE:
        snprintf(text, size, "%s", event->flags & TRACE_RECEIVES ? "recv" : "send");
        return "call";
    case TRACE_SENT:
        snprintf(text, size, "to %s", other);
        return "message";
    case TRACE_WAIT:
        snprintf(text, size, "waits for %s", other);
        return "wait";
    case TRACE_INIT:
        snprintf(text, size, "init");
        return "call";
    default:
        snprintf(text, size, "round");
        return "ctrun";
    }
}

static void add_call(struct json_text *json, const struct trace_part *part,
                     const struct trace_event *event)
{
    const int op = event->operation, row = event->algorithm;

    json_number(json, "seq", (long)atomic_load(&event->id));
    if (!operation_is_barrier(op)) {
        json_number(json, "bytes", (long)event->bytes);
        json_string(json, "dtype", dtype_name((ct_dtype)event->dtype));
    }
    if (event->op >= 0)
        json_string(json, "op", op_name((ct_op)event->op));
    if (atomic_load(&event->peer) >= 0)
        json_number(json, "root", atomic_load(&event->peer));
    if (op < OPERATION_COUNT && row < TRACE_ALGORITHMS && part->ring.algorithms[op][row][0])
        json_string(json, "algorithm", part->ring.algorithms[op][row]);
}

static void add_args(struct json_text *json, const struct trace_part *part,
                     const struct trace_event *event)
{
    const int status = atomic_load(&event->status), peer = atomic_load(&event->peer);

    json_open(json, "args", '{');
    if (event->kind == TRACE_CALL) {
        add_call(json, part, event);
    } else if (event->kind == TRACE_ROUND) {
        json_number(json, "restarts", part->about.restarts);
        json_string(json, "generation", part->about.generation);
    } else if (event->kind != TRACE_INIT) {
        json_number(json, "peer", peer);
        if (event->kind != TRACE_WAIT || event->bytes > 0)
            json_number(json, "bytes", (long)event->bytes);
        if (event->kind != TRACE_WAIT)
            json_number(json, "tag", event->tag);
    }
    if (event->group < TRACE_GROUPS && part->ring.groups[event->group].name[0])
        json_string(json, "group", part->ring.groups[event->group].name);
    if (status != CT_OK)
        json_string(json, "failed", ct_strerror((ct_status)status));
    json_close(json, '}');
}

static void add_arrow(const struct trace_part *part, const struct trace_event *event, long track,
                      uint64_t ns)
{
    const int begins = event->kind == TRACE_SENT;
    struct json_text json = begin_line(part, begins ? "s" : "f", "message", track);

    json_string(&json, "cat", "message");
    microseconds(&json, "ts", ns);
    json_number(&json, "id", (long)atomic_load(&event->id));
    if (!begins)
        json_string(&json, "bp", "e"); /* ends in the slice at this time, not in the next slice */
    json_close(&json, '}');
}

static void add_slice(struct trace_part *part, const struct trace_event *event)
{
    const uint64_t ended = atomic_load(&event->ended_ns), from = part_clock(part, event->begun_ns);
    const uint64_t until = part_clock(part, ended), to = until > from ? until : from + 1;
    const long track = track_of(part, event->thread);
    char name[64];
    const char *kind = event_name_of(event, atomic_load(&event->peer), name, sizeof name);
    struct json_text json = begin_line(part, ended ? "X" : "B", name, track);

    json_string(&json, "cat", kind);
    microseconds(&json, "ts", from);
    if (ended)
        microseconds(&json, "dur", to - from);
    add_args(&json, part, event);
    json_close(&json, '}');
    if (event->kind == TRACE_SENT)
        add_arrow(part, event, track, from);
    else if (event->kind == TRACE_WAIT && ended && atomic_load(&event->id))
        add_arrow(part, event, track, to - 1);
}

/* Writes an instant.  The instant of a death is on the track of the rank that died. */
static void add_instant(struct trace_part *part, const struct trace_event *event)
{
    const int rank = atomic_load(&event->peer), code = atomic_load(&event->status);
    const int number = event->kind == TRACE_DIED ? code : event->tag;
    char name[80], signal[32];
    struct json_text json;

    signal_name(number, signal, sizeof signal);
    if (event->kind == TRACE_STOPPING)
        snprintf(name, sizeof name, "ctrun asks the workers to stop (%s)", signal);
    else if (event->tag == CLD_EXITED)
        snprintf(name, sizeof name, "rank %d exited with code %d", rank, code);
    else
        snprintf(name, sizeof name, "rank %d was killed by %s", rank, signal);
    json =
        begin_line(part, "i", name,
                   event->kind == TRACE_DIED ? track_of_rank(rank) : track_of(part, event->thread));
    json_string(&json, "cat", "ctrun");
    json_string(&json, "s", "p");
    microseconds(&json, "ts", part_clock(part, event->begun_ns));
    json_close(&json, '}');
}

void trace_part_event(struct trace_part *part, const struct trace_event *event)
{
    if (event->kind == 0 || event->kind >= TRACE_KINDS || event->begun_ns >= TRACE_MOST_NS
        || atomic_load(&event->ended_ns) >= TRACE_MOST_NS
        || (event->kind >= TRACE_ROUND && !part->is_launcher)) {
        part->lost++;
        return;
    }
    part->events++;
    if (event->kind == TRACE_DIED || event->kind == TRACE_STOPPING)
        add_instant(part, event);
    else
        add_slice(part, event);
}

void trace_part_lost(struct trace_part *part, uint64_t events)
{
    part->lost += events;
}

/* Writes the times of the monotonic and the wall clock at one moment.  The wall clock aligns parts
 * that have no common clock. */
static void add_clocks(struct json_text *json, const struct trace_clock *clock)
{
    const int64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME);
    const int64_t own = before + (clock_ns(CLOCK_MONOTONIC) - before) / 2;

    json_number(json, "clock_monotonic_ns", own);
    json_number(json, "clock_realtime_ns", wall);
    json_string(json, "clock", *clock->name ? clock->name : NULL);
    json_number(json, "clock_offset_ns", trace_clock_map(clock, own) - own);
    if (*clock->name)
        json_number(json, "clock_error_ns", clock->error_ns);
    else
        json_null(json, "clock_error_ns");
}

static void part_add_label(const struct trace_part *part, const char *missing)
{
    const struct trace_clock *clock = &part->about.clock;
    struct text label = { 0 };

    if (!*clock->name && part->about.nodes > 1)
        text_print(&label, ", clock compared with no other node's");
    if (clock->error_ns > 0)
        text_print(&label, ", clock +-%.1f us", (double)clock->error_ns / 1000);
    if (part->lost > 0)
        text_print(&label, ", %llu events lost", (unsigned long long)part->lost);
    if (*missing)
        text_print(&label, ", %s", missing);
    text_add(&label, "", 1);
    if (label.used > 2)
        metadata(part, "process_labels", "labels", label.data + 2, 0);
    free(label.data);
}

/* Writes the part's facts.  People see the most important facts as labels of the process; programs
 * read all facts in the "ctrun_part" line. */
void trace_part_end(struct trace_part *part, const char *missing)
{
    struct json_text json;

    part_add_label(part, missing);
    json = begin_line(part, "M", "ctrun_part", 0);
    json_open(&json, "args", '{');
    json_number(&json, "node", part->about.node);
    json_number(&json, "nodes", part->about.nodes);
    json_string(&json, "host", part->about.host);
    json_string(&json, "generation", part->about.generation);
    json_number(&json, "restarts", part->about.restarts);
    json_number(&json, "events", (long)part->events);
    json_number(&json, "events_lost", (long)part->lost);
    add_clocks(&json, &part->about.clock);
    json_string(&json, "missing", *missing ? missing : NULL);
    json_close(&json, '}');
    json_close(&json, '}');
}

/* ---- Reading rings ----------------------------------------------------------- */

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

/* Copies an event.  Returns 1 if the event was complete before and after the copy, else 0.  The end
 * is read before the rest, since its writer stores it after the status and the peer. */
static int event_copy(const struct trace_event *from, uint64_t number, struct trace_event *to)
{
    uint64_t ended;

    if (atomic_load_explicit(&from->mark, memory_order_acquire) != number + 1)
        return 0;
    ended = atomic_load_explicit(&from->ended_ns, memory_order_acquire);
    memcpy((void *)to, (const void *)from, sizeof *to);
    atomic_init(&to->ended_ns, ended);
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
        if (event_copy(&ring[walk->at & (walk->events - 1)], walk->at, &events[count]))
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
