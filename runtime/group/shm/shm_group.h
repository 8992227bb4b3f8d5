/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.h - the memory that the ranks of a group on one host share: its life, the call that
 * uses it, and its failure.
 *
 * A call is a number of rounds (rounds.h).  Data lies in slots (slots.h), or is read and written in
 * the buffers of the other ranks (direct.h). */
#ifndef RUNTIME_GROUP_SHM_SHM_GROUP_H
#define RUNTIME_GROUP_SHM_SHM_GROUP_H

#include "runtime/messaging/group_channel.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

#define SHM_GROUP_MOST 1024 /* ranks */

struct shm_group;

/* ranks: those of the group, in the mesh; the ones on this host are the members.  is_first: it is
 * the mesh's first group and has all ranks of the host.  Of others the first member allocates the
 * memory and sends its offset over `channel`.  given_up (may be NULL), set by another thread or by
 * a death notice, ends that wait.  *shm stays NULL on all members where no memory is shared, there
 * is no room for it, this rank is the only member, or the host has more than NODE_MOST ranks. */
ct_status shm_group_create(struct mesh *mesh, const int *ranks, int size, int is_first,
                           uint64_t channel, int64_t deadline, const _Atomic int *given_up,
                           struct shm_group **shm);
/* NULL is fine.  The other ranks see that this one left. */
void shm_group_destroy(struct shm_group *shm);

/* Before the first round of a call. */
void shm_group_begin_call(struct shm_group *shm, const struct signature *signature,
                          int64_t deadline, const _Atomic int *given_up);

/* The group has failed: the waits in it end with CT_ERR_ABORTED on all ranks, and
 * shm_group_failure() returns the reason.  The rank that failed first leaves its record for all. */
void shm_group_set_failure(struct shm_group *shm, const struct group_failure *failure);
/* 0: no member has failed */
int shm_group_failure(const struct shm_group *shm, struct group_failure *failure);

#endif
