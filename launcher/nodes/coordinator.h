/* SPDX-License-Identifier: Apache-2.0 */
/* coordinator.h - the parts of the coordinator, the ctrun that decides for all nodes of a job.
 * coordinator.c stores the nodes and handles their messages and ends.  wait_for_nodes.c waits for
 * nodes.  rounds.c decides what follows each event.  fence.c exchanges what MPI programs put by
 * PMI.
 *
 * A member is a node of the job.  The first member is the coordinator's own node, which it reaches
 * by function calls.  The other members are agents, which it reaches by messages.  The
 * coordinator's node is node 0 of each round, so rank 0 runs at MASTER_ADDR.  In an elastic job the
 * coordinator may have no workers (--nproc-per-node=0).  Then the coordinator is not a member and
 * does not count as a node, and the job can survive the loss of any node, even the node of rank 0.
 *
 *   WAITING -> RUNNING -> FINISHED                        all workers succeeded, or were stopped
 *              RUNNING -> RESTARTING -> RUNNING           a worker failed; uses up a restart
 *              RUNNING -> REGROUPING -> WAITING, RUNNING  a node joined or left an elastic job
 *              RUNNING -> STOPPING -> FINISHED            no restart is left or allowed
 */
#ifndef LAUNCHER_NODES_COORDINATOR_H
#define LAUNCHER_NODES_COORDINATOR_H

#include <event2/event_struct.h>

#include "config/values/parse_restart.h"
#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_messages.h"
#include "launcher/nodes/nodes.h"
#include "runtime/util/text.h"

#define GOODBYE_SECONDS 5 /* how long the coordinator waits for agents that must end or leave */
#define NEWCOMERS_MS 500  /* how long the phase FINISHED still answers nodes that join */

struct member {
    struct store_agent *agent; /* NULL for this ctrun and for a node whose connection closed */
    char name[96];             /* name for messages: "node 2 (hosta)", "node hosta (pid 4310)" */
    char host[64];
    char role[256];
    int number; /* --node-rank, or an elastic node's number in its last round; -1 if none */
    int pid, workers;
    int64_t last_message; /* clock_ms() of the node's last message */
    int silent;           /* true if the node sent nothing for so long that it counts as lost */
    int unreachable;      /* true if the connection timed out: the node's host does not answer */
    /* State of the round: */
    int in_round;         /* 0 if the node waits for the next round */
    int base;             /* rank of the node's first worker */
    int ended;            /* true if the node's workers have ended */
    struct round_end end; /* how the round ended on this node; valid if `ended` is true */
    int lost;             /* number of the node's workers that failed, if the others continue */
    struct collective_shares shares; /* shares of the node's newest window */
    int has_shares;                  /* true until `shares` has been compared with other nodes */
    int is_asked;  /* true until the node answers a request for the state of its ranks */
    int is_fenced; /* true while all ranks of the node are in PMI's barrier */
    size_t puts;   /* bytes of puts that the node has sent for this barrier */
    int leaves;    /* the signal because of which the node leaves an elastic job; 0 if none */
};

/* The restarts that --max-restarts allows, in the whole job or in a time window. */
struct restarts {
    struct restart_budget limit;
    int64_t *times; /* clock_ms() of each restart that still counts against the limit; malloc'ed */
    int used, room; /* number of times; size of the array */
};

struct coordinator {
    struct nodes nodes;
    struct job_rendezvous *meet;
    const struct options *options;
    int is_elastic, min, max; /* min and max are numbers of nodes */
    struct member own;        /* this ctrun */
    char clock[96];           /* name of this host's clock, the same in the traces of all nodes */
    struct member **members;  /* in order of joining; `own` is first if it has workers */
    int count, room;          /* number of members; size of the array */
    struct member **ranked;   /* the members of this round, by node number */
    int ranked_count, world;  /* number of nodes and of workers in this round */
    enum { WAITING, RUNNING, RESTARTING, REGROUPING, STOPPING, FINISHED } phase;
    char mapping[NODE_MAPPING];       /* struct plan's mapping of this round */
    struct text fence;                /* all that ranks have put by PMI for this barrier */
    struct slow_rank slow, slow_said; /* result of the last window; last one logged in this round */
    struct restarts budget;
    int rounds, restarts;             /* numbers of rounds and restarts so far */
    int code;                         /* exit code of the first failure; 0 if nothing failed */
    const struct member *failed_node; /* node of the first failure; NULL if nothing failed */
    int failed_rank;                  /* rank of the first failure; -1 if no worker failed */
    int root_rank;                    /* the rank that is the root cause; -1 while not known */
    /* is_cause of the first failure; true if another failure was sent to the nodes before */
    int is_cause, changed;
    char why[NODE_TEXT]; /* error message of the first failure, or why the round stops */
    struct event tick;   /* timer of WAITING, or deadline for nodes to stop or leave */
    struct heartbeat heartbeat;
    int stop_asked; /* 0 until all members are asked to stop at the same step; 1 then, 2 for good */
    int signalled;  /* the signal that a ctrun got and all workers get; 0 if none */
    int64_t newcomers_until; /* clock_ms() until which FINISHED answers nodes that join */
    /* since: clock_ms() at the start of WAITING.  speak: ms after `since` at which the next line is
     * logged.  last_call: clock_ms() at which the last call ends; 0 while too few nodes joined. */
    int64_t since, speak, last_call;
};

