/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_server.h - makes ctrun the process manager of MPI programs: the server answers the PMI 1.1
 * requests of ctrun's workers.
 *
 * Each worker has an end of a socket pair as PMI_FD.  Ranks put keys, enter the barrier, and then
 * get the keys of all ranks.  The barrier is over when the ranks of all nodes are in it.  Each node
 * sends its puts to the other nodes (hook fence), and receives their puts (pmi_server_merge(),
 * pmi_server_fenced()).
 *
 * A rank has a fault if MPI can't continue after the rank's end, whatever its exit code is.  A rank
 * gets a fault if it calls MPI_Abort(), if it exits without MPI_Finalize() or while other ranks
 * wait for it, or if it sends bytes that are not PMI.  If a worker has a fault when it ends,
 * pmi_server_ended() returns the fault.  If the worker still runs, or if the fault is found after
 * its end, the event loop calls the hook fault(). */
#ifndef LAUNCHER_PMI_PMI_SERVER_H
#define LAUNCHER_PMI_PMI_SERVER_H

#include <event2/event_struct.h>

#include "launcher/pmi/pmi_protocol.h"

struct pmi_fault {
    int code;         /* ctrun's exit code because of the fault, 1 to 255; 0 if there is no fault */
    char what[64];    /* text that a message has after "rank 2 (pid 4102) " */
    char detail[200]; /* "" if there is no detail */
};

struct pmi_hooks {
    /* Called when all ranks of this node are in the barrier.  `puts` are their puts since the last
     * barrier; the server owns this text.  The hook may call pmi_server_fenced(). */
    void (*fence)(void *arg, const char *puts, size_t bytes);
    void (*fault)(void *arg, int local_rank);
    /* Called when ranks of this node wait for a rank of another node that has exited with code 0.
     * `what` describes this. */
    void (*gone)(void *arg, int rank, const char *what);
};

struct pmi_round {
    int base, size; /* rank of the first worker of this node; number of workers of this node */
    int world, nodes;
    const char *generation, *mapping;
};

struct pmi_server {
    struct event_base *base;
    const struct pmi_hooks *hooks;
    void *arg;
    int stall; /* seconds after which a wait in the barrier is logged; 0 for never */
    int is_open;
    struct pmi_round round;
    struct pmi_job job;
    struct pmi_conn *conns; /* [round.size] connections, indexed by local rank */
    int waiting;            /* number of ranks of this node in the barrier */
    int gone;               /* a rank of another node that exited with code 0; -1 if none */
    int gone_reported, absent_reported;
    struct event gone_timer, stall_timer;
};

void pmi_server_setup(struct pmi_server *server, struct event_base *base,
                      const struct pmi_hooks *hooks, void *arg, int stall);

/* Begins a round.  Must be called before the workers of the round start.  Returns 0, or -1 if
 * memory is exhausted. */
int pmi_server_begin(struct pmi_server *server, const struct pmi_round *round);
/* Creates a socket pair for a worker, and returns the descriptor that the worker inherits.  It is
 * valid until pmi_server_given().  Returns -1 with errno set if it failed. */
int pmi_server_give(struct pmi_server *server, int local_rank);
/* Closes the descriptor from pmi_server_give() in ctrun.  Must be called after the worker has
 * started, or has failed to start. */
void pmi_server_given(struct pmi_server *server, int local_rank);
/* Must be called when a worker has ended; `well` is 1 if its exit code is 0.  Reads what the worker
 * sent before.  Returns the worker's fault; NULL if the worker has no fault. */
const struct pmi_fault *pmi_server_ended(struct pmi_server *server, int local_rank, int well);
void pmi_server_end(struct pmi_server *server); /* may be called twice */

/* Returns the fault of the worker for which the hook fault() was called. */
const struct pmi_fault *pmi_server_fault(const struct pmi_server *server, int local_rank);

/* ---- The other nodes --------------------------------------------------------- */

/* Adds the puts of other nodes.  Returns 0, or -1 if the text is not valid or memory is exhausted.
 */
int pmi_server_merge(struct pmi_server *server, const char *puts, size_t bytes);
/* Ends the barrier.  Must be called when all ranks of all nodes are in it. */
void pmi_server_fenced(struct pmi_server *server);
/* Notes that a rank of another node has exited with code 0. */
void pmi_server_ended_elsewhere(struct pmi_server *server, int rank);

#endif
