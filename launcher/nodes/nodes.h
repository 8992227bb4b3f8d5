/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.h - the nodes of a job, which begin and end each round together.  A round is one start of
 * all workers.
 *
 * One ctrun is the coordinator (coordinator.h).  The coordinator hosts the store, is node 0, and
 * decides when a round begins, when the workers stop and when the job is over.  Each other ctrun is
 * an agent (agent.c), which has a connection to the coordinator.  A job on one node has no agents.
 * In a fixed job (--node-rank), all nodes take part from the first round to the last.  In an
 * elastic job (--rdzv-backend=c10d, --nnodes=MIN:MAX), nodes may join and leave between rounds. */
#ifndef LAUNCHER_NODES_NODES_H
#define LAUNCHER_NODES_NODES_H

#include "config/options.h"
#include "launcher/nodes/job_rendezvous.h"
#include "launcher/nodes/slow_rank.h"
#include "runtime/monitor/control_page.h"
#include "runtime/store/server/launcher_peers.h"

/* The values with which this node starts a round. */
struct plan {
    int base, world;           /* rank of this node's first worker; number of all nodes' workers */
    int role_base, role_world; /* base and world, if only workers of this node's role count */
    int node, nodes; /* this node's number, -1 for a coordinator without workers; number of nodes */
    int restarts;    /* restarts of the job before this round */
    int round;       /* number of the round in the job, the same on all nodes; the first is 0 */
    const char *generation; /* random identifier of the round */
    const char *mapping;    /* the ranks of each node, in PMI's format; "" if too long for PMI */
    const char *address;    /* address of the workers' store */
    int port;               /* port of the workers' store */
};

/* A failure of a worker, or of a whole node. */
struct failure {
    int rank;         /* rank of the worker that failed; -1 if no worker failed */
    int culprit;      /* the live rank that caused this failure; -1 if no live rank did */
    int code;         /* ctrun's exit code for this failure; 128 + signal after a death by signal */
    int may_restart;  /* true if --restart allows a restart after this failure */
    const char *what; /* the error message */
    int is_cause; /* true for a death by signal or a lost node; false for an exit, which may be a
                     reaction to another failure */
};

#define NODE_TEXT 1024 /* most bytes of a message, except NODE_PUTS and NODE_ROWS */

/* How often a joining agent asks for the coordinator's clock.  The fastest answer is the most
 * exact. */
#define CLOCK_ASKS 30

/* One reading of the coordinator's CLOCK_MONOTONIC, shown_ns, between two readings of this node's:
 * asked_ns when this node asked, heard_ns when the answer came. */
struct clock_reading {
    int64_t asked_ns, shown_ns, heard_ns; /* all 0 if this node is the coordinator */
    const char *clock; /* name of the coordinator's clock, the same in the traces of all nodes */
};

/* The functions of the job that its nodes call.  `why` is the error message of a failure on another
 * node; "" if this node failed or nothing failed.  `rank` is the rank that is the root cause; -1
 * while it is not known. */
struct nodes_hooks {
    /* A round begins. */
    void (*round)(void *job, const struct plan *plan);
    /* This node's workers must stop.  `number` is the signal that a ctrun of the job received and
     * that all workers get; 0 means SIGTERM. */
    void (*stop)(void *job, int number, int rank, const char *why);
    /* The job is over, and ctrun exits with `code`. */
    void (*over)(void *job, int code, int rank, const char *why);
    /* Called on the coordinator when all workers of the round have ended.  Sets *root to the root
     * cause and writes its error message to `what`.  Leaves root->rank at -1 if no rank blames
     * another rank. */
    void (*root_cause)(void *job, struct failure *root, char what[NODE_TEXT]);
    /* A node of a fixed job joined (`there` is 1) or was lost (0). */
    void (*member)(void *job, int node, int there);
    /* `count` workers of another node ended in this round: death->rank and the ranks after it. */
    void (*died)(void *job, const struct control_death *death, int count);
    /* Another node asks all ranks to stop at the same step.  If for_good is 1, no restart
     * follows. */
    void (*stop_asked)(void *job, int for_good);
    /* `puts` are key-value pairs that ranks have put by PMI (pmi_space.h). */
    void (*puts)(void *job, const char *puts, size_t bytes);
    /* All ranks of the round are in PMI's barrier.  Called after puts(). */
    void (*fenced)(void *job);
    /* Called on the coordinator when the same rank, or all ranks of the node named `node`, made the
     * other ranks wait in two successive windows.  Not called twice in a row for the same rank or
     * node. */
    void (*slow)(void *job, const struct slow_rank *slow, const char *node);
    /* Called on an agent when the coordinator asks for the state of the ranks, in the request
     * number `look`.  The job must answer with ops->rows(). */
    void (*look)(void *job, unsigned look);
    /* Called on the coordinator for each piece of an agent's answer to the request number `look`.
     * The piece has whole lines (launcher/status/rank_row.h).  `bytes` is 0 after the last
     * piece. */
    void (*rows)(void *job, int node, unsigned look, const char *rows, size_t bytes);
    /* Called about once a second during the wait for a round.  `text` describes the progress of the
     * wait, for a terminal; "" if the wait is over. */
    void (*waits)(void *job, const char *text);
    /* Called on an agent with --trace for each answer about the coordinator's clock, and once on
     * the coordinator. */
    void (*clock)(void *job, const struct clock_reading *reading);
};

