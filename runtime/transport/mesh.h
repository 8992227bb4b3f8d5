/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.h - a mesh: the connections of one rank to its peers, and the peers' hosts and processes.
 *
 * ct_init_process_group() and ct_create_group() create a mesh with the help of a store.  Groups
 * that are made from such a group use the same mesh, and so the same memory and sockets. messages.h
 * declares the messages that a mesh transfers. */
#ifndef RUNTIME_TRANSPORT_MESH_H
#define RUNTIME_TRANSPORT_MESH_H

#include <pthread.h>
#include <stdint.h>

#include "runtime/fault/fault_injection.h"
#include "runtime/monitor/control_page.h"
#include "runtime/shm/host_segment.h"
#include "runtime/shm/waiter.h"
#include "runtime/transport/link.h"
#include "runtime/util/error.h"
#include "runtime/util/scratch.h"

struct messages;  /* messaging_internal.h */
struct trace;     /* trace.h */
struct transport; /* transport.h */
struct wireup;    /* wireup.h */

struct peer {
    int local;  /* the peer's rank on this host; -1 if the two ranks share no memory */
    int node;   /* index of the peer's host, by first appearance; orders reductions */
    int pid;    /* the peer's pid in the peer's pid namespace */
    int worker; /* the peer's rank in the job of our ctrun; -1 if the peer is not in the job */
    /* 1 + index of the peer's control_death; 0 while there is no notice of the peer's death */
    _Atomic uint32_t death;
    int port; /* the port where the peer listens, at its host's address; 0 without sockets */
};

/* The figures of a network.  0 means unknown. */
struct network_figures {
    uint32_t round_trip_us, mbit_per_s;
};

struct peer_host {
    char name[64];                  /* for error messages */
    char address[64];               /* where the host's ranks listen; "" without sockets */
    struct network_figures network; /* between this host and other hosts, as its leader measured */
};

struct mesh {
    int rank, size;
    struct faults *faults; /* NULL if no faults are injected */
    int nodes;
    struct peer *peers;             /* [size] */
    struct peer_host *hosts;        /* [nodes] */
    struct network_figures network; /* between hosts; the same on all ranks */
    struct node node;               /* size 1 and base NULL if no memory is shared */
    struct waiter waiter;
    struct doorbell own_bell; /* used if no memory is shared */
    const char *only_link;    /* value of CT_LINK; NULL allows all kinds of links */
    int encrypts;             /* value of CT_ENCRYPT: 1 if connections over the network encrypt */
    struct wireup *wireup;    /* makes the connections; NULL if no peer needs a socket */
    unsigned char token[16];  /* of this mesh; made on rank 0's host and published in the store */
    struct transport *transport;
    struct messages *messages;
    struct scratch scratch; /* for unexpected messages and for algorithms */
    struct control control;
    _Atomic uint32_t deaths; /* number of death notices handled so far (death_notice.h) */
    /* Called for each peer that died.  The root group sets it; NULL before that. */
    void (*on_death)(void *arg, int peer);
    /* Called with on_death_arg when a wait for a message has slept or is about to sleep.  A failure
     * that a rank recorded in shared memory may have woken the wait instead of a message.  NULL if
     * there is nothing to check. */
    void (*on_wake)(void *arg);
    void *on_death_arg;
    struct trace *trace; /* NULL if tracing is off */
};

/* Creates a mesh with the other `size - 1` ranks, which must come to the store by the deadline.
 * CT_ERR_TIMEOUT names the missing ranks.  The mesh does not use the store afterwards. */
ct_status mesh_create(ct_store *store, int rank, int size, int64_t deadline, struct mesh **mesh);
void mesh_destroy(struct mesh *mesh); /* ignores NULL */

/* Returns the notice of the peer's death, or NULL if no notice has come. */
const struct control_death *mesh_death(const struct mesh *mesh, int peer);
/* Writes a text such as "rank 2 (pid 4310 on node-b) was killed by SIGKILL".  The peer must have a
 * death notice. */
void mesh_death_words(const struct mesh *mesh, int peer, char *text, size_t size);

/* Writes the peer's name, such as "rank 3 (pid 4310 on node-b)", to `text` and returns `text`. */
const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size);

#endif