/* ---- coordinator.c ------------------------------------------------------------ */

/* Adds an agent to the members.  Returns the new member; NULL if out of memory. */
struct member *members_add(struct coordinator *c, const struct node_join *join,
                           struct store_agent *agent);
void members_remove(struct coordinator *c, struct member *member); /* frees the member */
int members_workers(const struct coordinator *c); /* returns the number of all members' workers */
/* Chooses the members of the next round, the MAX that joined first, and assigns node numbers and
 * ranks.  Returns -1 if out of memory, else 0. */
int members_rank(struct coordinator *c);

/* ---- fence.c ------------------------------------------------------------------ */

void fence_begin(struct coordinator *c); /* called at a round's start and after each barrier */
void fence_free(struct coordinator *c);
/* Handles NODE_PUTS.  Returns 0 if the node put more than its ranks may or memory is out, else
 * 1. */
int fence_puts(struct coordinator *c, struct member *from, const char *data, size_t bytes);
/* Notes that all ranks of a member are in the barrier.  Ends the barrier if all members are in. */
void fence_in(struct coordinator *c, struct member *from, const char *generation);
/* Handles the puts of this node's ranks, which are all in the barrier. */
void fence_own(struct coordinator *c, const char *puts, size_t bytes);

/* ---- wait_for_nodes.c ---------------------------------------------------------- */

/* Enters the phase WAITING, which ends when enough nodes have joined.  Begins the next round at
 * once if enough nodes are connected already. */
void join_wait(struct coordinator *c);
void join_tick(struct coordinator *c); /* called by the timer during WAITING */
void join_left(struct coordinator *c); /* called when a node left during WAITING */
/* Handles NODE_JOIN from an agent that is not a member yet. */
void join_agent(struct coordinator *c, struct store_agent *agent, const char *text);

/* ---- rounds.c ----------------------------------------------------------------- */

void restarts_free(struct restarts *restarts);

void rounds_begin(struct coordinator *c); /* starts a round on all nodes */

/* Handle the reports of a member.  The first failure stops the workers of all nodes.  Then all
 * workers restart, or the job ends. */
void rounds_failed(struct coordinator *c, struct member *from, const struct failure *failure);
void rounds_lost(struct coordinator *c, struct member *from, const struct failure *failure);
void rounds_refused(struct coordinator *c, struct member *from, int code);
void rounds_signalled(struct coordinator *c, struct member *from, int number);
void rounds_ended(struct coordinator *c, struct member *from, const struct round_end *end);
void rounds_ask_stop(struct coordinator *c, const struct member *from,
                     const struct stop_request *request);
/* Sends to all other nodes that workers of a member ended.  The messages are in the sockets when
 * rounds_died() returns. */
void rounds_died(struct coordinator *c, const struct member *from, const struct node_death *dead);

/* Stores a node's shares.  When each node of the round has sent its shares, looks for a slow
 * rank. */
void rounds_shares(struct coordinator *c, struct member *from, const struct node_shares *shares);

/* Handles the loss of a node with all its workers. */
void rounds_lose_node(struct coordinator *c, struct member *from);
/* Stops the workers of an elastic job.  They start again with the nodes that are connected then. */
void rounds_regroup(struct coordinator *c, const struct member *from, const char *why);

/* Tells all agents that the job is over, and waits until they have left. */
void rounds_end_job(struct coordinator *c);
void rounds_leave(struct coordinator *c); /* calls the hook over() if all agents have left */

#endif
