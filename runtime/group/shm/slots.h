/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - where a call's data lies in the memory of a group on one host.  Each rank can read the
 * slots of all ranks.
 *
 *     shm_group_next_slot(f, bytes);   takes a new slot, which no rank reads any more
 *     memcpy(shm_group_own(f), ...);   fills it; then comes a round (rounds.h)
 *     ... shm_group_slot(f, i) ...     valid until this rank publishes the round after the next
 *
 * Two successive rounds use different slots.  A slot is free again when all ranks have arrived in
 * the next round, so a call needs no barrier at its end. */
#ifndef RUNTIME_GROUP_SHM_SLOTS_H
#define RUNTIME_GROUP_SHM_SLOTS_H

#include <stddef.h>

#include "runtime/util/error.h"

/* shm_group_slot_bytes() of a group of at most 256 ranks. */
#define SHM_GROUP_MOST_SLOT ((size_t)256 << 10)
/* A payload of at most so many bytes lies in the line that also holds the number of the round, so a
 * reader has one cache miss for both. */
#define SHM_GROUP_INLINE_BYTES 64

struct shm_group;

/* Returns the bytes of the largest payload of a slot, and so of the largest piece of a call. */
size_t shm_group_slot_bytes(const struct shm_group *shm);

/* Takes the next slot, for at most `bytes` per rank.  All ranks must pass the same number. */
ct_status shm_group_next_slot(struct shm_group *shm, size_t bytes);
void *shm_group_own(const struct shm_group *shm);
/* Copies into this rank's slot, from byte `at` on.  Chooses the stores that are faster at present
 * for memory that other ranks read. */
void shm_group_write(struct shm_group *shm, size_t at, const void *from, size_t bytes);
/* Returns 1 if shm_group_write() uses non-temporal stores at present. */
int shm_group_streams(const struct shm_group *shm);
const void *shm_group_slot(const struct shm_group *shm, int rank);
/* Returns this rank's slot of the current round, into which a gate writes its answer. */
void *shm_group_answer(const struct shm_group *shm);

/* For a round in which one rank alone sends, a different piece to each rank.  All slots are free
 * for the sender, which writes the piece for a rank into that rank's slot.  `bytes` is the size of
 * each piece, the same on all ranks. */
void shm_group_write_to(struct shm_group *shm, int rank, const void *from, size_t bytes);
const void *shm_group_written_here(const struct shm_group *shm, int from, size_t bytes);

#endif
