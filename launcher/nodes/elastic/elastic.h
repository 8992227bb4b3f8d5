/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.h - a node of a dynamic job as its four files see it: elastic.c is its life,
 * endpoint_host.c settles who hosts the rendezvous, elastic_links.c is what the ctruns say to
 * each other, elastic_stop.c how they stop at the same step.
 *
 * All of it is the event loop's; what may wait is a thread's (c10d/agent.h). */
#ifndef LAUNCHER_NODES_ELASTIC_ELASTIC_H
#define LAUNCHER_NODES_ELASTIC_ELASTIC_H

#include <event2/event_struct.h>

#include "launcher/nodes/c10d/agent.h"
#include "launcher/nodes/elastic/linked_agents.h"
#include "launcher/nodes/heartbeat.h"
#include "launcher/nodes/node_link.h"
#include "launcher/nodes/stop_vote.h"

struct dynamic {
    struct nodes nodes;
    struct event_base *base;
    struct rendezvous *meet;
    const struct options *options;
    struct store_server *store; /* of the rendezvous, if we host it */
    int port, size;
    struct c10d_agent *agent;
    struct link_to host, workers; /* to who serves the rendezvous, to who serves our workers */
    struct guests guests;         /* linked to us, the host */
    struct pulse pulse;
    struct vote vote; /* if we host, or are alone */
    int linked;       /* to the ctrun that hosts */
    int alone;        /* this round is of this node only */
    int closed; /* the words of our ranks are, and it was not told yet at which step they stop */
    int for_good, gave; /* the job does not begin again; the exit code that its workers chose */
    struct node_workers ranks; /* of this node in the round, */
    int world;                 /* of so many */
    struct event wake, goodbye, look;
    int64_t looked; /* when the guests were told to look */
    int64_t until;  /* we host until then */
    int running;    /* workers */
    int lost;       /* of them, with --on-failure=continue */
    int code;       /* once over */
    int is_over, signal;
    char why[NODE_TEXT];
};

/* endpoint_host.c: hosts the rendezvous, if the endpoint can be bound here.  0, or -1 and the
 * sentence is said. */
int dynamic_host_or_not(struct dynamic *d, const struct meeting *meeting);

/* elastic_links.c */
extern const struct store_agent_hooks dynamic_guest_hooks;
void dynamic_links_setup(struct dynamic *d);
void dynamic_links_close(struct dynamic *d);
void dynamic_take_links(struct dynamic *d, const struct c10d_news *news); /* new ones */
void dynamic_spread(struct dynamic *d); /* there is something new in the store */
void dynamic_died(struct nodes *nodes, const struct control_death *death);
/* Who has lost the rendezvous hears of nobody any more. */
void dynamic_lose_all_others(struct dynamic *d);

/* elastic_stop.c: those who ask, ... */
void dynamic_ask_stop(struct nodes *nodes, int for_good);
void dynamic_ask_guests(struct dynamic *d, const struct node_wish *wish);
void dynamic_take_closed(struct dynamic *d, struct guest *guest, const struct node_steps *closed);
void dynamic_decided(void *d);
/* ... those who answer, ... */
void dynamic_answer_how_far(struct dynamic *d, const struct node_wish *wish);
/* ... and what all hear. */
void dynamic_tell_stop(const struct dynamic *d, const struct guest *guest);
void dynamic_take_stop(struct dynamic *d, const struct node_steps *stop);
void dynamic_stop_alone(struct dynamic *d); /* nobody is left to agree with */

#endif
