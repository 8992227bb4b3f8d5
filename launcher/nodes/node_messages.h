/* SPDX-License-Identifier: Apache-2.0 */
/* node_messages.h - what ctruns say to each other, as text and as what it means.
 *
 * Text comes from another host: it is read strictly, and what is not all right is not
 * taken at all.  Readers return 0, or -1: it is not that. */
#ifndef LAUNCHER_NODES_NODE_MESSAGES_H
#define LAUNCHER_NODES_NODE_MESSAGES_H

#include "launcher/nodes/nodes.h"
#include "runtime/monitor/control_page.h"

#define NODE_WORKERS_MOST (1 << 20)
#define NODE_GENERATION 40

/* NODE_JOIN: "node nodes workers version host length-of-role role job" */
struct node_join {
    int node, nodes, workers;
    char version[32];
    char host[64];
    char role[256];
    const char *job; /* in the text */
};

int node_join_read(const char *text, struct node_join *join);

/* NODE_FAILED, NODE_LOST: "rank code flags what"; what points into text. */
int node_failure(const char *text, struct failure *failure);
void node_failure_print(const struct failure *failure, char text[NODE_TEXT]);

/* NODE_DIED: "generation rank count how code pid asked host tombs", and three numbers for
 * each tomb.  count > 1: so many workers from that rank on, all of one host that was lost. */
struct node_death {
    char generation[NODE_GENERATION];
    int count;
    struct control_death death;
};

int node_death_read(const char *text, struct node_death *dead);
void node_death_print(const struct node_death *dead, char text[NODE_TEXT]);

/* NODE_WORKERS: "generation base count" */
struct node_workers {
    char generation[NODE_GENERATION];
    int base, count;
};

int node_workers_read(const char *text, struct node_workers *workers);

/* NODE_WISH: "generation for-good": the ranks shall stop, and not begin again if it is for good.
 * NODE_CLOSE is one too. */
struct node_wish {
    char generation[NODE_GENERATION];
    int for_good;
};

int node_wish_read(const char *text, struct node_wish *wish);
struct node_wish node_wish(const char *generation, int for_good);

/* NODE_CLOSED, NODE_STOP_AT: "generation step for-good" */
struct node_steps {
    char generation[NODE_GENERATION];
    uint64_t step; /* the last one that a rank has passed; the one at which all stop */
    int for_good;
};

int node_steps_read(const char *text, struct node_steps *steps);
void node_steps_print(const struct node_steps *steps, char text[NODE_TEXT]);

/* The workers of a host that does not answer any more.  host: "" if nobody knows. */
/* code: CONTROL_SILENT, CONTROL_CLOSED */
struct node_death node_host_lost(const char *generation, int base, int count, const char *host,
                                 int code);

/* To the job, one by one. */
void node_death_deliver(const struct nodes *nodes, const struct node_death *dead);

#endif
