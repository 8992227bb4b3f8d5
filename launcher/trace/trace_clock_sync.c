/* SPDX-License-Identifier: Apache-2.0 */
/* trace_clock_sync.c - the trace of several nodes: whose clock says what, and what the others send.
 *
 * A node asks the ctrun that has the file for its CLOCK_MONOTONIC, several times in a row, at the
 * beginning of a round and at its end.  The answer that came quickest counts: what it says was
 * true at some moment between question and answer, so with the middle taken the error is
 * half of that at most (Cristian).  The clocks drift apart in between, evenly, as quartzes do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "launcher/nodes/node_link.h"
#include "launcher/trace/trace_host.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define QUESTIONS 8
#define MOST_NODES 100000

struct node_link *trace_link(const struct trace_host *trace)
{
    return trace->nodes && trace->nodes->ops->keeper ? trace->nodes->ops->keeper(trace->nodes)
                                                     : NULL;
}

/* ---- Clocks ---------------------------------------------------------------- */

static void ask(struct trace_host *trace)
{
    struct node_link *link = trace_link(trace);

    trace->asked_ns = clock_ns(CLOCK_MONOTONIC);
    node_link_print(link, NODE_CLOCK, "%d", trace->questions);
    node_link_flush(link);
}

void trace_ask_clock(struct trace_host *trace, int which)
{
    struct trace_clock *clock = &trace->shared->about.clock;

    trace->questions = QUESTIONS;
    trace->which = which;
    clock->error_ns[which] = -1;
    if (which == 0)
        clock->error_ns[1] = -1;
    ask(trace);
}

/* A look that got no answer is the other one. */
void trace_settle_clock(struct trace_host *trace)
{
    struct trace_clock *clock = &trace->shared->about.clock;

    trace->questions = 0;
    for (int i = 0; i < 2; i++)
        if (clock->error_ns[i] < 0) {
            clock->at_ns[i] = clock->at_ns[1 - i];
            clock->offset_ns[i] = clock->offset_ns[1 - i];
            clock->error_ns[i] = clock->error_ns[1 - i];
        }
}

static void take_clock(struct trace_host *trace, const char *text)
{
    const int64_t now = clock_ns(CLOCK_MONOTONIC), error = (now - trace->asked_ns + 1) / 2;
    struct trace_clock *clock = &trace->shared->about.clock;
    const int i = trace->which;
    long long theirs;
    int question;

    if (sscanf(text, "%d %lld", &question, &theirs) != 2 || trace->questions == 0
        || question != trace->questions || theirs < 0)
        return;
    if (clock->error_ns[i] < 0 || error < clock->error_ns[i]) {
        clock->at_ns[i] = now - error;
        clock->offset_ns[i] = theirs - clock->at_ns[i];
        clock->error_ns[i] = error;
    }
    if (--trace->questions > 0)
        ask(trace);
    else if (trace->state == TRACE_ASKING)
        event_active(&trace->turn, EV_TIMEOUT, 0);
}

static void answer(struct store_agent *agent, const char *question)
{
    char text[64];
    const int size = snprintf(text, sizeof text, "%d %lld", atoi(question),
                              (long long)clock_ns(CLOCK_MONOTONIC));

    store_agent_send(agent, NODE_CLOCK, text, (size_t)size);
    store_agent_flush(agent);
}

/* ---- Guests ---------------------------------------------------------------- */

static struct trace_guest *guest_of(struct trace_host *trace, const struct store_agent *agent)
{
    struct trace_guest *guest = trace->guests;

    while (guest && guest->agent != agent)
        guest = guest->next;
    if (!guest && (guest = calloc(1, sizeof *guest))) {
        guest->agent = agent;
        guest->next = trace->guests;
        trace->guests = guest;
    }
    return guest;
}

static void settle(struct trace_host *trace)
{
    if (trace_file_settle(&trace->file) != CT_OK)
        log_line(LOG_WARN, "%s; the rest of the trace is lost, the job goes on", ct_last_error());
}

/* Its rounds have the numbers that they have here. */
static void begin_part(struct trace_host *trace, struct trace_guest *guest, const void *data,
                       size_t size)
{
    struct trace_about about;

    if (size != sizeof about)
        return;
    memcpy(&about, data, sizeof about);
    about.round = trace->shared->about.round;
    trace_take(&guest->part, &trace->file, TRACE_ABOUT, &about, sizeof about);
    if (trace->came && about.node >= 0 && about.node < trace->shared->about.nodes)
        trace->came[about.node] = 1;
}

static void take_trace(struct trace_host *trace, struct store_agent *agent,
                       const unsigned char *data, size_t bytes)
{
    struct trace_guest *guest = guest_of(trace, agent);

    if (!guest)
        return;
    if (data[0] == TRACE_ABOUT)
        begin_part(trace, guest, data + 1, bytes - 1);
    else
        trace_take(&guest->part, &trace->file, data[0], data + 1, bytes - 1);
    settle(trace);
}

static void forget(struct trace_host *trace, const struct store_agent *agent)
{
    for (struct trace_guest **at = &trace->guests; *at;) {
        struct trace_guest *guest = *at;

        if (agent && guest->agent != agent) {
            at = &guest->next;
            continue;
        }
        *at = guest->next;
        if (guest->part.file) {
            log_line(LOG_WARN, "the trace of node %d did not come to its end",
                     guest->part.about.node);
            trace_part_end(&guest->part, "the rest did not come");
            settle(trace);
        }
        free(guest);
    }
}

void trace_forget_guests(struct trace_host *trace)
{
    forget(trace, NULL);
    free(trace->came);
    trace->came = NULL;
}

void trace_host_told(struct trace_host *trace, struct store_agent *agent, int type,
                     const void *data, size_t bytes)
{
    char text[64];

    if (!trace->path)
        return;
    node_text(text, sizeof text, data, bytes);
    if (!agent && type == NODE_CLOCK)
        take_clock(trace, text);
    else if (agent && bytes == 0)
        forget(trace, agent);
    else if (agent && type == NODE_CLOCK && trace->file.path)
        answer(agent, text);
    else if (agent && type == NODE_TRACE && trace->file.path)
        take_trace(trace, agent, data, bytes);
}

/* ---- Who is missing? ------------------------------------------------------- */

void trace_expect_nodes(struct trace_host *trace)
{
    const int nodes = trace->shared->about.nodes, own = trace->shared->about.node;

    free(trace->came);
    trace->came =
        trace_link(trace) || nodes < 2 || nodes > MOST_NODES ? NULL : calloc((size_t)nodes, 1);
    if (trace->came && own >= 0 && own < nodes)
        trace->came[own] = 1;
}

void trace_say_who_is_missing(struct trace_host *trace)
{
    struct trace_about about;
    struct trace_part part;

    if (!trace->came)
        return;
    about = trace->shared->about;
    for (int node = 0; node < trace->shared->about.nodes; node++) {
        if (trace->came[node])
            continue;
        log_line(LOG_WARN, "no trace came of node %d", node);
        about.node = node;
        about.clock.error_ns[0] = -1;
        snprintf(about.host, sizeof about.host, "?");
        trace_part_begin(&part, &trace->file, &about);
        trace_part_end(&part, "nothing came of it");
    }
    settle(trace);
    free(trace->came);
    trace->came = NULL;
}
