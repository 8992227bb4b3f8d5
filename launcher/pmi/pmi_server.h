/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_server.h - makes ctrun the process manager of MPI programs: it serves PMI 1.1 to its workers.
 *
 * Each worker has one end of a socket pair as PMI_FD.  Ranks put keys, enter the barrier, and then
 * get the keys of all ranks.  The barrier is over when the ranks of all nodes are in it: each node
 * sends its puts to the others (hook fence), and gets theirs (pmi_server_merge(),
 * pmi_server_fenced()).
 *
 * A rank has a fault if MPI can't go on after its end, whatever its exit code is: it called
 * MPI_Abort(), it exited without MPI_Finalize() or while others wait for it, or it sent bytes that
 * are not PMI.  If a worker has a fault when it ends, pmi_server_ended() returns the fault.  If a
 * worker still runs, or the fault follows its end, the event loop calls the hook. */
#ifndef LAUNCHER_PMI_PMI_SERVER_H
#define LAUNCHER_PMI_PMI_SERVER_H

#include <event2/event_struct.h>

#include "launcher/pmi/pmi_protocol.h"

struct pmi_fault {
    int code;         /* ctrun's exit code for it, 1 to 255; 0: no fault */
    char what[64];    /* follows "rank 2 (pid 4102) " */
    char detail[200]; /* "": none */
};

struct pmi_hooks {
    /* All ranks of this node are in the barrier.  puts: what they have put since the last barrier;
     * the caller of the hook keeps it.  The hook may call pmi_server_fenced(). */
    void (*fence)(void *arg, const char *puts, size_t bytes);
    void (*fault)(void *arg, int local_rank);
    /* Ranks here wait for a rank of another node that has exited with code 0. */
    void (*gone)(void *arg, int rank, const char *what);
};

struct pmi_round {
    int base, size; /* the rank of the first worker here; number of workers here */
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
    int waiting;            /* ranks here in the barrier */
    int gone;               /* a rank of another node that exited with code 0; -1: none */
    int gone_reported, absent_reported;
    struct event gone_timer, stall_timer;
};

void pmi_server_setup(struct pmi_server *server, struct event_base *base,
                      const struct pmi_hooks *hooks, void *arg, int stall);

/* Begins a round, before its workers start.  -1: out of memory. */
int pmi_server_begin(struct pmi_server *server, const struct pmi_round *round);
/* Gives the descriptor that a worker inherits; valid until pmi_server_given().  -1 with errno. */
int pmi_server_give(struct pmi_server *server, int local_rank);
void pmi_server_given(struct pmi_server *server, int local_rank); /* it has started, or could not */
/* Takes the end of a worker; well: with exit code 0.  Reads what it still sent.  NULL: no fault. */
const struct pmi_fault *pmi_server_ended(struct pmi_server *server, int local_rank, int well);
void pmi_server_end(struct pmi_server *server); /* may be called twice */

/* Gives the fault of a worker for which the hook was called. */
const struct pmi_fault *pmi_server_fault(const struct pmi_server *server, int local_rank);

/* ---- The other nodes --------------------------------------------------------- */

/* Takes the puts of the other nodes.  -1: the text is not valid. */
int pmi_server_merge(struct pmi_server *server, const char *puts, size_t bytes);
void pmi_server_fenced(struct pmi_server *server); /* all ranks of all nodes are in the barrier */
void pmi_server_ended_elsewhere(struct pmi_server *server, int rank); /* exited with code 0 */

#endif
