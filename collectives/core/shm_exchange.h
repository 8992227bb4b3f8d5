/* SPDX-License-Identifier: Apache-2.0 */
/* shm_exchange.h - what all algorithms over shared slots have in common (*_shm*.c).
 *
 * A buffer goes through the slots a piece at a time: each rank writes its piece into its slot
 * (show), publishes it (arrive), waits for the ranks whose pieces it needs, and reads these pieces
 * (take).  An algorithm fills in show and take.
 *
 * Buffers in memory of ct_mem_alloc() need no slots.  In the first round the ranks publish where
 * such buffers are.  If all buffers that the call needs are mapped, each rank reads and writes them
 * directly, and a last round says that no rank uses another rank's buffer any more.  If only a part
 * is mapped, all ranks start again with slots.  In the common case no buffer is mapped: then the
 * first round has already carried the first piece. */
#ifndef COLLECTIVES_CORE_SHM_EXCHANGE_H
#define COLLECTIVES_CORE_SHM_EXCHANGE_H

#include "collectives/core/sendrecv.h"
#include "runtime/group/shm/direct.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

struct slots {
    size_t bytes; /* of the largest block, which is cut into pieces */
    int shares;   /* how many blocks have a piece in one slot */
    int apart;    /* 1: the root writes each piece into the slot of the rank that gets it */
    enum { ALL_WAIT, ROOT_WAITS, OTHERS_WAIT } waiters;
    void (*show)(struct call *c, size_t at, size_t n); /* writes into shm_group_own() */
    ct_status (*take)(struct call *c, size_t at, size_t n);
    ct_status (*direct)(
        struct call *c); /* copies between the ranks' buffers; NULL: always through slots */
    /* How many blocks of another rank's send buffer (the root's in OTHERS_WAIT) and recv buffer
     * direct() reads or writes; 0: none. */
    int sends, recvs;
    int in_place_is_shown; /* in place, others can't read a rank's send buffer directly */
    int two_rounds;        /* take() does another round, and reads the slots again */
};

ct_status slots_run(struct call *c, const struct slots *s);

/* A call that moves this many bytes leaves nothing of its result in a cache.  Measured with 2
 * ranks: past the caches, copies are 1.3 to 1.5 times faster, folds out of place up to 1.2 times;
 * folds in place are half as fast. */
#define STREAMING_BYTES ((size_t)32 << 20)

/* Copies into a result.  in_all: bytes that the call moves on this host. */
void copy_result(void *to, const void *from, size_t bytes, size_t in_all);

/* Gives the bytes of `total` from `at` on, at most `most`. */
static inline size_t piece_of(size_t total, size_t at, size_t most)
{
    return at >= total ? 0 : total - at < most ? total - at : most;
}

static inline size_t largest_block(const struct call *c, const struct blocks *b)
{
    size_t most = 0;

    for (int i = 0; i < b->blocks; i++)
        if (block_at(c, b, i).bytes > most)
            most = block_at(c, b, i).bytes;
    return most;
}

/* Part i of `bytes`, cut for all ranks.  It begins at a cache line if the whole does, so that no
 * two ranks write to one line. */
struct part {
    size_t at, bytes;
};

static inline struct part line_part(const struct call *c, size_t bytes, int i)
{
    const size_t p = (size_t)c->group->size;
    const size_t share = ((bytes + p - 1) / p + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
    const size_t at = (size_t)i * share < bytes ? (size_t)i * share : bytes;

    return (struct part){ at, piece_of(bytes, at, share) };
}

#endif
