/* SPDX-License-Identifier: Apache-2.0 */
/* linked_agents.h - the ctruns that are linked to the one that serves a dynamic rendezvous, and the
 * deaths that all of them should know.
 *
 * Guests begin a round at different moments.  So the deaths of a round are kept, and each
 * guest is told those that it missed when it says which workers it has. */
#ifndef LAUNCHER_NODES_ELASTIC_LINKED_AGENTS_H
#define LAUNCHER_NODES_ELASTIC_LINKED_AGENTS_H

#include "launcher/nodes/node_messages.h"

struct guest {
    struct store_agent *agent;
    char addr[256];
    long long pid, id;
    struct node_workers workers; /* count 0: none yet */
    int64_t heard;               /* clock_ms() of its last word */
    int closing;                 /* it was asked how far its ranks came */
    struct guest *next;
};

struct guests {
    struct guest *first;
    struct node_death *deaths; /* of this round, and of the next one if others were quicker */
    size_t count, room;
};

/* Of a ctrun that has said NODE_HERE; NULL without memory. */
struct guest *guests_add(struct guests *guests, struct store_agent *agent, const char *text);
struct guest *guests_find(const struct guests *guests, const struct store_agent *agent);
void guests_remove(struct guests *guests, struct guest *guest);
void guests_free(struct guests *guests);

void guests_tell(const struct guests *guests, int type);

/* Told to all but `from` (NULL: by this ctrun), on its way when it returns, and kept. */
void guests_died(struct guests *guests, const struct guest *from, const struct node_death *dead);
/* How many of these are not known to be dead. */
int guests_alive(const struct guests *guests, const struct node_workers *workers);
/* What a guest that has begun a round missed. */
void guests_catch_up(const struct guests *guests, const struct guest *guest);
/* This ctrun begins a round: what is known of others is forgotten, what of this one is given
 * to the job. */
void guests_new_round(struct guests *guests, const char *generation, const struct nodes *nodes);

#endif
