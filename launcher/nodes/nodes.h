/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - the nodes of a job: rounds that begin and end on all of them together.
 *
 * Node 0 hosts the store and decides (coordinator.c); the others' ctrun are agents,
 * connected to it (agent.c).  A job on one node is a host without agents.
 * In a round each node tells its first failure and when its last worker is
 * gone; the host tells when a round begins, when to stop, and when the job is over. */
#ifndef LAUNCHER_NODES_NODES_H
#define LAUNCHER_NODES_NODES_H

#include "config/options.h"
#include "launcher/nodes/store_host.h"
#include "runtime/monitor/control_page.h"
#include "runtime/store/server/launcher_peers.h"

struct link_to;

/* One round, as this node has to start it. */
struct plan {
    int base, world;           /* the rank of its first worker, and how many there are in all */
    int role_base, role_world; /* the same, counting those of this node's role */
    int node, nodes;           /* the rank of this node, and how many there are */
    int may_agree;             /* its ctruns, on a step at which all ranks stop */
    int restarts;              /* so far */
    const char *generation;
    const char *address; /* where the workers meet */
    int port;
};

/* What the job is told.  why: who failed elsewhere; "" if it was here, or nobody. */
struct nodes_hooks {
    void (*round)(void *job, const struct plan *plan);
    void (*stop)(void *job, const char *why);
    void (*over)(void *job, int code, const char *why);
    void (*member)(void *job, int node, int there); /* another node came, or was lost */
    /* A worker of another node ended, in this round. */
    void (*died)(void *job, const struct control_death *death);
    /* The ranks shall stop at the same step: how far did those here come?  They wait then until
     * they are told at which, soon. */
    uint64_t (*close_steps)(void *job);
    void (*stop_at)(void *job, uint64_t step, int for_good);
    /* Something for the job's files, or their times: see trace_host_told(). */
    void (*told)(void *job, struct store_agent *agent, int type, const void *data, size_t bytes);
};

/* Each kind of node starts with this. */
struct nodes {
    const struct nodes_ops *ops;
    const struct nodes_hooks *hooks;
    void *job;
};

/* A worker that failed by itself. */
struct failure {
    int rank;
    int code;        /* as an exit code of ctrun: 128 + signal */
    int may_restart; /* says --restart */
    const char *what;
    int is_cause; /* a death by signal, or a lost node: no answer to another failure, as an exit may
                     be */
};

struct nodes_ops {
    void (*start)(struct nodes *nodes); /* to meet the others; a round may begin within */
    /* A worker of this node ended, however.  On its way to the others when it returns. */
    void (*died)(struct nodes *nodes, const struct control_death *death);
    void (*failed)(struct nodes *nodes, const struct failure *failure); /* the first of a round */
    /* With --on-failure=continue, instead: stop() follows if too few are left. */
    void (*lost)(struct nodes *nodes, const struct failure *failure);
    void (*refused)(struct nodes *nodes, int code); /* it can't even start workers: no restart */
    void (*signalled)(struct nodes *nodes, int number); /* ctrun was told to stop */
    /* All ranks shall stop at the same step, in this round; if for good, the job is not begun
     * again.  More than once is fine. */
    void (*ask_stop)(struct nodes *nodes, int for_good);
    /* No worker of the round is left.  gave: the exit code that they chose when they had been
     * stopped so; -1: they had not. */
    void (*ended)(struct nodes *nodes, int gave);
    /* The link to the ctrun that has the job's files, connected or not; NULL: this one has. */
    struct link_to *(*keeper)(struct nodes *nodes);
    void (*destroy)(struct nodes *nodes);
};

/* NULL: the sentence is said. */
struct nodes *nodes_host(struct event_base *base, struct rendezvous *meet,
                         const struct options *options, int size, const struct nodes_hooks *hooks,
                         void *job);
struct nodes *nodes_agent(struct event_base *base, struct rendezvous *meet,
                          const struct options *options, int size, const struct nodes_hooks *hooks,
                          void *job);

/* torchrun's dynamic rendezvous, "c10d": nodes come and go. */
struct nodes *nodes_c10d(struct event_base *base, struct rendezvous *meet,
                         const struct options *options, const struct meeting *meeting, int size,
                         const struct nodes_hooks *hooks, void *job);

/* ---- What they say to each other: text behind one of these ------------------- */

enum {
    NODE_JOIN = AGENT_FIRST, /* agent: "node nodes workers version host length-of-role role job" */
    NODE_REFUSED,            /* host: why; the agent ends */
    NODE_ROUND,              /* host: "base world role-base role-world restarts generation" */
    NODE_FAILED,             /* agent: "rank code flags what"; node_messages.h */
    NODE_LOST,               /* agent: the same, and the others go on */
    NODE_CANNOT,             /* agent: "code" */
    NODE_SIGNALLED,          /* agent: "number" */
    NODE_ENDED,              /* agent: "code", if the workers chose one; -1 */
    NODE_STOP,               /* host: why */
    NODE_OVER,               /* host: "code why" */
    NODE_HERE,               /* dynamic, to the host: "pid id addr" of the agent that is linked */
    NODE_LOOK,               /* dynamic, both ways: there is something new in the store */
    NODE_BEAT,               /* both ways: "" */
    NODE_DIED,               /* both ways: workers of other nodes that ended; node_messages.h */
    NODE_WORKERS,            /* dynamic, to the host: "generation base count" of a round here */
    NODE_WISH,               /* agent: the ranks shall stop at the same step; node_messages.h */
    NODE_CLOSE,              /* host: so how far did yours come? */
    NODE_CLOSED,             /* agent: that far */
    NODE_STOP_AT,            /* host: the step at which they stop */
    NODE_TRACE,              /* to who has the file: a word of trace_messages.h, not text */
    NODE_CLOCK               /* to it: "question"; from it: "question nanoseconds" */
};

#define WORLD_MOST \
    (1 << 22)          /* workers of a job: what others tell is added up and counted through */
#define NODE_TEXT 1024 /* of one of them */

/* What came as text, without what a terminal would obey. */
static inline void node_text(char *text, size_t size, const void *data, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes && i < size - 1; i++) {
        const unsigned char c = ((const unsigned char *)data)[i];

        text[i] = c < ' ' || c == 127 ? '?' : (char)c;
    }
    text[i] = 0;
}

#endif
