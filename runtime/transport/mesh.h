/* SPDX-License-Identifier: Apache-2.0 */
/* mesh.h - one rank's ways to all its peers.
 *
 * A mesh is made once, by init or ct_create_group(), from a store; every group
 * made from that one shares it: same memory, same sockets.  It knows who lives
 * where; what is sent over it is protocol.h's business. */
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
    int local;  /* its rank in our node; -1: elsewhere, or no memory is shared */
    int node;   /* its host's number, by first appearance: for the order of reductions */
    int pid;    /* as it sees itself */
    int worker; /* its rank in the job of our ctrun; -1: none, or another's */
    _Atomic uint32_t death; /* 1 + number of its control_death; 0: it lives, as far as we know */
    char host[64];          /* its host's name, for messages */
    char address[64];       /* where it listens; "" without sockets */
    int port;
};

struct mesh {
    int rank, size;
    struct faults *faults; /* NULL: nothing goes wrong on purpose */
    int nodes;
    struct peer *peers; /* [size] */
    struct node node;   /* size 1 and base NULL where no memory is shared */
    struct waiter waiter;
    struct doorbell own_bell; /* used when no memory is shared */
    const char *only_link;    /* CT_LINK; NULL: the best */
    struct wireup *wireup;    /* makes connections; NULL: no peer needs a socket */
    unsigned char token[16];  /* of this mesh; made by rank 0, known through the store */
    struct transport *transport;
    struct messages *messages;
    struct scratch scratch; /* of messages that nobody asked for, and of algorithms */
    struct control control;
    _Atomic uint32_t deaths; /* of the control page, taken up; death_notice.h */
    /* Called for each peer that died; of the groups made from this mesh.  NULL: none yet. */
    void (*on_death)(void *arg, int peer);
    void *on_death_arg;
    struct trace *trace; /* NULL: off */
};

/* Meets the other `size - 1` ranks at the store, by the deadline; CT_ERR_TIMEOUT
 * names the missing.  The store is not used afterwards. */
ct_status mesh_create(ct_store *store, int rank, int size, int64_t deadline, struct mesh **mesh);
void mesh_destroy(struct mesh *mesh); /* NULL is fine */

/* How that peer ended, NULL: nothing was told of it. */
const struct control_death *mesh_death(const struct mesh *mesh, int peer);
/* "rank 2 (pid 4310 on node-b) was killed by SIGKILL": of a peer of whom mesh_death() knows. */
void mesh_death_words(const struct mesh *mesh, int peer, char *text, size_t size);

/* "rank 3 (pid 4310 on node-b)" */
const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size);

#endif
