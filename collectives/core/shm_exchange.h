/* SPDX-License-Identifier: Apache-2.0 */
/* shm_exchange.h - the common code of all algorithms over shared-memory slots (*_shm*.c).
 *
 * A buffer is sent through the slots in pieces.  For each piece, a rank writes its piece into its
 * slot (show), publishes the slot (arrive), waits for the ranks whose pieces it needs, and reads
 * these pieces (take).  An algorithm sets show and take.
 *
 * Buffers in memory of ct_mem_alloc() need no slots.  In the first round the ranks publish where
 * such buffers are.  If all buffers that the call needs are mapped, each rank reads and writes them
 * directly, and a last round ends the use of other ranks' buffers.  If only some buffers are
 * mapped, all ranks start again with slots.  If no buffer is mapped, which is the common case, the
 * first round has already transferred the first piece. */
#ifndef COLLECTIVES_CORE_SHM_EXCHANGE_H
#define COLLECTIVES_CORE_SHM_EXCHANGE_H

#include "collectives/core/sendrecv.h"
#include "runtime/group/shm/direct.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

struct slots {
    size_t bytes; /* bytes of the largest block, which is cut into pieces */
    int shares;   /* number of blocks that have a piece in one slot */
    int apart;    /* 1 if the root writes each piece into the slot of the rank that reads it */
    enum { ALL_WAIT, ROOT_WAITS, OTHERS_WAIT } waiters;
    void (*show)(struct call *c, size_t at, size_t n); /* writes a piece into shm_group_own() */
    ct_status (*take)(struct call *c, size_t at, size_t n);
    ct_status (*direct)(
        struct call *c); /* copies between the ranks' buffers; NULL if the call always uses slots */
    /* The number of blocks of another rank's send buffer and recv buffer that direct() reads or
     * writes; 0 for none.  In OTHERS_WAIT the send buffer is that of the root. */
    int sends, recvs;
    int in_place_is_shown; /* 1 if other ranks can't read an in-place send buffer directly */
    int two_rounds;        /* 1 if take() does another round, and reads the slots again */
};

ct_status slots_run(struct call *c, const struct slots *s);

/* A call that moves this many bytes leaves no part of its result in a cache.  Measured with 2
 * ranks: copies that bypass the caches are 1.3 to 1.5 times faster, folds out of place up to 1.2
 * times.  Folds in place that bypass the caches are half as fast. */
#define STREAMING_BYTES ((size_t)32 << 20)

/* Copies `bytes` into a result. in_all is the number of bytes that the call moves on this host. */
void copy_result(void *to, const void *from, size_t bytes, size_t in_all);

/* Returns the bytes of the piece that starts at `at` in a buffer of `total` bytes.  A piece has at
 * most `most` bytes. */
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

/* A rank's part of a buffer. line_part() returns the part of rank i.  A part begins at a cache line
 * if the buffer does, so that no two ranks write to the same line. */
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
