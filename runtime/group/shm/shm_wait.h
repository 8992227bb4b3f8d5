/* SPDX-License-Identifier: Apache-2.0 */
/* shm_wait.h - waiting for a word in the memory of a group on one host. */
#ifndef RUNTIME_GROUP_SHM_SHM_WAIT_H
#define RUNTIME_GROUP_SHM_SHM_WAIT_H

#include "runtime/group/shm/shm_group_internal.h"

/* Waits until the word is at least `round`.  Returns CT_ERR_ABORTED if the group has failed,
 * CT_ERR_PEER if a missing member has ended or left, and CT_ERR_TIMEOUT if the call's deadline has
 * passed.  rank: the member that writes the word when it arrives; NO_RANK if the last member to
 * arrive writes it. */
ct_status shm_wait_longer(struct shm_group *f, const _Atomic uint64_t *word, uint64_t round,
                          int rank);
/* Like shm_wait_longer(), but first polls the word for about as long as a cache line takes from one
 * processor to another. */
static inline ct_status shm_wait_until(struct shm_group *f, const _Atomic uint64_t *word,
                                       uint64_t round, int rank)
{
    for (int i = f->mesh->waiter.spins ? LOOKS_BEFORE_WAIT : 1; i > 0; i--)
        if (atomic_load_explicit(word, memory_order_acquire) >= round)
            return CT_OK;
    return shm_wait_longer(f, word, round, rank);
}

/* Wakes the members that sleep until this rank arrives.  To be called after this rank has arrived
 * and called bell_fence(). */
void shm_wake_waiting(const struct shm_group *f);
static inline void shm_arrived(const struct shm_group *f)
{
    if (atomic_load_explicit(&f->members[f->rank].awaited_by, memory_order_relaxed))
        shm_wake_waiting(f);
}

#endif
