/* SPDX-License-Identifier: Apache-2.0 */
/* host_leader.h - the ranks of a host and their leader, which reads at the store for all.
 *
 * The first rank of a host that comes to the store leads it.  The other ranks are its followers:
 * they connect to its unix socket and get the data that the leader has read.  So a host with a
 * thousand ranks loads the store like a host with one rank.  Both ends check with the kernel that
 * the other end belongs to their user.  A leader that fails sends its status and sentence, and its
 * followers fail with them. */
#ifndef RUNTIME_BOOTSTRAP_HOST_LEADER_H
#define RUNTIME_BOOTSTRAP_HOST_LEADER_H

#include "runtime/transport/mesh.h"

struct host_leader {
    int rank;      /* the leader's rank */
    int pid, size; /* the leader's process and world size */
    int is_self;   /* this rank is the leader */
    char name[64]; /* of the leader's unix socket */
    int listener;  /* the leader's unix socket; -1 on a follower */
    int socket;    /* a follower's connection to the leader; -1 on the leader */
    int *sockets;  /* the leader's connections: [count], by rank on the host; -1: not connected */
    int count;
};

/* machine: a text that is the same on all ranks of a host, and on no other ranks. */
ct_status host_leader_elect(struct host_leader *leader, ct_store *store, int rank, int size,
                            const char *machine);
/* Connects a follower to its leader; does nothing on the leader or when connected.  CT_ERR_TIMEOUT:
 * up to the deadline, too many other ranks were connecting.  CT_ERR_PEER: the leader has ended. */
ct_status host_leader_connect(struct host_leader *leader, ct_store *store, int rank,
                              int64_t deadline);
/* On the leader: waits until all other ranks of the host are connected.  mesh->node must be set. */
ct_status host_leader_accept(struct host_leader *leader, struct mesh *mesh, ct_store *store,
                             int64_t deadline);
/* status: of the whole exchange.  The leader sends a failure to all followers. */
void host_leader_close(struct host_leader *leader, ct_status status);

/* The leader gives each follower the same bytes.  A follower waits until it can take them.  With a
 * store, the end of any rank ends that wait, as it ends the store's waits.  store NULL: only the
 * leader's end does, for messages that may come when other ranks have finished init and ended.
 * */
ct_status host_give(struct host_leader *leader, struct mesh *mesh, const void *data, size_t bytes,
                    int64_t deadline);
ct_status host_take(struct host_leader *leader, ct_store *store, void *data, size_t bytes,
                    int64_t deadline);
/* The leader gathers `bytes` from each follower in all[count], by rank on the host; own: this
 * rank's. */
ct_status host_gather(struct host_leader *leader, struct mesh *mesh, const void *own, size_t bytes,
                      void *all, int64_t deadline);

#endif
