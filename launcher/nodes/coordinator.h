/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator.h - the ctrun that decides for all nodes of a job, as its four files see it:
 * coordinator.c holds the nodes and takes in what happens to them, wait_for_nodes.c waits for them,
 * rounds.c decides what follows, fence.c exchanges what MPI programs put by PMI.
 *
 * The first member is this ctrun itself, reached by function calls; the others are agents, reached
 * by messages.  The coordinator's node is node 0 of each round, so rank 0 runs at MASTER_ADDR.  In
 * an elastic job it may have no workers (--nproc-per-node=0): then it is not a member and does not
 * count as a node, and the job may lose any node, even that of rank 0.
 *
 *   WAITING -> RUNNING -> FINISHED                        all workers ended well, or stopped
 *              RUNNING -> RESTARTING -> RUNNING           a worker failed; it costs a restart
 *              RUNNING -> REGROUPING -> WAITING, RUNNING  a node came or left; elastic jobs only
 *              RUNNING -> STOPPING -> FINISHED            no restart is left, or allowed
 */
#ifndef LAUNCHER_NODES_COORDINATOR_H
#define LAUNCHER_NODES_COORDINATOR_H

#include <event2/event_struct.h>

#include "config/values/parse_restart.h"
#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_messages.h"
#include "launcher/nodes/nodes.h"
#include "runtime/util/text.h"

#define GOODBYE_SECONDS 5
#define NEWCOMERS_MS 500 /* how long the phase FINISHED still answers nodes that join */

struct member {
    struct store_agent *agent; /* NULL: this ctrun, or a node whose connection is gone */
    char name[96];             /* as messages call it: "node 2 (hosta)", "node hosta (pid 4310)" */
    char host[64];
    char role[256];
    int number; /* --node-rank, or in an elastic job its number in its last round; -1: none yet */
    int pid, workers;
    int64_t last_message; /* clock_ms() of its last message */
    int silent;           /* it sent nothing for so long that it is given up */
    int unreachable;      /* its connection timed out: its host does not answer */
    /* State of the round: */
    int in_round; /* 0: it waits for the next one */
    int base;     /* rank of its first worker */
    int ended;    /* its workers have ended */
    struct round_end end;
    int lost;                        /* its workers that failed, with --on-failure=continue */
    struct collective_shares shares; /* shares of its newest window */
    int has_shares;
    int is_asked;  /* it was asked what its ranks do, and has not answered */
    int is_fenced; /* its ranks are in PMI's barrier */
    size_t puts;   /* bytes that it has sent for this barrier */
    int leaves; /* signal that told its ctrun to leave an elastic job, in which the others go on */
};

/* The restarts that --max-restarts allows, in all or in a time window. */
struct restarts {
    struct restart_budget limit;
    int64_t *times; /* of the restarts that still count; malloc'ed */
    int used, room;
};

struct coordinator {
    struct nodes nodes;
    struct job_rendezvous *meet;
    const struct options *options;
    int is_elastic, min, max; /* nodes */
    struct member own;        /* this ctrun */
    char clock[96];           /* this host's clock, as the traces of all nodes name it */
    struct member **members;  /* in the order they came; first this ctrun, if it has workers */
    int count, room;
    struct member **ranked; /* the members of this round, by node number */
    int ranked_count, world;
    enum { WAITING, RUNNING, RESTARTING, REGROUPING, STOPPING, FINISHED } phase;
    char mapping[NODE_MAPPING];       /* of the round: struct plan */
    struct text fence;                /* all that ranks have put by PMI for this barrier */
    struct slow_rank slow, slow_said; /* of the last window; last logged in this round */
    struct restarts budget;
    int rounds, restarts;
    int code;                         /* exit code of the first failure */
    const struct member *failed_node; /* node of the first failure; NULL: no failure */
    int failed_rank;       /* rank of the first failure; -1: not the failure of a worker */
    int root_rank;         /* the rank that is the root cause; -1: not known */
    int is_cause, changed; /* it is not an exit; another failure was sent to the nodes before */
    char why[NODE_TEXT];
    struct event tick;
    struct heartbeat heartbeat;
    int stop_asked; /* all members were asked to stop in this round; 2: and no restart follows */
    int signalled;  /* the signal that a ctrun got; 0: none */
    int64_t newcomers_until;         /* when FINISHED ends */
    int64_t since, speak, last_call; /* of WAITING; last_call 0: too few nodes */
};

/* ---- coordinator.c ------------------------------------------------------------ */

/* Adds an agent.  NULL: out of memory. */
struct member *members_add(struct coordinator *c, const struct node_join *join,
                           struct store_agent *agent);
void members_remove(struct coordinator *c, struct member *member);
int members_workers(const struct coordinator *c);
/* Gives node numbers and ranks to the members of the next round: the MAX that came first.  -1: out
 * of memory. */
int members_rank(struct coordinator *c);

/* ---- fence.c ------------------------------------------------------------------ */

void fence_begin(struct coordinator *c); /* at the start of a round, and after each barrier */
void fence_free(struct coordinator *c);
/* Takes NODE_PUTS.  0: that node can't put so much, or memory is out. */
int fence_puts(struct coordinator *c, struct member *from, const char *data, size_t bytes);
void fence_in(struct coordinator *c, struct member *from, const char *generation);
void fence_own(struct coordinator *c, const char *puts, size_t bytes);

/* ---- wait_for_nodes.c ---------------------------------------------------------- */

/* Waits for nodes, and begins the next round when enough are there: if they are already, within the
 * call. */
void join_wait(struct coordinator *c);
void join_tick(struct coordinator *c);
void join_left(struct coordinator *c); /* a node left while the coordinator waits for nodes */
/* Takes NODE_JOIN from an agent that is not a member yet. */
void join_agent(struct coordinator *c, struct store_agent *agent, const char *text);

/* ---- rounds.c ----------------------------------------------------------------- */

void restarts_free(struct restarts *restarts);

void rounds_begin(struct coordinator *c);

/* Handle what a member reports.  The first failure stops all workers; then all begin again, or the
 * job ends. */
void rounds_failed(struct coordinator *c, struct member *from, const struct failure *failure);
void rounds_lost(struct coordinator *c, struct member *from, const struct failure *failure);
void rounds_refused(struct coordinator *c, struct member *from, int code);
void rounds_signalled(struct coordinator *c, struct member *from, int number);
void rounds_ended(struct coordinator *c, struct member *from, const struct round_end *end);
void rounds_ask_stop(struct coordinator *c, const struct member *from,
                     const struct stop_request *request);
/* Sends to all other nodes that workers of a member ended.  The messages are in the sockets when
 * this returns. */
void rounds_died(struct coordinator *c, const struct member *from, const struct node_death *dead);

/* Keeps a node's shares, and looks for a slow rank when each node of the round has sent its own. */
void rounds_shares(struct coordinator *c, struct member *from, const struct node_shares *shares);

void rounds_lose_node(struct coordinator *c, struct member *from); /* with all its workers */
/* Stops the workers of an elastic job, which begin again with the nodes that are there by then. */
void rounds_regroup(struct coordinator *c, const struct member *from, const char *why);

void rounds_end_job(struct coordinator *c); /* the job is over when all agents have left */
void rounds_leave(struct coordinator *c);   /* calls over() if all agents have left */

#endif
