/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - a collective of any kind as data, so that a test can make the same one twice: on host
 * memory and on a GPU's. */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H

#include "include/ct.h"

enum kind {
    BROADCAST,
    REDUCE,
    ALL_REDUCE,
    ALL_GATHER, /* this and what follows: blocks */
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    CALL_KINDS
};

struct pick {
    enum kind kind;
    int root, in_place;
    int is_list; /* of blocks that lie in another order */
    ct_dtype dtype;
    ct_op op;
    size_t n; /* elements, or of each block */
};

int folds_in(enum kind kind);
int has_root(enum kind kind);
/* In place one of the two serves for both, as ct.h has it. */
ct_status make(ct_group *group, const struct pick *pick, char *send, char *recv);

#endif
