/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - the thread that keeps this node in a job whose nodes come and go.
 *
 * It waits where the event loop may not: for a store, for other nodes, for a moment.
 * The two tell each other by a few words under a lock: the loop gives orders, the
 * thread has news and makes `wake` readable. */
#ifndef LAUNCHER_NODES_C10D_AGENT_H
#define LAUNCHER_NODES_C10D_AGENT_H

#include "launcher/nodes/c10d/rank_assignment.h"
#include "launcher/nodes/nodes.h"

struct c10d_config {
    const struct options *options;
    const struct secret *secret;
    const char *run_id;
    const char *host; /* of the rendezvous, and its port; or a file */
    int port;
    const char *file; /* "": none */
    int hosts;        /* this ctrun serves it */
    int size;         /* workers here */
};

/* In this order, when there are several. */
struct c10d_news {
    int host_link, store_link; /* connected: to who serves the rendezvous, the workers; else -1 */
    int changed;               /* the others should look at the store */
    int verdict;               /* failed: what the round failed of elsewhere; "": here */
    int store_wanted;          /* this node has rank 0: an empty store for the workers */
    int round;                 /* plan */
    int stop;                  /* why */
    int lost;                  /* for the rendezvous is */
    int over;                  /* code, why */
    struct plan plan;
    int code;
    char why[NODE_TEXT], failed[NODE_TEXT];
};

struct c10d_agent;

/* The key, as clients name it, by which other ctruns know that the host is one. */
void c10d_host_key(const char *run_id, char *key, size_t size);

/* NULL: the sentence is said.  config's pointers stay the caller's. */
struct c10d_agent *c10d_agent_start(const struct c10d_config *config);
int c10d_agent_wake(const struct c10d_agent *agent); /* a descriptor, readable: there is news */
/* Takes the news: plan.generation and .address stay valid until the next round's. */
void c10d_agent_news(struct c10d_agent *agent, struct c10d_news *news);

/* Orders. */
void c10d_agent_store(struct c10d_agent *agent, int port, const char *generation);
void c10d_agent_failed(struct c10d_agent *agent, const struct failure *failure);
void c10d_agent_signalled(struct c10d_agent *agent, int number);
void c10d_agent_ended(struct c10d_agent *agent);
void c10d_agent_look(struct c10d_agent *agent); /* the store: something has changed */
void c10d_agent_dead(struct c10d_agent *agent, const struct c10d_node *node);

/* Who we are at the rendezvous. */
const struct c10d_node *c10d_agent_node(const struct c10d_agent *agent);

/* Ends the thread, wherever it waits. */
void c10d_agent_destroy(struct c10d_agent *agent);

#endif
