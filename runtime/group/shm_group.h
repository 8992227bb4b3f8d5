/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.h - the exchange of a group on one host in shared memory: each rank reads the slots of
 * all.
 *
 * A call is a number of rounds, the same on all ranks.  In a round each rank arrives once, and may
 * wait for other ranks to arrive.  What a rank writes into its slot before it arrives may be read
 * by the ranks that waited for it:
 *
 *     flat_turn(f, bytes);             a new slot, which no rank reads any more
 *     memcpy(flat_own(f), ...);
 *     flat_arrive(f);                  this rank is in round n, for all to see
 *     flat_wait_all(f);                all ranks are in round n
 *     ... flat_slot(f, i) ...          until the flat_turn() after the next one
 *
 * Two turns in a row use different slots, so a slot is free again when all ranks have arrived in
 * the next turn: a call needs no barrier at its end.  A payload of up to 64 bytes lies in the cache
 * line that has the number of the round, so both cost one cache miss.
 *
 * Other ranks can read and write buffers in memory of ct_mem_alloc() directly:
 *
 *     flat_offer(f, send, bytes, recv, bytes);   before the call's first flat_arrive()
 *     flat_arrive(f); flat_wait_all(f);
 *     flat_look_up(f, ...);            now flat_send_of() and flat_recv_of() return their addresses
 *     flat_touch(f);
 *     ... reads and writes there ...
 *     flat_untouch(f);
 *     flat_arrive(f); flat_wait_all(f);          no rank returns while others use its buffers
 *     flat_withdraw(f);
 *
 * When such a call fails, flat_settle() waits for the ranks that still use the buffers.  If one
 * does not stop, the buffers that this call offered are cut off from it, and nothing else. */
#ifndef RUNTIME_GROUP_SHM_GROUP_H
#define RUNTIME_GROUP_SHM_GROUP_H

#include "runtime/messaging/group_channel.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

#define FLAT_SLOT_BYTES ((size_t)256 << 10) /* the largest payload of a slot */
#define FLAT_INLINE_BYTES 64
#define FLAT_MOST 1024 /* ranks */

struct flat;

/* members: ranks in the mesh, all on this host.  The first one allocates the memory and sends
 * its offset to the others over `channel`.  given_up (may be NULL), set by another thread or by
 * a death notice, ends that wait.  *flat stays NULL on all members when there is no room for it,
 * or the host has more than NODE_MOST ranks. */
ct_status flat_create(struct mesh *mesh, const int *members, int count, int rank, uint64_t channel,
                      int64_t deadline, const _Atomic int *given_up, struct flat **flat);
void flat_destroy(struct flat *flat); /* NULL is fine; the other ranks see that this one left */

/* The group has failed: the waits in it end with CT_ERR_ABORTED on all ranks, and flat_failure()
 * returns the reason.  The rank that failed first leaves its record for all. */
void flat_fail(struct flat *flat, const struct group_failure *failure);
/* 0: no member has failed */
int flat_failure(const struct flat *flat, struct group_failure *failure);

/* Before the first round of a call. */
void flat_call(struct flat *flat, const struct signature *signature, int64_t deadline,
               const _Atomic int *interrupted);

/* Takes the next slot for at most `bytes` per rank (the same number on all). */
ct_status flat_turn(struct flat *flat, size_t bytes);
void *flat_own(const struct flat *flat);
/* Copies into it, from byte `at` on, with the stores that are faster for memory that other ranks
 * read. */
void flat_show(struct flat *flat, size_t at, const void *from, size_t bytes);
int flat_streams(const struct flat *flat); /* 1: those are non-temporal stores at present */
const void *flat_slot(const struct flat *flat, int rank);

/* For a round in which one rank alone sends, a different piece to each: all slots are free for
 * it, and it writes the piece for a rank into the slot of that rank.  `bytes` is the size of
 * each piece, the same on all ranks. */
void flat_show_to(struct flat *flat, int rank, const void *from, size_t bytes);
const void *flat_shown_here(const struct flat *flat, int from, size_t bytes);

/* For a turn whose payload is not in the lines.  bytes 0: there is no such buffer, or the other
 * ranks do not need it.  A buffer that shares a page with one that another call offers at the
 * time is not offered. */
void flat_offer(struct flat *flat, const void *send, size_t send_bytes, void *recv,
                size_t recv_bytes);
/* Called when no other rank uses them any more. */
void flat_withdraw(struct flat *flat);
/* Were the buffers that matter offered: those in memory that the other ranks map? */
int flat_offers(const struct flat *flat, int send, int recv);

enum reach { REACH_NONE, REACH_SOME, REACH_ALL };
/* Looks up the buffers that the others offered, of so many bytes each (0: not needed).  from:
 * that rank's alone; -1: those of all. */
ct_status flat_look_up(struct flat *flat, int from, size_t send_bytes, size_t recv_bytes,
                       enum reach *reach);
const char *flat_send_of(const struct flat *flat, int rank); /* after REACH_ALL */
char *flat_recv_of(const struct flat *flat, int rank);

/* Called before reading and writing there.  CT_ERR_ABORTED: the group has failed. */
ct_status flat_touch(struct flat *flat);
/* The same for a device's reads and writes.  The device ends them at most
 * FLAT_DEVICE_SETTLING_MS after the call failed, or reports that it did not. */
#define FLAT_DEVICE_SETTLING_MS 10000
ct_status flat_touch_by_device(struct flat *flat);
void flat_untouch(struct flat *flat);
/* The same for a call whose turn in a stream comes later; there may be several at a time. */
ct_status flat_touch_in_stream(struct flat *flat);
void flat_untouch_in_stream(struct flat *flat);
void flat_settle(struct flat *flat);
/* Waits alone, for a thread beside the one that is in a call: what that call has offered stays. */
void flat_await_untouched(struct flat *flat);

ct_status flat_arrive(struct flat *flat);
ct_status flat_wait(struct flat *flat, int rank);
ct_status flat_wait_all(struct flat *flat);

#endif
