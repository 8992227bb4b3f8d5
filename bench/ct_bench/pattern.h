/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - what each rank gives, and so what each must get, bit for bit; and the dtypes and ops
 * by name.
 *
 * The values of a rank are small whole numbers that repeat after a prime number of elements, so
 * that no block, piece or slot of an algorithm begins where the pattern does: data in the
 * wrong place is as wrong as data of the wrong rank.  They are chosen such that the result of
 * the operation is an element of the dtype and no step towards it rounds, in whatever
 * order it is taken.  Each round has other values: what an earlier call left is wrong. */
#ifndef CT_BENCH_PATTERN_H
#define CT_BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "include/ct.h"

/* ---- Elements -------------------------------------------------------------------- */

/* By the name on the command line; -1: no such name. */
int dtype_named(const char *name);
int op_named(const char *name);

const char *name_of_dtype(ct_dtype dtype);
const char *name_of_op(ct_op op);

/* "i8 u8 ...": all of them, for a sentence. */
void dtype_names(char *text, size_t room);
void op_names(char *text, size_t room);

/* Every whole number from 0 to this one is an element of the dtype; at most 2048, so that sums
 * over thousands of ranks are exact where the library accumulates in f32. */
int64_t element_most(ct_dtype dtype);

int element_is_whole(ct_dtype dtype); /* an integer or bool: results are cut, not rounded */

/* A value of 0 ... element_most(), or a power of two up to 32; imaginary is for the complex. */
void element_write(ct_dtype dtype, void *at, int64_t value, int64_t imaginary);

/* ---- Patterns -------------------------------------------------------------------- */

#define PERIOD 4093 /* elements */
#define MOVED (-1)  /* as op: the values are only passed on */
#define FOLDED (-1) /* as source: op over the values of all ranks */

struct inputs {
    ct_dtype dtype;
    ct_op op; /* or MOVED */
    int ranks;
    uint32_t round;
};

/* Large: not for the stack of a thread. */
struct pattern {
    size_t element; /* bytes */
    _Alignas(16) unsigned char bytes[PERIOD * 16];
};

/* What rank `source` gives, or FOLDED. */
void pattern_make(struct pattern *pattern, const struct inputs *inputs, int source);

/* Elements [start, start + count) of the endless pattern. */
void pattern_fill(const struct pattern *pattern, size_t start, void *buf, size_t count);

/* How many of the elements are not those. */
size_t pattern_wrong(const struct pattern *pattern, size_t start, const void *buf, size_t count);

#endif
