/* SPDX-License-Identifier: Apache-2.0 */
/* choices.h - which algorithms the user wants, for a group and those made from it.
 *
 * A wish names rows of an operation, each for calls of up to so many bytes per rank:
 *
 *     shm_one_shot:32K,shm_two_shot        up to 32 KiB the first, else the second
 *     ring                                 always
 *
 * It comes from CT_<OPERATION>, from ct_group_options.algorithms, or from the file of CT_TUNING. */
#ifndef COLLECTIVES_CHOICES_H
#define COLLECTIVES_CHOICES_H

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/group.h"

#define MOST_WISHES 8 /* of one operation */

struct wish {
    int row;
    size_t upto; /* bytes; SIZE_MAX: of any size */
};

/* Of the ways of a call on device memory: the one to be tried first. */
enum device_wish { WISH_NONE, WISH_FUSED, WISH_NCCL, WISH_STAGED };

struct choices {
    struct wish wishes[OPERATION_COUNT][MOST_WISHES];
    int count[OPERATION_COUNT];
    char source[OPERATION_COUNT][80];            /* who wished it, for messages */
    enum device_wish device;                     /* CT_DEVICE */
    int by_streams;                              /* CT_HANDOVER */
    int explain;                                 /* CT_EXPLAIN: each choice is said once */
    _Atomic uint64_t explained[OPERATION_COUNT]; /* a bit for each power of two of bytes */
};

/* "32K": its bytes; 0: it is none. */
size_t choices_size(const char *text);
/* Adds what `text` wishes of an operation; what it wished before is forgotten. */
ct_status choices_add(struct choices *choices, int operation, const char *text, const char *source);
/* Lines, or parts between ';', of "operation=wish"; '#' begins a comment. */
ct_status choices_add_all(struct choices *choices, const char *text, const char *source);

#endif
