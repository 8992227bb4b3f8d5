/* SPDX-License-Identifier: Apache-2.0 */
/* agent_internal.h - the agent as its files see it: agent.c is its life, agent_mailbox.c what the
 * thread and the loop tell each other, agent_store.c how it comes to the store,
 * agent_round.c and agent_end.c what happens in a round and after it. */
#ifndef LAUNCHER_NODES_C10D_AGENT_INTERNAL_H
#define LAUNCHER_NODES_C10D_AGENT_INTERNAL_H

#include <pthread.h>

#include "launcher/nodes/c10d/agent.h"
#include "launcher/nodes/restart_budget.h"

#define SECOND_US INT64_C(1000000)

struct orders {
    int quit, ended, signalled, look;
    int port; /* of the workers' store; 0: not told yet */
    char generation[40];
    struct failure failure; /* code 0: none */
    char what[NODE_TEXT];
};

/* Nodes whose ctrun has died.  With more at a time, heartbeats tell. */
#define DEAD_MOST 16
struct dead {
    char addr[256];
    int64_t pid, local_id;
};

struct c10d_agent {
    struct c10d_config config;
    pthread_t thread;
    int wake;
    char address[256]; /* of this node, for the others */
    char name[256];    /* the node's addr */

    pthread_mutex_t lock;
    pthread_cond_t told;
    struct orders orders;
    struct dead dead[DEAD_MOST];
    int deads;
    struct c10d_news news;
    ct_store *store; /* while there is one: to be shut down when we have to end */

    /* The thread's own. */
    char place[600];
    int host_is_ctrun; /* another one */
    struct c10d_session session;
    struct c10d_assignment assignment;
    struct restarts restarts;
    int restarted;
    int again;     /* the failure of this round, here, is followed by another one */
    int64_t round; /* the last we had workers in; -1: none yet */
    int in_round;
};

/* agent_mailbox.c, on the thread */
void c10d_news_is_there(struct c10d_agent *agent);
void c10d_post_over(struct c10d_agent *agent, int code, const char *why);
void c10d_post_stop(struct c10d_agent *agent, const char *why, int lost);
void c10d_post_verdict(struct c10d_agent *agent, const char *why);
void c10d_wait_to_be_told(struct c10d_agent *agent, int ms); /* with the lock */
struct orders c10d_orders_now(struct c10d_agent *agent);
void c10d_quit(struct c10d_agent *agent); /* of the loop: the thread is to end */
int c10d_rest(void *agent, int ms);       /* the session's rest() and changed() */
void c10d_changed(void *agent);

/* agent_store.c */
int c10d_open_store(struct c10d_agent *agent); /* 0, or -1: over is posted */
void c10d_set_store(struct c10d_agent *agent, ct_store *store);
void c10d_link_to_host(struct c10d_agent *agent);
/* A link for the loop, which finds it in *news. */
void c10d_open_link(struct c10d_agent *agent, const char *host, int port, int *news);

/* agent_round.c */
enum c10d_end c10d_exchange(struct c10d_agent *agent);
void c10d_post_round(struct c10d_agent *agent);
/* Until our workers have ended.  Returns how: C10D_DONE as they wanted, C10D_CHANGED since
 * we stopped them, C10D_LOST without a store. */
enum c10d_end c10d_watch_round(struct c10d_agent *agent);
/* What the first failure of our last round was, if it was told: 0, and text holds it. */
int c10d_failure_of(struct c10d_agent *agent, char *text, size_t size, struct failure *failure);
void c10d_tell_failure(struct c10d_agent *agent, int64_t round, const struct failure *failure);
/* "here", "ended" or "stopped", of this node in its round. */
void c10d_say(struct c10d_agent *agent, const char *what);
/* A ctrun of our round is there that has not said yet that its workers are gone. */
int c10d_others_stop(struct c10d_agent *agent);
/* One that is gone, and never said so; NULL: there is none. */
const struct c10d_node *c10d_lost_node(struct c10d_agent *agent);
/* A node of our round that is gone, and was needed; NULL: there is none. */
const struct c10d_node *c10d_missing_node(struct c10d_agent *agent);

/* agent_end.c */
int c10d_after_round(struct c10d_agent *agent, enum c10d_end how);  /* 1: the next round */
void c10d_end_outside(struct c10d_agent *agent, enum c10d_end end); /* there is none: why? */

#endif
