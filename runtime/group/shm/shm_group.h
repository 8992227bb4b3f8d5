/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.h - the memory that the ranks of a group on one host share: its creation, its use by a
 * call, and its failure.
 *
 * A call consists of rounds (rounds.h).  The ranks pass data through slots in this memory
 * (slots.h), or read and write the buffers of other ranks in place (direct.h). */
#ifndef RUNTIME_GROUP_SHM_SHM_GROUP_H
#define RUNTIME_GROUP_SHM_SHM_GROUP_H

#include "runtime/messaging/group_channel.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

#define SHM_GROUP_MOST 1024 /* most ranks of a group on one host */

struct shm_group;

/* Creates the memory that the members share.  `ranks` are the group's ranks in the mesh; those on
 * this host are the members.  is_first: this is the mesh's first group, which has all ranks of the
 * host.  For any other group the first member allocates the memory and sends its offset over
 * `channel`; the other members wait for it until the deadline, or until *given_up is set (by
 * another thread or a death notice; given_up may be NULL).
 *
 * Returns CT_OK and leaves *shm NULL on all members if the host's ranks share no memory,
 * if the block does not fit, if this rank is the only member, or if the host has more
 * than NODE_MOST ranks. */
ct_status shm_group_create(struct mesh *mesh, const int *ranks, int size, int is_first,
                           uint64_t channel, int64_t deadline, const _Atomic int *given_up,
                           struct shm_group **shm);
/* Leaves the group, which the other ranks see, and frees the handle.  NULL is fine. */
void shm_group_destroy(struct shm_group *shm);

/* Sets the call's signature and limits.  To be called before the first round of each call. */
void shm_group_begin_call(struct shm_group *shm, const struct signature *signature,
                          int64_t deadline, const _Atomic int *given_up);

/* Records that the group has failed.  Does nothing if this rank has recorded a failure before, or
 * if a member has recorded a failure of the same or an earlier call.  All ranks' waits in the group
 * then end with CT_ERR_ABORTED, and shm_group_failure() returns the reason. */
void shm_group_set_failure(struct shm_group *shm, const struct group_failure *failure);
/* Returns 1 and copies the failure of the earliest call, or returns 0 if no member has failed. */
int shm_group_failure(const struct shm_group *shm, struct group_failure *failure);

#endif
