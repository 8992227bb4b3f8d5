/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - the nodes of a job: rounds that begin and end on all of them together.
 *
 * One ctrun is the coordinator (coordinator.h): it hosts the store, is node 0, and decides when
 * a round begins, when the workers stop and when the job is over.  The other ctruns are agents
 * (agent.c), each with a connection to it.  A job on one node is a coordinator without agents.
 * In a fixed job (--node-rank) all nodes are there from the first round to the last; in an elastic
 * one (--rdzv-backend=c10d, --nnodes=MIN:MAX) they come and go between rounds. */
#ifndef LAUNCHER_NODES_NODES_H
#define LAUNCHER_NODES_NODES_H

#include "config/options.h"
#include "launcher/nodes/job_rendezvous.h"
#include "launcher/nodes/slow_rank.h"
#include "runtime/monitor/control_page.h"
#include "runtime/store/server/launcher_peers.h"

/* One round, as this node has to start it. */
struct plan {
    int base, world;           /* rank of this node's first worker; workers of all nodes */
    int role_base, role_world; /* the same, but only workers of this node's role count */
    int node, nodes;           /* number of this node; number of nodes */
    int restarts;              /* so far */
    int round;                 /* its number in the job, the same on all nodes; the first is 0 */
    const char *generation;
    const char *mapping; /* which ranks each node has, as PMI writes it; "": too long for PMI */
    const char *address; /* address of the workers' store */
    int port;
};

/* A failure of a worker, or of a whole node. */
struct failure {
    int rank;        /* -1: not the failure of a worker */
    int culprit;     /* the living rank because of which it failed; -1: no rank */
    int code;        /* ctrun's exit code for it; after a death by signal, 128 + signal */
    int may_restart; /* --restart allows a restart after it */
    const char *what;
    int is_cause; /* it is a death by signal or a lost node: unlike an exit, it can't be the answer
                     to another failure */
};

#define NODE_TEXT 1024 /* largest message, except NODE_PUTS and NODE_ROWS */

#define CLOCK_ASKS 30 /* of a joining agent: the fastest answer is the most exact */

/* A reading of the coordinator's CLOCK_MONOTONIC between two readings of this node's. */
struct clock_reading {
    int64_t asked_ns, shown_ns, heard_ns; /* all 0: the node is the coordinator */
    const char *clock; /* the coordinator's clock, as the traces of all nodes name it */
};

/* Calls into the job.  why: what failed on another node; "" if the failure is on this node or there
 * is no failure.  rank: the worker that is the root cause, as far as it is known; -1: not known. */
struct nodes_hooks {
    void (*round)(void *job, const struct plan *plan);
    /* number: the signal that a ctrun of the job got; all workers get it.  0: SIGTERM. */
    void (*stop)(void *job, int number, int rank, const char *why);
    void (*over)(void *job, int code, int rank, const char *why);
    /* The coordinator calls it when all workers of the round have ended.  Sets *root to the root
     * cause and `what` to its sentence.  root->rank stays -1 if no rank blames another. */
    void (*root_cause)(void *job, struct failure *root, char what[NODE_TEXT]);
    void (*member)(void *job, int node, int there); /* in a fixed job, a node joined or was lost */
    /* `count` workers of another node ended in this round: death->rank and the ranks after it. */
    void (*died)(void *job, const struct control_death *death, int count);
    /* Another node asks all ranks to stop at the same step; for_good: no restart follows. */
    void (*stop_asked)(void *job, int for_good);
    /* puts: what ranks have put by PMI (pmi_space.h).  fenced, called after it: all ranks of the
     * round are in the barrier. */
    void (*puts)(void *job, const char *puts, size_t bytes);
    void (*fenced)(void *job);
    /* On the coordinator: in two successive windows this rank, or all ranks of the node with that
     * name, made the others wait.  Not called twice in a row for the same rank or node. */
    void (*slow)(void *job, const struct slow_rank *slow, const char *node);
    /* On an agent: the coordinator asks what the ranks do.  ops->rows() must send the answer. */
    void (*look)(void *job, unsigned look);
    /* On the coordinator: a piece of an agent's answer, in whole lines
     * (launcher/status/rank_row.h).  bytes 0: the answer is complete. */
    void (*rows)(void *job, int node, unsigned look, const char *rows, size_t bytes);
    /* Called about each second in the wait for a round.  text: how far the wait is, for a terminal;
     * "": the wait is over. */
    void (*waits)(void *job, const char *text);
    /* On an agent with --trace, called for each answer about the clock; on the coordinator once. */
    void (*clock)(void *job, const struct clock_reading *reading);
};

