/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.h - one rank's connections to all its peers, and what it knows of them.
 *
 * init or ct_create_group() makes a mesh from a store; the groups made from that one share it:
 * same memory, same sockets.  It knows the host of each peer.  messages.h has what is sent over
 * it. */
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
    int local;  /* its rank on this host; -1: it is on another host, or no memory is shared */
    int node;   /* number of its host, by first appearance: for the order of reductions */
    int pid;    /* its pid in its own pid namespace */
    int worker; /* its rank in the job of our ctrun; -1: it is not in it */
    /* 1 + number of its control_death; 0: no notice of its death has come */
    _Atomic uint32_t death;
    int port; /* on which it listens, at its host's address; 0: without sockets */
};

/* 0: unknown. */
struct network_figures {
    uint32_t round_trip_us, mbit_per_s;
};

struct peer_host {
    char name[64];                  /* for messages */
    char address[64];               /* on which its ranks listen; "" without sockets */
    struct network_figures network; /* that its leader knows of the way to other hosts */
};

struct mesh {
    int rank, size;
    struct faults *faults; /* NULL: no faults are injected */
    int nodes;
    struct peer *peers;             /* [size] */
    struct peer_host *hosts;        /* [nodes] */
    struct network_figures network; /* between hosts; on all ranks the same */
    struct node node;               /* size 1 and base NULL where no memory is shared */
    struct waiter waiter;
    struct doorbell own_bell; /* used when no memory is shared */
    const char *only_link;    /* CT_LINK; NULL: the best */
    int encrypts;             /* CT_ENCRYPT: its connections over the network do */
    struct wireup *wireup;    /* makes connections; NULL: no peer needs a socket */
    unsigned char token[16];  /* of this mesh; made on rank 0's host and published in the store */
    struct transport *transport;
    struct messages *messages;
    struct scratch scratch; /* for unexpected messages, and for algorithms */
    struct control control;
    _Atomic uint32_t deaths; /* how many death notices were taken up; death_notice.h */
    /* Called for each peer that died; set by the root group.  NULL: not set yet. */
    void (*on_death)(void *arg, int peer);
    /* A wait for a message has slept, or is about to: what rang may be no message but a failure
     * that stands in shared memory.  The same arg; NULL: there is nothing to look at. */
    void (*on_wake)(void *arg);
    void *on_death_arg;
    struct trace *trace; /* NULL: off */
};

/* Makes a mesh with the other `size - 1` ranks, which it finds through the store, by the
 * deadline.  CT_ERR_TIMEOUT names the missing ranks.  The store is not used afterwards. */
ct_status mesh_create(ct_store *store, int rank, int size, int64_t deadline, struct mesh **mesh);
void mesh_destroy(struct mesh *mesh); /* NULL is fine */

/* The notice of how that peer ended; NULL: none has come. */
const struct control_death *mesh_death(const struct mesh *mesh, int peer);
/* "rank 2 (pid 4310 on node-b) was killed by SIGKILL": of a peer with a death notice. */
void mesh_death_words(const struct mesh *mesh, int peer, char *text, size_t size);

/* "rank 3 (pid 4310 on node-b)" */
const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size);

#endif
