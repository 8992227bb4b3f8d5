/* SPDX-License-Identifier: Apache-2.0 */
/* rank_assignment.h - after a round is complete: ranks of the workers, and where they meet. */
#ifndef LAUNCHER_NODES_C10D_RANK_ASSIGNMENT_H
#define LAUNCHER_NODES_C10D_RANK_ASSIGNMENT_H

#include "launcher/nodes/c10d/session.h"

/* What a node gives ... */
struct c10d_offer {
    const char *role;
    int workers;
    int identical; /* TORCH_ELASTIC_WORKER_IDENTICAL: all nodes are alike, nothing is exchanged */
    /* Where the workers' store is if this node has rank 0, and the name of the round. */
    const char *address, *generation;
    int port;
    int64_t timeout; /* microseconds: for the others' part */
};

/* ... and gets. */
struct c10d_assignment {
    int base, world, role_base, role_world; /* ranks of the first worker, and of how many */
    char address[256], generation[40];
    int port;
    int by_ctrun; /* serves the workers' store, not torchrun */
};

enum c10d_end c10d_assign(struct c10d_session *session, const struct c10d_offer *offer,
                          struct c10d_assignment *assignment);

#endif
