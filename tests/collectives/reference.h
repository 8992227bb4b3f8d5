/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - what a reduction must give, folded element by element in the written order. */
#ifndef TESTS_COLLECTIVES_REFERENCE_H
#define TESTS_COLLECTIVES_REFERENCE_H

#include <stddef.h>

#include "include/ct.h"

/* Once, before ranks are made: what reading and writing small floats takes too long to do anew. */
void reference_setup(void);

/* dst[i] = op over src[0][i] ... src[p-1][i], of which src[r] was given on host[r]; p is at most
 * REFERENCE_RANKS. */
enum { REFERENCE_RANKS = 64 };
void reference_reduce(ct_dtype dtype, ct_op op, void *dst, const void *const *src, const int *host,
                      int p, size_t count);

/* What premul_sum does to an input first. */
void reference_scale(ct_dtype dtype, void *at, size_t count, const void *scalar);

/* Values of some bits of fraction, whose sums are exact more often than not: the n-th of
 * REFERENCE_VALUES, written to at[i].  No integers, no bool. */
enum { REFERENCE_VALUES = 4001 };
void reference_put(ct_dtype dtype, void *at, size_t i, unsigned re, unsigned im);

/* Same bits; or NaN both, whose bits no order decides. */
int reference_equal(ct_dtype dtype, const void *a, const void *b);

/* Same numbers: 0 has a sign that depends on the order. */
int reference_same_number(ct_dtype dtype, const void *a, const void *b);

/* Gives all NaN the same bits. */
void reference_unify_nan(ct_dtype dtype, void *at, size_t count);

#endif
