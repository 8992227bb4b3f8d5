/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.h - many clients that meet: what they say, and all of them in one thread. */
#ifndef STORE_BENCH_CROWD_H
#define STORE_BENCH_CROWD_H

#include "bench/store_bench/servers.h"
#include "bench/store_bench/wire.h"

/* What the clients of one rendezvous say, in this order; only whom ADD answers W
 * says set. */
struct script {
    unsigned number;
    struct buffer magic, hello, add, set, wait, get;
};

#define GET_ANSWER 9 /* the value is "1" */

void script_write(struct script *script);
void script_free(struct script *script);

struct crowd {
    const struct server *server;
    struct guest *guests;
    struct script script;
    int size, started, greeted, met;
    int idle; /* the greeting is all */
    int epoll;
};

void crowd_init(struct crowd *crowd, const struct server *server, int size);

/* Returns when all have met, or -1. */
int crowd_meets(struct crowd *crowd, double deadline);
void crowd_leave(struct crowd *crowd);

/* The same with one thread each.  Returns 0 or an errno. */
int threads_meet(const struct server *server, int size, double *seconds, double *cpu);

#endif
