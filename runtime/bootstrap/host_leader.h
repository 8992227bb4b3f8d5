/* SPDX-License-Identifier: Apache-2.0 */
/* host_leader.h - the ranks of a host and their leader, which reads at the store for all.
 *
 * The first rank of a host that comes to the store leads it.  The others, its followers, connect to
 * its unix socket and get from there what the leader has read: so a host with a thousand ranks
 * loads the store like a host with one.  Both ends of a connection belong to one user, which the
 * kernel says.  A leader that fails sends its status and sentence, which become the followers'. */
#ifndef RUNTIME_BOOTSTRAP_HOST_LEADER_H
#define RUNTIME_BOOTSTRAP_HOST_LEADER_H

#include "runtime/transport/mesh.h"

struct host_leader {
    int rank;      /* of the leader */
    int pid, size; /* its process, and its size of the world */
    int is_self;   /* this rank is the leader */
    char name[64]; /* of its unix socket */
    int listener;  /* that socket; -1 on a follower */
    int socket;    /* a follower's connection to it; -1 on the leader */
    int *sockets;  /* the leader's connections: [count], by rank on the host; -1: none */
    int count;
};

/* machine: a text that is the same on all ranks of a host, and on no other ranks. */
ct_status host_leader_elect(struct host_leader *leader, ct_store *store, int rank, int size,
                            const char *machine);
/* On a follower.  CT_ERR_TIMEOUT: too many others are connecting at the moment, until the deadline.
 * CT_ERR_PEER: the leader has ended.  On the leader, and when it is connected, it does nothing. */
ct_status host_leader_connect(struct host_leader *leader, ct_store *store, int rank,
                              int64_t deadline);
/* On the leader, when mesh->node is filled in: until all other ranks of the host are connected. */
ct_status host_leader_accept(struct host_leader *leader, struct mesh *mesh, ct_store *store,
                             int64_t deadline);
/* status: of all that was done together.  On the leader a failure goes to all followers. */
void host_leader_close(struct host_leader *leader, ct_status status);

/* Leader to followers: the same bytes to each.  A follower waits until they come.  With a store the
 * end of another rank ends that wait, too, as it does in the store's waits.  NULL: only the
 * leader's does, for messages that may come when other ranks are through with init, and have ended.
 */
ct_status host_give(struct host_leader *leader, struct mesh *mesh, const void *data, size_t bytes,
                    int64_t deadline);
ct_status host_take(struct host_leader *leader, ct_store *store, void *data, size_t bytes,
                    int64_t deadline);
/* Followers to leader: all[count], of `bytes` each, by rank on the host; own is this rank's. */
ct_status host_gather(struct host_leader *leader, struct mesh *mesh, const void *own, size_t bytes,
                      void *all, int64_t deadline);

#endif
