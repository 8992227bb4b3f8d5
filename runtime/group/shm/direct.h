/* SPDX-License-Identifier: Apache-2.0 */
/* direct.h - a rank reads and writes the buffers of the other ranks of its host where they lie, in
 * memory of ct_mem_alloc().
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
#ifndef RUNTIME_GROUP_SHM_DIRECT_H
#define RUNTIME_GROUP_SHM_DIRECT_H

#include <stddef.h>

#include "runtime/util/error.h"

struct shm_group;

/* For a round whose payload is not in the lines.  bytes 0: there is no such buffer, or the other
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

#endif
