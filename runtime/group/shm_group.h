/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.h - the exchange of a group on one host in shared memory: each rank reads the slots of
 * all.
 *
 * A call is a number of rounds, the same on all ranks.  In a round each rank arrives once, and may
 * wait for other ranks to arrive.  What a rank writes into its slot before it arrives may be read
 * by the ranks that waited for it:
 *
 *     shm_group_next_slot(f, bytes);   a new slot, which no rank reads any more
 *     memcpy(shm_group_own(f), ...);
 *     shm_group_publish(f);            this rank is in round n, for all to see
 *     shm_group_wait_all(f);           all ranks are in round n
 *     ... shm_group_slot(f, i) ...     until the shm_group_next_slot() after the next one
 *
 * Two rounds in a row use different slots, so a slot is free again when all ranks have arrived in
 * the next round: a call needs no barrier at its end.  A payload of up to 64 bytes lies in the
 * cache line that has the number of the round, so both cost one cache miss.
 *
 * A round may have a gate, one rank that takes what all others show and answers all of them.  It
 * costs one round: the others do not wait for each other, and sleep once.
 *
 *     shm_group_next_slot(f, bytes);          of the larger of what is shown and the answer
 *     the others:                             the gate:
 *     memcpy(shm_group_own(f), ...);          shm_group_hold_gate(f, gate);
 *     shm_group_enter_gate(f, gate);          ... shm_group_slot(f, i) ...
 *     shm_group_pass_gate(f, gate);           memcpy(shm_group_answer(f), ...);
 *     ... shm_group_slot(f, gate) ...         shm_group_open_gate(f);
 *
 * Other ranks can read and write buffers in memory of ct_mem_alloc() directly:
 *
 *     shm_group_offer(f, send, n, recv, n);   before the call's first shm_group_publish()
 *     shm_group_publish(f);
 *     shm_group_wait_all(f);
 *     shm_group_resolve_peers(f, ...);        shm_group_send_of(), shm_group_recv_of(): addresses
 *     shm_group_touch(f);
 *     ... reads and writes there ...
 *     shm_group_untouch(f);
 *     shm_group_publish(f);
 *     shm_group_wait_all(f);                  no rank returns while others use its buffers
 *     shm_group_withdraw(f);
 *
 * When such a call fails, shm_group_settle() waits for the ranks that still use the buffers.  If
 * one does not stop, the buffers that this call offered are cut off from it, and nothing else. */
#ifndef RUNTIME_GROUP_SHM_GROUP_H
#define RUNTIME_GROUP_SHM_GROUP_H

#include "runtime/messaging/group_channel.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

#define SHM_GROUP_MOST_SLOT ((size_t)256 << 10) /* shm_group_slot_bytes() of up to 256 ranks */
#define SHM_GROUP_INLINE_BYTES 64
#define SHM_GROUP_MOST 1024 /* ranks */

struct shm_group;

/* members: ranks in the mesh, all on this host.  is_first: it is the mesh's first group and has all
 * ranks of the host.  Of others the first member allocates the memory and sends its offset over
 * `channel`.  given_up (may be NULL), set by another thread or by
 * a death notice, ends that wait.  *shm stays NULL on all members when there is no room for it,
 * or the host has more than NODE_MOST ranks. */
ct_status shm_group_create(struct mesh *mesh, const int *members, int count, int rank, int is_first,
                           uint64_t channel, int64_t deadline, const _Atomic int *given_up,
                           struct shm_group **shm);
/* The group has ranks on other hosts, too: what its waits wait for may take a network's time, so
 * they yield at once and do not spin first. */
void shm_group_has_network(struct shm_group *shm);
void shm_group_destroy(
    struct shm_group *shm); /* NULL is fine; the other ranks see that this one left */

/* The group has failed: the waits in it end with CT_ERR_ABORTED on all ranks, and
 * shm_group_failure() returns the reason.  The rank that failed first leaves its record for all. */
void shm_group_set_failure(struct shm_group *shm, const struct group_failure *failure);
/* 0: no member has failed */
int shm_group_failure(const struct shm_group *shm, struct group_failure *failure);

/* Before the first round of a call. */
void shm_group_begin_call(struct shm_group *shm, const struct signature *signature,
                          int64_t deadline, const _Atomic int *given_up);

