/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h - the path "staged": calls on device memory run in host memory, by the algorithms for
 * host memory (staged.c). */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGED_H
#define COLLECTIVES_DEVICE_STAGED_STAGED_H

#include "collectives/device/group/device_group.h"

extern const struct device_path staged_path;

/* How a call is cut into pieces.  This is the same on all ranks.  A piece has the same range of
 * elements of every block. */
struct pieces {
    size_t pieces; /* number of pieces; 1 if the call is not cut */
    size_t count;  /* elements of a block in each piece except the last */
    /* most bytes that a rank sends and receives in a piece; the same on all ranks if ->agreed */
    size_t most;
    int agreed; /* 1 if all ranks have the same counts */
};
struct pieces pieces_of(const struct call *c);
/* Returns the part of block i that is in piece k. */
struct span piece_block(const struct call *c, const struct pieces *p, const struct blocks *b, int i,
                        size_t k);

/* `all` is the largest size, in bytes, of a piece of all blocks of a side together.  `block` is the
 * smallest size of a piece of one block.  Tests set smaller sizes, the same on all ranks. */
struct piece_sizes {
    size_t all, block;
};
extern struct piece_sizes piece_sizes;

#endif