/* Each kind of node starts with this struct. */
struct nodes {
    const struct nodes_ops *ops;
    const struct nodes_hooks *hooks;
    void *job;
};

/* How a round ended on one node. */
struct round_end {
    int stop_code; /* the workers' exit code, if all stopped at a common step; else -1 */
    int done;      /* each worker exited with 0, and nothing had told it to stop */
};

#define CONNECTION_LOST 0 /* argument of signalled() */

struct nodes_ops {
    void (*start)(struct nodes *nodes); /* connects; a round may begin within the call */
    /* A worker of this node ended.  The message is in the sockets when this returns. */
    void (*died)(struct nodes *nodes, const struct control_death *death);
    void (*failed)(struct nodes *nodes, const struct failure *failure); /* the first one */
    /* Called instead of failed() with --on-failure=continue.  If too few ranks are left, the hook
     * stop() follows. */
    void (*lost)(struct nodes *nodes, const struct failure *failure);
    void (*refused)(struct nodes *nodes, int code); /* no restart follows */
    /* This ctrun got that signal.  CONNECTION_LOST: its host lost the connection to `ctrun
     * --hosts`. */
    void (*signalled)(struct nodes *nodes, int number);
    /* Asks all ranks of the round to stop at the same step; for_good: no restart follows.  May be
     * called more than once. */
    void (*ask_stop)(struct nodes *nodes, int for_good);
    /* All ranks of this node are in PMI's barrier.  puts: what they have put. */
    void (*fence)(struct nodes *nodes, const char *puts, size_t bytes);
    /* Sends this node's shares at the end of a window, in a round. */
    void (*shares)(struct nodes *nodes, const struct collective_shares *shares);
    /* On the coordinator: asks the other nodes of the round what their ranks do, except nodes that
     * have not answered the last look.  Returns how many it asked. */
    int (*look)(struct nodes *nodes, unsigned look);
    /* On an agent: sends the answer to that look; look 0: sends the last state of a round. */
    void (*rows)(struct nodes *nodes, unsigned look, const char *rows, size_t bytes);
    void (*ended)(struct nodes *nodes, const struct round_end *end); /* its last worker ended */
    /* Sends the heartbeat that is due, when the event loop does not run for a while. */
    void (*alive)(struct nodes *nodes);
    void (*destroy)(struct nodes *nodes);
};

/* NULL: the error is logged. */
struct nodes *nodes_coordinator(struct event_base *base, struct job_rendezvous *meet,
                                const struct options *options, int size,
                                const struct nodes_hooks *hooks, void *job);
struct nodes *nodes_agent(struct event_base *base, struct job_rendezvous *meet,
                          const struct options *options, int size, const struct nodes_hooks *hooks,
                          void *job);

/* ---- Messages between nodes: one of these types, then text ------------------- */

enum {
    NODE_JOIN = AGENT_FIRST, /* agent: struct node_join */
    NODE_REFUSED,            /* coordinator: why; the agent ends */
    NODE_ROUND,              /* coordinator: struct plan; node_messages.h */
    NODE_FAILED,             /* agent: "rank culprit code flags what"; node_messages.h */
    NODE_LOST,               /* agent: the same, but the other workers go on */
    NODE_CANNOT,             /* agent: "code" */
    NODE_SIGNALLED,          /* agent: "number", or CONNECTION_LOST */
    NODE_ENDED,              /* agent: "code done"; node_messages.h */
    NODE_STOP,               /* coordinator: "number rank why"; number as in stop() */
    NODE_OVER,               /* coordinator: "code rank why" */
    NODE_BEAT,               /* both ways: "", or clocks; node_messages.h */
    NODE_DIED,     /* both ways: workers that ended, for the other nodes; node_messages.h */
    NODE_ASK_STOP, /* both ways: asks the ranks to stop at the same step; struct stop_request */
    NODE_PUTS,     /* both ways: a piece of what ranks put by PMI; node_messages.h */
    NODE_FENCE, /* agent: "generation": its ranks are in PMI's barrier; coordinator: the barrier is
                   over */
    NODE_WAITING,  /* coordinator: for what the job waits, as a line for the user */
    NODE_LOOK,     /* coordinator: "number": what do the ranks do?  For the status page */
    NODE_ROWS,     /* agent: a piece of the answer; node_messages.h */
    NODE_PROGRESS, /* coordinator: how far the wait is, as a line for a terminal */
    NODE_SHARES    /* agent: "generation rank least next most calls"; struct collective_shares */
};

#define WORLD_MOST                                                                               \
    (1 << 22) /* most workers of a job: a bound for numbers from agents, which ctrun adds up and \
                 loops over */

/* Copies text that another ctrun sent, with '?' for each control character. */
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
