/* SPDX-License-Identifier: Apache-2.0 */
/* staged_chunks.h - a call through host memory (staged.c), cut into pieces. */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGED_CHUNKS_H
#define COLLECTIVES_DEVICE_STAGED_STAGED_CHUNKS_H

#include "collectives/core/call.h"

/* A piece is the same consecutive elements of every block. */
struct pieces {
    size_t pieces; /* 1: it is the whole, whatever its blocks */
    size_t count;  /* elements of a block in each but the last */
    size_t most;   /* bytes that the blocks of a piece may have on a rank, all that it sends and
                    * receives; the same on all ranks, if */
    int agreed;    /* they all give the same counts */
};

/* The same on all ranks. */
struct pieces pieces_of(const struct call *c);
/* What of block i is in piece k. */
struct span piece_block(const struct call *c, const struct pieces *p, const struct blocks *b, int i,
                        size_t k);
/* Piece k as a call of the host's.  Its blocks are packed, in `send` and `recv`. */
struct call piece_call(const struct call *c, const struct pieces *p, size_t k, char *send,
                       char *recv);

/* How large a piece may be, for all blocks of a side together, and how small its part of a block.
 * Tests make them smaller, on all ranks alike. */
struct piece_sizes {
    size_t all, block;
};
extern struct piece_sizes piece_sizes;

#endif
