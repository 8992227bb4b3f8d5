/* SPDX-License-Identifier: Apache-2.0 */
/* direct.h - reading and writing the buffers of other ranks of the host in place.  The buffers lie
 * in memory of ct_mem_alloc().
 *
 *     shm_group_offer(f, send, n, recv, n);   before the call's first shm_group_publish()
 *     shm_group_publish(f);
 *     shm_group_wait_all(f);
 *     shm_group_resolve_peers(f, ...);        looks up the addresses
 *     shm_group_touch(f);
 *     ... reads and writes at shm_group_send_of(), shm_group_recv_of() ...
 *     shm_group_untouch(f);
 *     shm_group_publish(f);
 *     shm_group_wait_all(f);                  no rank returns while others use its buffers
 *     shm_group_withdraw(f);
 *
 * When such a call fails, shm_group_settle() waits for the ranks that still use this
 * rank's buffers.  If a rank does not stop in time, the pages of this rank's buffers
 * become private memory. */
#ifndef RUNTIME_GROUP_SHM_DIRECT_H
#define RUNTIME_GROUP_SHM_DIRECT_H

#include <stddef.h>

#include "runtime/util/error.h"

struct shm_group;

/* Offers this rank's buffers to the other ranks in the next round.  The round's payload must be too
 * large for the lines, which carry the offers.  A size of 0 means that the call has no such buffer,
 * or that the other ranks do not need it.  A buffer is not offered if it shares a page with a
 * buffer that another call offers at present. */
void shm_group_offer(struct shm_group *shm, const void *send, size_t send_bytes, void *recv,
                     size_t recv_bytes);
/* Ends the offer of this rank's buffers.  The caller has made sure that no other rank uses them. */
void shm_group_withdraw(struct shm_group *shm);
/* True if the send buffer (where `send` is not 0) and the recv buffer (where `recv` is not 0) are
 * offered, which means that they lie in memory that the other ranks map. */
int shm_group_offers(const struct shm_group *shm, int send, int recv);

enum direct_access { DIRECT_NONE, DIRECT_SOME, DIRECT_ALL };
/* Looks up the buffers that other ranks offered: the buffers of rank `from`, or of all ranks if
 * `from` is -1.  The sizes are the bytes of each buffer; 0 means that the buffer is not needed.
 * *reach tells whether none, some or all of these ranks offered their buffers. */
ct_status shm_group_resolve_peers(struct shm_group *shm, int from, size_t send_bytes,
                                  size_t recv_bytes, enum direct_access *reach);
const char *shm_group_send_of(const struct shm_group *shm, int rank); /* valid after DIRECT_ALL */
char *shm_group_recv_of(const struct shm_group *shm, int rank);

/* Marks this rank as a user of the other ranks' buffers, before it reads or writes there.  Returns
 * CT_ERR_ABORTED if the group has failed. */
ct_status shm_group_touch(struct shm_group *shm);
/* Like shm_group_touch(), for reads and writes of this rank's device.  The device finishes within
 * SHM_GROUP_DEVICE_SETTLING_MS after the call failed, or else the call reports that it did not. */
#define SHM_GROUP_DEVICE_SETTLING_MS 10000
ct_status shm_group_touch_by_device(struct shm_group *shm);
void shm_group_untouch(struct shm_group *shm);
/* Like shm_group_touch_by_device(), for a call in a stream, which the device runs later.  Several
 * such calls may be enqueued at once.  shm_group_untouch_in_stream() tells that the device has
 * finished `calls` of them (INT_MAX: all). */
ct_status shm_group_touch_in_stream(struct shm_group *shm);
void shm_group_untouch_in_stream(struct shm_group *shm, int calls);
void shm_group_settle(struct shm_group *shm);
/* True if that rank's process has ended.  Its device's work has then ended, too. */
int shm_group_is_gone(const struct shm_group *shm, int rank);

#endif
