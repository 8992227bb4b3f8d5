/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_server.h - ctrun as the process manager of MPI programs: it serves PMI 1.1 to its workers.
 *
 * Each worker has one end of a socket pair as PMI_FD.  Ranks put keys, enter the barrier, and get
 * what all have put.  The barrier is over when the ranks of all nodes are in it: each node hands
 * its puts to the others (hook fence), and gets theirs (pmi_server_merge(), pmi_server_fenced()).
 *
 * A rank whose end MPI can't bear has a fault, whatever its exit code says: it called MPI_Abort(),
 * it exited without MPI_Finalize(), or while others wait for it, or it sent what is no PMI.  The
 * fault of a worker that ends is what pmi_server_ended() returns; of one that runs, or that ended
 * before it was one, the hook gets, from the event loop. */
#ifndef LAUNCHER_PMI_PMI_SERVER_H
#define LAUNCHER_PMI_PMI_SERVER_H

#include <event2/event_struct.h>

#include "launcher/pmi/pmi_protocol.h"

struct pmi_fault {
    int code;         /* what ctrun's exit code is for it, 1 to 255; 0: no fault */
    char what[64];    /* behind "rank 2 (pid 4102) " */
    char detail[200]; /* "": none */
};

struct pmi_hooks {
    /* All ranks of this node are in the barrier, and this is what they have put since the last one;
     * it is kept by the caller.  pmi_server_fenced() may be called within. */
    void (*fence)(void *arg, const char *puts, size_t bytes);
    void (*fault)(void *arg, int local_rank);
    /* Ranks here wait for one of another node that has ended well. */
    void (*gone)(void *arg, int rank, const char *what);
};

struct pmi_round {
    int base, size; /* the rank of this node's first worker, and how many it has */
    int world, nodes;
    const char *generation, *mapping;
};

struct pmi_server {
    struct event_base *base;
    const struct pmi_hooks *hooks;
    void *arg;
    int stall; /* seconds after which a wait in the barrier is reported; 0: never */
    int is_open;
    struct pmi_round round;
    struct pmi_job job;
    struct pmi_conn *conns; /* by local rank */
    int waiting;            /* of them in the barrier */
    int gone;               /* a rank of another node that has ended well; -1: none has */
    int gone_reported, absent_reported;
    struct event gone_timer, stall_timer;
};

void pmi_server_setup(struct pmi_server *server, struct event_base *base,
                      const struct pmi_hooks *hooks, void *arg, int stall);

/* Before the workers of a round start.  -1: out of memory. */
int pmi_server_begin(struct pmi_server *server, const struct pmi_round *round);
/* The descriptor that a worker inherits, until pmi_server_given().  -1 with errno. */
int pmi_server_give(struct pmi_server *server, int local_rank);
void pmi_server_given(struct pmi_server *server, int local_rank); /* the worker has it, or none */
/* The worker has ended, `well` with exit code 0.  What it still sent is read.  NULL: no fault. */
const struct pmi_fault *pmi_server_ended(struct pmi_server *server, int local_rank, int well);
void pmi_server_end(struct pmi_server *server); /* ended already is fine */

/* Of a worker for which the hook was called. */
const struct pmi_fault *pmi_server_fault(const struct pmi_server *server, int local_rank);

/* ---- The other nodes --------------------------------------------------------- */

/* What their ranks have put.  -1: it is no such text. */
int pmi_server_merge(struct pmi_server *server, const char *puts, size_t bytes);
void pmi_server_fenced(struct pmi_server *server); /* all ranks of all nodes are in the barrier */
void pmi_server_ended_elsewhere(struct pmi_server *server, int rank); /* with exit code 0 */

#endif
