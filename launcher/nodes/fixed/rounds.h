/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.h - node 0 of a static job: what it knows of the nodes, and what it decides.
 *
 * Member 0 is this ctrun itself, told by a call; the others are told by a message. */
#ifndef LAUNCHER_NODES_FIXED_ROUNDS_H
#define LAUNCHER_NODES_FIXED_ROUNDS_H

#include <event2/event_struct.h>

#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_messages.h"
#include "launcher/nodes/nodes.h"
#include "launcher/nodes/restart_budget.h"
#include "launcher/nodes/stop_vote.h"

#define GOODBYE_SECONDS 5

struct member {
    int joined, ended;
    int workers, lost; /* lost: in this round, with --on-failure=continue */
    char role[256];
    char host[64];
    int64_t heard; /* clock_ms() of its last word */
    int silent;    /* for so long that it is given up */
    int closing;   /* it was asked how far its ranks came */
    int gave;      /* the exit code that its workers chose when they were stopped so; -1 */
    struct store_agent *agent; /* NULL: member 0, or not there */
};

struct host {
    struct nodes nodes;
    struct rendezvous *meet;
    const struct options *options;
    struct member *members;
    int count;
    enum { GATHERING, IN_A_ROUND, RESTARTING, STOPPING, IS_OVER } phase;
    struct restarts budget;
    int restarts;
    int code;              /* of the first failure */
    int culprit;           /* the member it was on; -1: nobody's */
    int is_cause, changed; /* it is no exit; it took the place of one, which is what was told */
    char why[NODE_TEXT];
    struct event tick;
    struct pulse pulse;
    struct vote vote;
    int signalled; /* a ctrun was told to stop */
    int64_t since, speak;
};

/* All are there. */
void rounds_begin(struct host *host);

/* What a member tells.  The first failure stops all, and all begin again or the job ends. */
void rounds_failed(struct host *host, int from, const struct failure *failure);
void rounds_lost(struct host *host, int from, const struct failure *failure);
void rounds_refused(struct host *host, int from, int code);
void rounds_signalled(struct host *host, int from, int number);
void rounds_ended(struct host *host, int from, int gave);

/* All ranks shall stop at the same step; and how far those of a member came. */
void rounds_ask_stop(struct host *host, const struct node_wish *wish);
void rounds_closed(struct host *host, int from, const struct node_steps *closed);
void rounds_stop_decided(void *host);

int rounds_world(const struct host *host); /* workers of all members so far */

/* `count` workers of one member.  Nobody is signalled as long as enough are left. */
void rounds_lose(struct host *host, int from, int count, const struct failure *failure);

/* Workers of a member ended: all others are told, on their way when this returns. */
void rounds_died(struct host *host, int from, const struct node_death *dead);
void rounds_host_lost(struct host *host, int from); /* with all that ran there */
void rounds_beat(struct host *host);                /* a word to all, so that they know us alive */

/* The others have to hear it: they leave then, or are given up. */
void rounds_end_job(struct host *host);
void rounds_leave(struct host *host); /* if they have */

#endif
