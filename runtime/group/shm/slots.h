/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - where a call's data lies in the memory of a group on one host: each rank reads the
 * slots of all.
 *
 *     shm_group_next_slot(f, bytes);   a new slot, which no rank reads any more
 *     memcpy(shm_group_own(f), ...);   and a round (rounds.h)
 *     ... shm_group_slot(f, i) ...     until this rank publishes the round after the next
 *
 * Two rounds in a row use different slots, so a slot is free again when all ranks have arrived in
 * the next round: a call needs no barrier at its end. */
#ifndef RUNTIME_GROUP_SHM_SLOTS_H
#define RUNTIME_GROUP_SHM_SLOTS_H

#include <stddef.h>

#include "runtime/util/error.h"

#define SHM_GROUP_MOST_SLOT ((size_t)256 << 10) /* shm_group_slot_bytes() of up to 256 ranks */
/* A payload of up to so many bytes lies in the cache line that has the number of the round, so both
 * cost one cache miss. */
#define SHM_GROUP_INLINE_BYTES 64

struct shm_group;

/* The largest payload of a slot, and of the pieces of a call. */
size_t shm_group_slot_bytes(const struct shm_group *shm);

/* Takes the next slot for at most `bytes` per rank (the same number on all). */
ct_status shm_group_next_slot(struct shm_group *shm, size_t bytes);
void *shm_group_own(const struct shm_group *shm);
/* Copies into it, from byte `at` on, with the stores that are faster for memory that other ranks
 * read. */
void shm_group_write(struct shm_group *shm, size_t at, const void *from, size_t bytes);
/* 1: those are non-temporal stores at present. */
int shm_group_streams(const struct shm_group *shm);
const void *shm_group_slot(const struct shm_group *shm, int rank);
/* The own slot of a round that has begun: where a gate answers. */
void *shm_group_answer(const struct shm_group *shm);

/* For a round in which one rank alone sends, a different piece to each: all slots are free for
 * it, and it writes the piece for a rank into the slot of that rank.  `bytes` is the size of
 * each piece, the same on all ranks. */
void shm_group_write_to(struct shm_group *shm, int rank, const void *from, size_t bytes);
const void *shm_group_written_here(const struct shm_group *shm, int from, size_t bytes);

#endif
