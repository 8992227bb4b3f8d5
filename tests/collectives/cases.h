/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - one call, as all ranks of its group know it.
 *
 * A case says which operation with which arguments.  Everything else follows from its seed,
 * on every rank alike: what each rank gives, how many elements each block has, where the blocks lie
 * in memory. */
#ifndef TESTS_COLLECTIVES_CASES_H
#define TESTS_COLLECTIVES_CASES_H

#include "tests/harness.h"

enum kind {
    BROADCAST,
    REDUCE,
    ALL_REDUCE,
    REDUCE_SCATTER,
    GATHER,
    ALL_GATHER,
    SCATTER,
    ALL_TO_ALL,
    BARRIER,
    SHIFT,       /* each rank sends to one on its right and receives from one on its left */
    MANY_TO_ONE, /* all send to the root, which takes them as they come */
    KINDS
};

enum form { PLAIN, V, LIST };

#define PREMUL_SUM 8 /* as an op: each rank has a scalar of its own */

struct pick {
    uint64_t seed;
    int number; /* of the case in its batch; the tag of its messages */
    int group;  /* which of the batch's */
    enum kind kind;
    enum form form;
    ct_dtype dtype;
    ct_op op;
    unsigned row; /* of the algorithms that fit, 0: as the library chooses */
    int root;     /* of a group of any size: modulo that */
    int in_place, asynchronous;
    int reach; /* the ranks whose buffers the others map: 0 none, 1 all, 2 some */
    int wild;  /* any bits, NaN and infinities too */
    int rough; /* f32 and f64 of a whole mantissa, whose sums depend on the order */
    int fast;  /* floats are folded in whatever order: CT_ORDER=fast */
    int exact; /* floats of -1, 0 and 1, which in any order fold to the same number */
    size_t count;
};

/* One side of a call on one rank, in bytes from the start of its memory. */
struct side {
    int blocks; /* 0: nothing belongs there, yet a pointer may be given */
    size_t count[MAX_RANKS], displs[MAX_RANKS], at[MAX_RANKS];
    size_t start, bytes;
};

uint64_t mix(uint64_t a, uint64_t b);
uint64_t next_of(uint64_t *seed);

struct pick draw_case(uint64_t seed, int number, int p);

int case_root(const struct pick *c, int p);
int has_op(enum kind kind);
int has_root(enum kind kind);
int has_form(enum kind kind, enum form form);
/* OPERATION_... of the library; -1: of messages */
int case_operation(const struct pick *c);

/* Of the block that goes from one rank to another. */
size_t case_count(const struct pick *c, int from, int to);

/* Where the blocks lie that rank me gives, or receives. */
struct side case_send(const struct pick *c, int p, int me);
struct side case_recv(const struct pick *c, int p, int me);

void case_fill(const struct pick *c, int from, int to, void *at, size_t count);
void case_scalar(const struct pick *c, int rank, void *scalar);

void case_describe(const struct pick *c, int p, char *text, size_t size);

#endif
