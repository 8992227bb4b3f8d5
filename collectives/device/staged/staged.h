/* SPDX-License-Identifier: Apache-2.0 */
/* staged.h - the path "staged": calls go through host memory, by its algorithms (staged.c). */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGED_H
#define COLLECTIVES_DEVICE_STAGED_STAGED_H

#include "collectives/device/group/device_group.h"

extern const struct device_path staged_path;

/* How a call is cut; the same on all ranks.  A piece has the same consecutive elements of every
 * block. */
struct pieces {
    size_t pieces; /* 1: the whole call, whatever its blocks */
    size_t count;  /* elements of a block in each piece except the last */
    size_t most;   /* most bytes that a rank sends and receives in a piece; the same on all ranks if
                      ->agreed */
    int agreed;    /* all ranks have the same counts */
};
struct pieces pieces_of(const struct call *c);
/* Gives the part of block i that is in piece k. */
struct span piece_block(const struct call *c, const struct pieces *p, const struct blocks *b, int i,
                        size_t k);

/* all: how large a piece may be, for all blocks of a side together.  block: how small its part of a
 * block may be.  Tests make both smaller, on all ranks alike. */
struct piece_sizes {
    size_t all, block;
};
extern struct piece_sizes piece_sizes;

#endif
