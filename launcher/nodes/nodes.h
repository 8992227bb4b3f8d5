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
    int base, world;           /* the rank of its first worker, and how many there are in all */
    int role_base, role_world; /* the same, counting those of this node's role */
    int node, nodes;           /* the rank of this node, and how many there are */
    int restarts;              /* so far */
    int round;                 /* its number in the job, the same on all nodes; the first is 0 */
    const char *generation;
    const char
        *mapping; /* which ranks each node has, as PMI writes it; "": it is too long for that */
    const char *address; /* of the workers' store */
    int port;
};

/* A worker that failed by itself. */
struct failure {
    int rank;        /* -1: not the failure of a worker */
    int culprit;     /* the living rank because of which it failed; -1: none */
    int code;        /* as an exit code of ctrun: 128 + signal */
    int may_restart; /* says --restart */
    const char *what;
    int is_cause; /* a death by signal, or a lost node.  Unlike an exit it cannot be the answer to
                     another failure. */
};

#define NODE_TEXT 1024 /* of a message, but for NODE_PUTS and NODE_ROWS */

#define CLOCK_ASKS 30 /* questions of an agent that joins: the fastest answer says most */

/* What the coordinator's CLOCK_MONOTONIC showed between two moments of that of the node. */
struct clock_reading {
    int64_t asked_ns, shown_ns, heard_ns; /* all 0: the node is the coordinator */
    const char *clock;                    /* by which the traces of all nodes name that clock */
};

/* Calls into the job.  why: what failed on another node; "" if the failure is here or there is no
 * failure.  rank: the worker that is the root cause, as far as it is known; -1: not known. */
struct nodes_hooks {
    void (*round)(void *job, const struct plan *plan);
    /* number: the signal that a ctrun of the job got; all workers get it.  0: SIGTERM. */
    void (*stop)(void *job, int number, int rank, const char *why);
    void (*over)(void *job, int code, int rank, const char *why);
    /* The coordinator calls it when all workers of the round have ended.  *root: the root cause;
     * ->rank stays -1 if no rank blames another.  what: the sentence. */
    void (*root_cause)(void *job, struct failure *root, char what[NODE_TEXT]);
    void (*member)(void *job, int node, int there); /* of a fixed job: it joined, or was lost */
    /* `count` workers of another node ended in this round: ranks death->rank and the next ones. */
    void (*died)(void *job, const struct control_death *death, int count);
    /* Another node asks all ranks to stop at the same step; for_good: and not to begin again. */
    void (*stop_asked)(void *job, int for_good);
    /* What ranks put by PMI (pmi_space.h); then: all ranks of the round are in the barrier. */
    void (*puts)(void *job, const char *puts, size_t bytes);
    void (*fenced)(void *job);
    /* Of the coordinator: in two windows one after the other this rank, or all ranks of the node
     * with that name, made the others wait.  Once in a round. */
    void (*slow)(void *job, const struct slow_rank *slow, const char *node);
    /* Of an agent: the coordinator wants to know what the ranks do; rows() owes the answer. */
    void (*look)(void *job, unsigned look);
    /* Of the coordinator: a piece of that answer, of whole lines (launcher/status/rank_row.h); no
     * bytes: it was the last one. */
    void (*rows)(void *job, int node, unsigned look, const char *rows, size_t bytes);
    /* How far the wait for a round is, for a terminal: each second or so.  "": it is over. */
    void (*waits)(void *job, const char *text);
    /* Of an agent with --trace, whenever it was answered; of the coordinator once. */
    void (*clock)(void *job, const struct clock_reading *reading);
};

/* Each kind of node starts with this. */
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

#define CONNECTION_LOST 0 /* of signalled() */

struct nodes_ops {
    void (*start)(struct nodes *nodes); /* connects; a round may begin within the call */
    /* A worker of this node ended.  The message is in the sockets when this returns. */
    void (*died)(struct nodes *nodes, const struct control_death *death);
    void (*failed)(struct nodes *nodes, const struct failure *failure); /* the first of a round */
    /* With --on-failure=continue, instead: stop() follows if too few are left. */
    void (*lost)(struct nodes *nodes, const struct failure *failure);
    void (*refused)(struct nodes *nodes, int code); /* it can't even start workers: no restart */
    /* ctrun got that signal.  CONNECTION_LOST: its host lost the connection to `ctrun --hosts`. */
    void (*signalled)(struct nodes *nodes, int number);
    /* All ranks of the round shall stop at the same step; for_good: the job does not begin
     * again.  More than once is fine. */
    void (*ask_stop)(struct nodes *nodes, int for_good);
    /* All ranks of this node are in PMI's barrier, and this is what they have put. */
    void (*fence)(struct nodes *nodes, const char *puts, size_t bytes);
    /* At the end of a window, in a round. */
    void (*shares)(struct nodes *nodes, const struct collective_shares *shares);
    /* Of the coordinator: asks the other nodes of the round what their ranks do, but for those that
     * have not answered the last time.  Gives how many. */
    int (*look)(struct nodes *nodes, unsigned look);
    /* Of an agent: the answer to that look; or the last state of a round, to look 0. */
    void (*rows)(struct nodes *nodes, unsigned look, const char *rows, size_t bytes);
    void (*ended)(struct nodes *nodes, const struct round_end *end); /* its last worker has */
    /* The event loop does not run for a while: the others get the heartbeat that is due. */
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

/* ---- What they say to each other: text behind one of these ------------------- */

enum {
    NODE_JOIN = AGENT_FIRST, /* agent: struct node_join */
    NODE_REFUSED,            /* coordinator: why; the agent ends */
    NODE_ROUND,              /* coordinator: struct plan; node_messages.h */
    NODE_FAILED,             /* agent: "rank culprit code flags what"; node_messages.h */
    NODE_LOST,               /* agent: the same, and the others go on */
    NODE_CANNOT,             /* agent: "code" */
    NODE_SIGNALLED,          /* agent: "number", or CONNECTION_LOST */
    NODE_ENDED,              /* agent: "code done"; node_messages.h */
    NODE_STOP,               /* coordinator: "number rank why"; number as in stop() */
    NODE_OVER,               /* coordinator: "code rank why" */
    NODE_BEAT,               /* both ways: "", or clocks; node_messages.h */
    NODE_DIED,               /* both ways: workers of other nodes that ended; node_messages.h */
    NODE_ASK_STOP, /* both ways: the ranks shall stop at the same step; struct stop_request */
    NODE_PUTS,     /* both ways: what ranks put by PMI, a piece of it; node_messages.h */
    NODE_FENCE,    /* both ways: "generation": its ranks are in PMI's barrier; it is over */
    NODE_WAITING,  /* coordinator: for what the job waits, as a line for the user */
    NODE_LOOK,     /* coordinator: "number": what do the ranks do?  For the status page */
    NODE_ROWS,     /* agent: the answer, a piece of it; node_messages.h */
    NODE_PROGRESS, /* coordinator: how far the wait is, as a line for a terminal */
    NODE_SHARES    /* agent: "generation rank least next most calls"; struct collective_shares */
};

#define WORLD_MOST \
    (1 << 22) /* workers of a job: numbers that agents send are added up, and looped over */

/* Text that another ctrun sent, without control characters. */
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
