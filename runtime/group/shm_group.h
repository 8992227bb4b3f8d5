/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.h - a group on one host in shared memory: every rank sees every rank's slot.
 *
 * A call is a number of rounds, the same on all ranks.  In a round each rank
 * arrives once, and may wait for others to have arrived.  What a rank puts into
 * its slot before it arrives, those who waited for it may read:
 *
 *     flat_turn(f, bytes);             a fresh slot, free of readers
 *     memcpy(flat_own(f), ...);
 *     flat_arrive(f);                  round n, for all to see
 *     flat_wait_all(f);                everybody is in round n
 *     ... flat_slot(f, i) ...          until the next flat_turn but one
 *
 * A slot is apart from the one before, so arriving in the next turn is what frees that: no barrier
 * at the end of a call.  A payload of up to 64 bytes lies in
 * the line that carries the round's number, one cache miss for both.
 *
 * Buffers that lie in memory of ct_mem_alloc() the others can reach where they are:
 *
 *     flat_offer(f, send, bytes, recv, bytes);   before the call's first flat_arrive()
 *     flat_arrive(f); flat_wait_all(f);
 *     flat_look_up(f, ...);            now flat_send_of() and flat_recv_of() say where they are
 *     flat_touch(f);
 *     ... reads and writes there ...
 *     flat_untouch(f);
 *     flat_arrive(f); flat_wait_all(f);          nobody returns while others are at its buffers
 *     flat_withdraw(f);
 *
 * When such a call fails, flat_settle() waits for the ranks that are still at them, and cuts off
 * what this call offered, and nothing else, from a rank that stays there. */
#ifndef RUNTIME_GROUP_SHM_GROUP_H
#define RUNTIME_GROUP_SHM_GROUP_H

#include "runtime/messaging/group_channel.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

#define FLAT_SLOT_BYTES ((size_t)256 << 10) /* at the most */
#define FLAT_INLINE_BYTES 64
#define FLAT_MOST 1024 /* ranks */

struct flat;

/* members: ranks in the mesh, all on this host.  The first makes the area and
 * tells the others over channel; given_up (may be NULL), set by another thread or by news, ends
 * the wait for that.  *flat stays NULL, on all, when there is no
 * room for it, or the host has more than NODE_MOST ranks. */
ct_status flat_create(struct mesh *mesh, const int *members, int count, int rank, uint64_t channel,
                      int64_t deadline, const _Atomic int *given_up, struct flat **flat);
void flat_destroy(struct flat *flat); /* NULL is fine; says to the others that this rank left */

/* The group is broken: whoever waits in it wakes with CT_ERR_ABORTED, on every rank, and finds
 * out why by flat_failure(): the first one to break it leaves its words for all. */
void flat_fail(struct flat *flat, const struct group_failure *failure);
int flat_failure(const struct flat *flat, struct group_failure *failure); /* 0: it is sound */

/* Before the first round of a call. */
void flat_call(struct flat *flat, const struct signature *signature, int64_t deadline,
               const _Atomic int *interrupted);

/* Takes the next slot for at most `bytes` per rank (the same number on all). */
ct_status flat_turn(struct flat *flat, size_t bytes);
void *flat_own(const struct flat *flat);
/* Copies into it, from byte `at` on, by stores that are fast where others will read. */
void flat_show(struct flat *flat, size_t at, const void *from, size_t bytes);
int flat_streams(const struct flat *flat); /* those are past the caches just now */
const void *flat_slot(const struct flat *flat, int rank);

/* Where one rank alone shows something, another piece to each: every rank's slot is free for it, so
 * what is meant for rank lies in that rank's.  bytes of each, as many on all. */
void flat_show_to(struct flat *flat, int rank, const void *from, size_t bytes);
const void *flat_shown_here(const struct flat *flat, int from, size_t bytes);

/* Of a turn whose payload is not in the lines.  bytes 0: where there is no such buffer, or it does
 * not matter where it is.  What shares a page with a buffer that another call offers at the time is
 * not offered. */
void flat_offer(struct flat *flat, const void *send, size_t send_bytes, void *recv,
                size_t recv_bytes);
/* No other rank is at them any more. */
void flat_withdraw(struct flat *flat);
/* Were all of those that matter in memory that the others reach? */
int flat_offers(const struct flat *flat, int send, int recv);

enum reach { REACH_NONE, REACH_SOME, REACH_ALL };
/* What the others offered, of so many bytes (0: none was asked for).  from: only that rank's
 * counts; -1: everybody's. */
ct_status flat_look_up(struct flat *flat, int from, size_t send_bytes, size_t recv_bytes,
                       enum reach *reach);
const char *flat_send_of(const struct flat *flat, int rank); /* where all is reached */
char *flat_recv_of(const struct flat *flat, int rank);

/* Around reading and writing there.  CT_ERR_ABORTED: the group is broken. */
ct_status flat_touch(struct flat *flat);
/* The same for a device's reads and writes there, which it ends FLAT_DEVICE_SETTLING_MS after the
 * call failed at the latest, or says so. */
#define FLAT_DEVICE_SETTLING_MS 10000
ct_status flat_touch_by_device(struct flat *flat);
void flat_untouch(struct flat *flat);
/* The same once more, of a call that a stream comes to later; there may be several at a time. */
ct_status flat_touch_in_stream(struct flat *flat);
void flat_untouch_in_stream(struct flat *flat);
void flat_settle(struct flat *flat);
/* The waiting alone, for a thread beside the one that is in a call: what that has offered
 * stays. */
void flat_await_untouched(struct flat *flat);

ct_status flat_arrive(struct flat *flat);
ct_status flat_wait(struct flat *flat, int rank);
ct_status flat_wait_all(struct flat *flat);

#endif
