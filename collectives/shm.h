/* SPDX-License-Identifier: Apache-2.0 */
/* shm.h - cutting buffers into what fits a slot; for the *_shm.c algorithms. */
#ifndef COLLECTIVES_SHM_H
#define COLLECTIVES_SHM_H

#include "collectives/exchange.h"
#include "runtime/flat.h"

/* Bytes of `total` from `at` on, at most `most`. */
static inline size_t piece_of(size_t total, size_t at, size_t most)
{
    return at >= total ? 0 : total - at < most ? total - at : most;
}

/* A slot's share for one of p blocks: whole elements of every dtype. */
static inline size_t share_of_slot(const struct call *c)
{
    return FLAT_SLOT_BYTES / (size_t)c->group->size / 64 * 64;
}

static inline size_t largest_block(const struct call *c, const struct blocks *b)
{
    size_t most = 0;

    for (int i = 0; i < b->blocks; i++)
        if (block_at(c, b, i).bytes > most)
            most = block_at(c, b, i).bytes;
    return most;
}

#endif
