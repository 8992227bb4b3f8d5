/* SPDX-License-Identifier: Apache-2.0 */
/* shm_exchange.h - what all algorithms over shared slots have in common (*_shm*.c).
 *
 * A buffer goes through the slots a piece at a time: each rank shows its piece, arrives, waits for
 * those whose piece it needs, and takes theirs.  An algorithm is these verbs.
 *
 * Where the buffers lie in memory of ct_mem_alloc() nothing need be shown: ranks say in the first
 * round where theirs are.  If all that matter can be reached the call is done directly, with a
 * round at the end that says that nobody is at another's buffer any more.  If some can be reached
 * and some not, all start over with slots; if none, which is the common case, the first round was
 * not in vain. */
#ifndef COLLECTIVES_CORE_SHM_EXCHANGE_H
#define COLLECTIVES_CORE_SHM_EXCHANGE_H

#include "collectives/core/sendrecv.h"
#include "runtime/group/shm_group.h"

struct slots {
    size_t bytes; /* of the largest block; what is cut into pieces */
    int shares;   /* blocks that a slot holds a piece of */
    int apart;    /* it need not: the root's pieces lie in the slots of those they are for */
    enum { ALL_WAIT, ROOT_WAITS, OTHERS_WAIT } who;
    void (*show)(struct call *c, size_t at, size_t n); /* into flat_own() */
    ct_status (*take)(struct call *c, size_t at, size_t n);
    /* NULL: always through the slots.  Blocks in what each rank sends, or the root if only others
     * wait, and in what each receives; 0: it does not matter where that lies. */
    ct_status (*direct)(struct call *c); /* only what lies between the two rounds */
    int sends, recvs;
    int in_place_is_shown; /* a rank that receives where it sends can't be read there */
    int two_rounds;        /* take() has one of its own, and reads the slots again */
};

ct_status slots_run(struct call *c, const struct slots *s);

/* Of a call that moves so many bytes in all nobody will find the result in a cache.  Measured with
 * 2 ranks: copies are 1.3 to 1.5 times faster past the caches, folds out of place up to 1.2; in
 * place half as fast. */
#define STREAMING_BYTES ((size_t)32 << 20)

/* memcpy into a result, of a call that moves so many bytes in all on this host. */
void copy_result(void *to, const void *from, size_t bytes, size_t in_all);

/* Bytes of `total` from `at` on, at most `most`. */
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

/* Part i of p of `count` elements: begins at a line of the cache, if the whole does, so that no two
 * ranks write to one. */
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
