/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.h - many clients in one thread (rendezvous.c). */
#ifndef STORE_BENCH_CROWD_H
#define STORE_BENCH_CROWD_H

#include "bench/store_bench/peer.h"

/* What the clients of one rendezvous send, in this order; only the client that ADD
 * answers W sends set. */
struct script {
    unsigned number;
    struct buffer magic, hello, add, set, wait, get;
};

#define GET_ANSWER 9 /* the value is "1" */

struct crowd {
    const struct server *server;
    struct client *clients;
    struct script script;
    int size, started, greeted, met;
    int idle; /* the greeting is all */
    int epoll;
};

void crowd_init(struct crowd *crowd, const struct server *server, int size);

/* Returns when all have met, or -1. */
int crowd_meets(struct crowd *crowd, double deadline);
void crowd_leave(struct crowd *crowd);

#endif