/* The largest payload of a slot, and of the pieces of a call. */
size_t shm_group_slot_bytes(const struct shm_group *shm);

/* Takes the next slot for at most `bytes` per rank (the same number on all). */
ct_status shm_group_next_slot(struct shm_group *shm, size_t bytes);
void *shm_group_own(const struct shm_group *shm);
/* Copies into it, from byte `at` on, with the stores that are faster for memory that other ranks
 * read. */
void shm_group_write(struct shm_group *shm, size_t at, const void *from, size_t bytes);
int shm_group_streams(
    const struct shm_group *shm); /* 1: those are non-temporal stores at present */
const void *shm_group_slot(const struct shm_group *shm, int rank);

/* For a round in which one rank alone sends, a different piece to each: all slots are free for
 * it, and it writes the piece for a rank into the slot of that rank.  `bytes` is the size of
 * each piece, the same on all ranks. */
void shm_group_write_to(struct shm_group *shm, int rank, const void *from, size_t bytes);
const void *shm_group_written_here(const struct shm_group *shm, int from, size_t bytes);

/* For a turn whose payload is not in the lines.  bytes 0: there is no such buffer, or the other
 * ranks do not need it.  A buffer that shares a page with one that another call offers at the
 * time is not offered. */
void shm_group_offer(struct shm_group *shm, const void *send, size_t send_bytes, void *recv,
                     size_t recv_bytes);
/* Called when no other rank uses them any more. */
void shm_group_withdraw(struct shm_group *shm);
/* Were the buffers that matter offered: those in memory that the other ranks map? */
int shm_group_offers(const struct shm_group *shm, int send, int recv);

enum direct_access { DIRECT_NONE, DIRECT_SOME, DIRECT_ALL };
/* Looks up the buffers that the others offered, of so many bytes each (0: not needed).  from:
 * that rank's alone; -1: those of all. */
ct_status shm_group_resolve_peers(struct shm_group *shm, int from, size_t send_bytes,
                                  size_t recv_bytes, enum direct_access *reach);
const char *shm_group_send_of(const struct shm_group *shm, int rank); /* after DIRECT_ALL */
char *shm_group_recv_of(const struct shm_group *shm, int rank);

/* Called before reading and writing there.  CT_ERR_ABORTED: the group has failed. */
ct_status shm_group_touch(struct shm_group *shm);
/* The same for a device's reads and writes.  The device ends them at most
 * SHM_GROUP_DEVICE_SETTLING_MS after the call failed, or reports that it did not. */
#define SHM_GROUP_DEVICE_SETTLING_MS 10000
ct_status shm_group_touch_by_device(struct shm_group *shm);
void shm_group_untouch(struct shm_group *shm);
/* The same for a call whose turn in a stream comes later.  Several may be on their way; the device
 * is done with so many of them, or with all that there are. */
ct_status shm_group_touch_in_stream(struct shm_group *shm);
void shm_group_untouch_in_stream(struct shm_group *shm, int calls);
void shm_group_settle(struct shm_group *shm);
/* The rank's process is gone, and what its device did with it. */
int shm_group_is_gone(const struct shm_group *shm, int rank);

ct_status shm_group_publish(struct shm_group *shm);
ct_status shm_group_wait(struct shm_group *shm, int rank);
ct_status shm_group_wait_all(struct shm_group *shm);

/* Ranks that need nothing from the others in a round call these instead of a wait.  They compare
 * the root with the ranks that have arrived.  If the ranks disagree, at least one finds it in that
 * round: the last rank that sends alone, or the last of ranks that each send to a rank that sends
 * elsewhere. */
ct_status shm_group_send_alone(struct shm_group *shm);
ct_status shm_group_glance(struct shm_group *shm, int rank);

/* A round with a gate instead, see above.  All ranks name the same one, or each may wait for the
 * other: a gate shows its line when it opens.  What the gate does before it opens counts against
 * the deadline of all. */
ct_status shm_group_enter_gate(struct shm_group *shm, int gate);
ct_status shm_group_pass_gate(struct shm_group *shm, int gate);
ct_status shm_group_hold_gate(struct shm_group *shm, int gate);
void *shm_group_answer(const struct shm_group *shm);
void shm_group_open_gate(struct shm_group *shm);

#endif
