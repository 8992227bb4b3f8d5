/* SPDX-License-Identifier: Apache-2.0 */
/* trace_host.h - ctrun's side of the trace (--trace): the rings of its workers, one of its own
 * for starts, deaths and stops, and the file.
 *
 * The rings are made once, before the guard: it shares them, so that what happened can still be
 * written when ctrun is killed.  At the end of each round they go to the file, a piece at
 * each turn of the event loop, and are empty again for the next.  Of several nodes one has the
 * file, who hosts the rendezvous; the others send it theirs, over the link that they have. */
#ifndef LAUNCHER_TRACE_TRACE_HOST_H
#define LAUNCHER_TRACE_TRACE_HOST_H

#include <event2/event_struct.h>

#include "config/options.h"
#include "launcher/nodes/nodes.h"
#include "launcher/trace/trace_messages.h"

struct worker;

/* What the guard has to know, in memory that both see. */
struct trace_shared {
    _Atomic int64_t body;  /* of the file */
    _Atomic int has_file;  /* it is this ctrun's */
    _Atomic int has_round; /* one that is not all written */
    _Atomic int ring;      /* of it, is being written; -1: none yet */
    _Atomic uint64_t at;   /* and that event comes next */
    int first;             /* rank of the first worker here */
    struct trace_about about;
};

/* Another node, at the ctrun that has the file. */
struct trace_guest {
    struct trace_guest *next;
    const struct store_agent *agent;
    struct trace_part part; /* file NULL: it has said nothing of a round, or all */
};

struct trace_host {
    const char *path; /* NULL: off */
    int memory;       /* handed down to each worker; -1: off */
    void *base;
    size_t bytes;
    int rings; /* of the workers, and ours */
    uint64_t events;
    struct trace own;
    uint64_t round; /* its event */
    struct trace_shared *shared;
    struct trace_file file;
    char own_path[1024]; /* of what could not be sent */
    struct nodes *nodes; /* NULL: not yet */
    /* Writing a round: trace_writer.c. */
    enum { TRACE_IDLE, TRACE_ASKING, TRACE_SENDING, TRACE_WRITING } state;
    struct trace_walk walk;
    struct trace_part part;
    struct event turn;
    int64_t until; /* clock_ms(): what is not sent then is lost */
    void (*done)(void *arg);
    void *arg;
    /* Asking the other's clock, telling it ours: trace_clock_sync.c. */
    int questions, which; /* left; for the first or the second look */
    int64_t asked_ns;     /* the last one */
    struct trace_guest *guests;
    char *came; /* [about.nodes] in this round; NULL: nobody looks */
};

/* 0, or -1 and the sentence is said. */
int trace_host_open(struct trace_host *trace, const struct options *options, int size);
/* Opens the file if it is this ctrun's; likewise. */
int trace_host_meet(struct trace_host *trace, struct nodes *nodes);
void trace_host_close(struct trace_host *trace); /* what is not written yet is, now */

/* What happens; all of it may be called when it is off. */
void trace_host_round(struct trace_host *trace, const struct plan *plan);
void trace_host_died(struct trace_host *trace, const struct worker *worker);
void trace_host_stopping(struct trace_host *trace, int signal);
/* No worker is left: writes or sends what they did, then calls done. */
void trace_host_ended(struct trace_host *trace, struct event_base *base, void (*done)(void *arg),
                      void *arg);
/* NODE_TRACE, NODE_CLOCK; agent NULL: from the ctrun that has the file.  No bytes: that agent
 * has left. */
void trace_host_told(struct trace_host *trace, struct store_agent *agent, int type,
                     const void *data, size_t bytes);

/* In the guard, when ctrun was killed: struct trace_host as ctrun had it before. */
void trace_host_save(void *trace);

/* ---- Between its files ----------------------------------------------------- */

/* trace_writer.c: all that is left of a round, at once. */
void trace_write_rest(struct trace_host *trace, const char *missing);

/* trace_clock_sync.c */
struct node_link *trace_link(const struct trace_host *trace); /* NULL: the file is ours */
void trace_ask_clock(struct trace_host *trace, int which);
void trace_settle_clock(struct trace_host *trace);
void trace_expect_nodes(struct trace_host *trace); /* a round begins: who comes? */
void trace_say_who_is_missing(struct trace_host *trace);
void trace_forget_guests(struct trace_host *trace);

#endif
