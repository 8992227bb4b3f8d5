/* SPDX-License-Identifier: Apache-2.0 */
/* trace_writer.c - a round is over: its rings go to the file, or to the ctrun that has it.
 *
 *   IDLE -> WRITING -> IDLE               the file is ours
 *   IDLE -> ASKING -> SENDING -> IDLE     it is another's: how its clock stands, then all of it
 *                  \-> WRITING -> IDLE    it does not answer, or was lost: a file of our own
 *
 * One piece at each turn of the event loop, which has more to do; what is not sent after
 * SENDING_MS is given up, for the job waits. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "launcher/nodes/node_link.h"
#include "launcher/trace/trace_host.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define ANSWER_MS 1000
#define SENDING_MS 10000
#define UNSENT_MOST (256 << 10)
#define HALF_WRITTEN 16 /* events that a killed rank may leave so: nothing to say of */

/* ---- Words ----------------------------------------------------------------- */

static void say(struct trace_host *trace, int word, const void *data, size_t size)
{
    unsigned char message[1 + TRACE_CHUNK * sizeof(struct trace_event)];

    if (trace->state != TRACE_SENDING) {
        trace_take(&trace->part, &trace->file, word, data, size);
        return;
    }
    message[0] = (unsigned char)word;
    memcpy(message + 1, data, size);
    node_link_send(trace_link(trace), NODE_TRACE, message, 1 + size);
}

/* What was written stays written, whoever goes on: the file first, then how far it is. */
static void settle(struct trace_host *trace)
{
    struct trace_shared *shared = trace->shared;

    if (trace->state == TRACE_SENDING)
        return;
    if (trace_file_settle(&trace->file) != CT_OK)
        log_line(LOG_WARN, "%s; the rest of the trace is lost, the job goes on", ct_last_error());
    atomic_store(&shared->at, trace->walk.at);
    atomic_store(&shared->ring, trace->walk.ring ? trace->walk.index : -1);
}

static void say_ring(struct trace_host *trace)
{
    const struct trace_walk *walk = &trace->walk;

    say(trace, walk->index == walk->rings - 1 ? TRACE_OURS : TRACE_RING, walk->ring,
        sizeof *walk->ring);
}

static void say_loss(const struct trace_host *trace)
{
    const struct trace_walk *walk = &trace->walk;
    char whose[32] = "ctrun";

    if (walk->index < walk->rings - 1)
        snprintf(whose, sizeof whose, "rank %d", trace->shared->first + walk->index);
    log_line(LOG_WARN,
             "the trace lacks %llu events of %s, the oldest: its ring holds %llu; a larger "
             "--trace-size holds more",
             (unsigned long long)walk->lost, whose, (unsigned long long)trace->events);
}

