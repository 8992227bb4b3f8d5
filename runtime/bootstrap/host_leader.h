/* SPDX-License-Identifier: Apache-2.0 */
/* host_leader.h - elects the leader of a host, which reads the store for all ranks of the host.
 *
 * The first rank of a host that comes to the store leads it.  The other ranks are its followers:
 * they connect to its unix socket and get the data that the leader has read.  So a host with a
 * thousand ranks loads the store like a host with one rank.  Both ends check with the kernel that
 * the other end belongs to their user.  A leader that fails sends its status and error message, and
 * its followers fail with both. */
#ifndef RUNTIME_BOOTSTRAP_HOST_LEADER_H
#define RUNTIME_BOOTSTRAP_HOST_LEADER_H

#include "runtime/transport/mesh.h"

struct host_leader {
    int rank;      /* the leader's rank */
    int pid, size; /* the leader's process and world size */
    int is_self;   /* 1 if this rank is the leader */
    char name[64]; /* name of the leader's unix socket */
    int listener;  /* the leader's unix socket; -1 on a follower */
    int socket;    /* a follower's connection to the leader; -1 on the leader */
    int *sockets;  /* [count] the leader's connections, by rank on the host; -1 if not connected */
    int count;     /* number of ranks of the host; 0 before host_leader_accept() */
};

/* Elects the leader of this host, and fills in *leader.  `machine` is a text that is the same on
 * all ranks of a host, and differs between hosts. */
ct_status host_leader_elect(struct host_leader *leader, ct_store *store, int rank, int size,
                            const char *machine);
/* Connects a follower to its leader.  Does nothing on the leader or if the follower is connected.
 * Returns CT_ERR_TIMEOUT if too many other ranks were connecting until the deadline.  Returns
 * CT_ERR_PEER if the leader has ended. */
ct_status host_leader_connect(struct host_leader *leader, ct_store *store, int rank,
                              int64_t deadline);
/* Waits on the leader until all other ranks of the host have connected.  mesh->node must be set. */
ct_status host_leader_accept(struct host_leader *leader, struct mesh *mesh, ct_store *store,
                             int64_t deadline);
/* Closes the connections.  `status` is the status of the whole exchange.  If it is a failure, the
 * leader first sends it to all followers. */
void host_leader_close(struct host_leader *leader, ct_status status);

/* host_give() sends the same bytes from the leader to each follower.  host_take() waits on a
 * follower until the bytes have come.  If `store` is not NULL, the end of any rank ends this wait.
 * If `store` is NULL, only the end of the leader does, since other ranks may have finished init and
 * ended when the message comes. */
ct_status host_give(struct host_leader *leader, struct mesh *mesh, const void *data, size_t bytes,
                    int64_t deadline);
ct_status host_take(struct host_leader *leader, ct_store *store, void *data, size_t bytes,
                    int64_t deadline);
/* Gathers `bytes` bytes, `own`, of each rank of the host on the leader, in all[count] by rank on
 * the host. */
ct_status host_gather(struct host_leader *leader, struct mesh *mesh, const void *own, size_t bytes,
                      void *all, int64_t deadline);

#endif