/* The first field of struct coordinator and of struct agent. */
struct nodes {
    const struct nodes_ops *ops;
    const struct nodes_hooks *hooks;
    void *job;
};

/* How a round ended on one node. */
struct round_end {
    int stop_code; /* the workers' exit code if all stopped at a common step; else -1 */
    int done;      /* true if each worker exited with 0 before anything told it to stop */
};

/* The `number` of signalled() if this host lost its connection to `ctrun --hosts`. */
#define CONNECTION_LOST 0

/* The functions of the nodes that the job calls. */
struct nodes_ops {
    /* Begins the wait for the first round.  The hook round() may be called before start()
     * returns. */
    void (*start)(struct nodes *nodes);
    /* Sends to the other nodes that a worker of this node ended.  The message is in the sockets
     * when died() returns. */
    void (*died)(struct nodes *nodes, const struct control_death *death);
    /* Reports the first failure of a round on this node. */
    void (*failed)(struct nodes *nodes, const struct failure *failure);
    /* Called instead of failed() with --on-failure=continue.  The hook stop() follows if too few
     * ranks are left. */
    void (*lost)(struct nodes *nodes, const struct failure *failure);
    /* Reports that this node could not start its workers.  No restart follows. */
    void (*refused)(struct nodes *nodes, int code);
    /* Reports that this ctrun received the signal `number`, or CONNECTION_LOST. */
    void (*signalled)(struct nodes *nodes, int number);
    /* Asks all ranks of the round to stop at the same step.  If for_good is 1, no restart follows.
     * May be called more than once. */
    void (*ask_stop)(struct nodes *nodes, int for_good);
    /* Reports that all ranks of this node are in PMI's barrier, and sends what these ranks have
     * put. */
    void (*fence)(struct nodes *nodes, const char *puts, size_t bytes);
    /* Sends this node's shares at the end of a window during a round. */
    void (*shares)(struct nodes *nodes, const struct collective_shares *shares);
    /* On the coordinator, sends request number `look` for the state of the ranks to the other nodes
     * of the round, except nodes that have not answered the last request.  Returns the number of
     * nodes that it asked; 0 on an agent. */
    int (*look)(struct nodes *nodes, unsigned look);
    /* On an agent, sends the answer to the request number `look`.  `look` is 0 for the last state
     * of a round, which the agent sends without a request. */
    void (*rows)(struct nodes *nodes, unsigned look, const char *rows, size_t bytes);
    /* Reports that the last worker of this node ended. */
    void (*ended)(struct nodes *nodes, const struct round_end *end);
    /* Sends a heartbeat.  For a caller that blocks the event loop for a while. */
    void (*alive)(struct nodes *nodes);
    void (*destroy)(struct nodes *nodes);
};

/* Return NULL after they logged an error.  The job has `size` workers on this node. */
struct nodes *nodes_coordinator(struct event_base *base, struct job_rendezvous *meet,
                                const struct options *options, int size,
                                const struct nodes_hooks *hooks, void *job);
struct nodes *nodes_agent(struct event_base *base, struct job_rendezvous *meet,
                          const struct options *options, int size, const struct nodes_hooks *hooks,
                          void *job);

/* ---- Messages between nodes: one of these types, then text ------------------- */

/* Quotation marks show the text of a message.  node_messages.h has the details. */
enum {
    NODE_JOIN = AGENT_FIRST, /* an agent asks to join; struct node_join */
    NODE_REFUSED,            /* the coordinator refuses an agent, for the reason in the text */
    NODE_ROUND,              /* the coordinator starts a round; struct plan */
    NODE_FAILED,             /* an agent reports a failure: "rank culprit code flags what" */
    NODE_LOST,               /* like NODE_FAILED, but the other workers continue */
    NODE_CANNOT,             /* an agent could not start its workers: "code" */
    NODE_SIGNALLED,          /* an agent got a signal: "number", or CONNECTION_LOST */
    NODE_ENDED,              /* the workers of an agent have ended: "code done" */
    NODE_STOP,               /* the coordinator stops all workers: "number rank why"; hook stop() */
    NODE_OVER,               /* the coordinator ends the job: "code rank why" */
    NODE_BEAT,               /* both sides send this heartbeat: "", or clock values */
    NODE_DIED,               /* both sides report workers that ended; struct node_death */
    NODE_ASK_STOP,           /* both sides ask for a stop at the same step; struct stop_request */
    NODE_PUTS,               /* both sides send a piece of what ranks put by PMI */
    NODE_FENCE,    /* from an agent: its ranks are in PMI's barrier; from the coordinator: the
                      barrier is over; "generation" */
    NODE_WAITING,  /* the coordinator sends a line for the log, with what the job waits for */
    NODE_LOOK,     /* the coordinator requests the state of the ranks: "number of the request" */
    NODE_ROWS,     /* an agent answers NODE_LOOK with a piece of the status table */
    NODE_PROGRESS, /* the coordinator sends the progress of the wait, a line for a terminal */
    NODE_SHARES    /* an agent sends struct collective_shares */
};

#define WORLD_MOST                                                                                \
    (1 << 22) /* most workers of a job; limits numbers from agents, which ctrun adds up and loops \
                 over */

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