static void next_ring(struct trace_host *trace)
{
    struct trace_walk *walk = &trace->walk;

    if (walk->ring && walk->lost > 0) {
        if (walk->lost > HALF_WRITTEN)
            say_loss(trace);
        say(trace, TRACE_LOST, &walk->lost, sizeof walk->lost);
    }
    if (trace_walk_ring(walk))
        say_ring(trace);
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

/* ---- Where to -------------------------------------------------------------- */

/* "run.json" is "run.node1.json". */
static void name_own_file(struct trace_host *trace)
{
    const char *dot = strrchr(trace->path, '.'), *slash = strrchr(trace->path, '/');

    if (!dot || dot == trace->path || (slash && dot <= slash + 1))
        dot = trace->path + strlen(trace->path);
    snprintf(trace->own_path, sizeof trace->own_path, "%.*s.node%d%s", (int)(dot - trace->path),
             trace->path, trace->shared->about.node, dot);
}

static void open_own_file(struct trace_host *trace)
{
    struct trace_shared *shared = trace->shared;

    if (trace->file.fd >= 0)
        return;
    name_own_file(trace);
    if (atomic_load(&shared->body) > 0) /* of a round before this one */
        trace_file_resume(&trace->file, trace->own_path, &shared->body);
    else if (trace_file_open(&trace->file, trace->own_path, &shared->body) != CT_OK)
        log_line(LOG_WARN, "%s; the trace of this node is lost", ct_last_error());
    else
        log_line(LOG_WARN, "the trace of this node is in %s", trace->own_path);
}

static void begin(struct trace_host *trace, int state)
{
    trace_settle_clock(trace);
    if (state == TRACE_WRITING && trace_link(trace))
        open_own_file(trace);
    trace->state = state;
    trace->part.file = NULL;
    say(trace, TRACE_ABOUT, &trace->shared->about, sizeof trace->shared->about);
    trace_walk_begin(&trace->walk, trace->base, trace->rings, trace->events);
}

static void end(struct trace_host *trace, const char *missing)
{
    say(trace, TRACE_END, missing, strlen(missing));
    settle(trace);
    atomic_store(&trace->shared->has_round, 0);
    trace->state = TRACE_IDLE;
}

/* ---- Turns ----------------------------------------------------------------- */

static void turn_in(struct trace_host *trace, int ms)
{
    const struct timeval later = { ms / 1000, ms % 1000 * 1000 };

    event_add(&trace->turn, &later);
}

static void finish(struct trace_host *trace, const char *missing)
{
    end(trace, missing);
    trace->done(trace->arg);
}

static void go_on_sending(struct trace_host *trace)
{
    if (!trace_link(trace)->stream) {
        begin(trace, TRACE_WRITING);
        turn_in(trace, 0);
    } else if (clock_ms() > trace->until) {
        log_line(LOG_WARN, "the trace of this node could not be sent within %d s: the rest is lost",
                 SENDING_MS / 1000);
        finish(trace, "the rest could not be sent in time");
    } else if (node_link_unsent(trace_link(trace)) > UNSENT_MOST) {
        turn_in(trace, 1);
    } else if (write_some(trace)) {
        turn_in(trace, 0);
    } else {
        finish(trace, "");
    }
}

/* It has answered, or has not for too long. */
static void stop_asking(struct trace_host *trace)
{
    int answered;

    trace_settle_clock(trace);
    answered = trace_clock_error(&trace->shared->about.clock) >= 0;
    if (!answered && trace_link(trace)->stream)
        log_line(LOG_WARN, "no trace is kept where the rendezvous is: --trace is for all nodes");
    trace->until = clock_ms() + SENDING_MS;
    begin(trace, answered && trace_link(trace)->stream ? TRACE_SENDING : TRACE_WRITING);
    turn_in(trace, 0);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct trace_host *trace = arg;

    (void)fd;
    (void)what;
    if (trace->state == TRACE_ASKING)
        stop_asking(trace);
    else if (trace->state == TRACE_SENDING)
        go_on_sending(trace);
    else if (write_some(trace))
        turn_in(trace, 0);
    else
        finish(trace, "");
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
    evtimer_assign(&trace->turn, base, on_turn, trace);
    if (trace_link(trace) && trace_link(trace)->stream) {
        trace->state = TRACE_ASKING;
        trace_ask_clock(trace, 1);
        turn_in(trace, ANSWER_MS);
    } else {
        begin(trace, TRACE_WRITING);
        turn_in(trace, 0);
    }
}

/* ---- At once --------------------------------------------------------------- */

void trace_write_rest(struct trace_host *trace, const char *missing)
{
    if (trace->state != TRACE_WRITING)
        begin(trace, TRACE_WRITING);
    while (write_some(trace))
        continue;
    end(trace, missing);
}

/* Goes on where ctrun stood: its part may be half written. */
void trace_host_save(void *arg)
{
    struct trace_host *trace = arg;
    struct trace_shared *shared = trace->shared;
    const int ring = shared ? atomic_load(&shared->ring) : -1;
    const uint64_t at = shared ? atomic_load(&shared->at) : 0;

    if (!shared || !atomic_load(&shared->has_round)
        || (atomic_load(&shared->has_file)
            && trace_file_resume(&trace->file, trace->path, &shared->body) != CT_OK))
        return;
    if (!atomic_load(&shared->has_file))
        open_own_file(trace);
    begin(trace, TRACE_WRITING);
    while (trace->walk.index < ring && trace_walk_ring(&trace->walk))
        continue;
    if (trace->walk.ring && ring >= 0) {
        say_ring(trace);
        trace->walk.at = at;
    }
    trace_write_rest(trace, "ctrun was killed");
    trace_file_close(&trace->file);
}
