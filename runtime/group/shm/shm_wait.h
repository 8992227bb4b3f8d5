/* SPDX-License-Identifier: Apache-2.0 */
/* shm_wait.h - waiting for a word in the memory of a group on one host. */
#ifndef RUNTIME_GROUP_SHM_SHM_WAIT_H
#define RUNTIME_GROUP_SHM_SHM_WAIT_H

#include "runtime/group/shm/shm_group_internal.h"

/* Waits until the word is at least `round`, the group has failed (CT_ERR_ABORTED), a missing member
 * is gone (CT_ERR_PEER), or the deadline of the call passed (CT_ERR_TIMEOUT).  rank: the member
 * that writes the word when it arrives; NO_RANK: the last one that arrives. */
ct_status shm_wait_longer(struct shm_group *f, const _Atomic uint64_t *word, uint64_t round,
                          int rank);
/* It first reads the word for about as long as a cache line takes from one processor to another. */
static inline ct_status shm_wait_until(struct shm_group *f, const _Atomic uint64_t *word,
                                       uint64_t round, int rank)
{
    for (int i = f->mesh->waiter.spins ? LOOKS_BEFORE_WAIT : 1; i > 0; i--)
        if (atomic_load_explicit(word, memory_order_acquire) >= round)
            return CT_OK;
    return shm_wait_longer(f, word, round, rank);
}

/* This rank has arrived, and a bell_fence() passed: wakes the members that sleep until then. */
void shm_wake_waiting(const struct shm_group *f);
static inline void shm_arrived(const struct shm_group *f)
{
    if (atomic_load_explicit(&f->members[f->rank].awaited_by, memory_order_relaxed))
        shm_wake_waiting(f);
}

#endif
