/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_wishes.h - which algorithms the user wants, for a group and those made from it.
 *
 * A wish names rows of an operation, each for calls of up to so many bytes per rank, and ways of a
 * call on device memory, which then is tried first:
 *
 *     shm_one_shot:32K,shm_two_shot        up to 32 KiB the first, else the second
 *     ring                                 always
 *     fused:1M,nccl,ring                   on device memory one of the first two; else the third
 *
 * It comes from CT_<OPERATION>, from ct_group_options.algorithms, or from the file of CT_TUNING. */
#ifndef COLLECTIVES_CORE_ALGORITHM_WISHES_H
#define COLLECTIVES_CORE_ALGORITHM_WISHES_H

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/group/group.h"

struct call;

#define MOST_WISHES 8 /* of one operation */

/* Of the ways of a call on device memory: the one to be tried first. */
enum device_wish { WISH_NONE, WISH_FUSED, WISH_NCCL, WISH_STAGED };

struct wish {
    enum device_wish way; /* WISH_NONE: it is a row */
    int row;
    size_t upto; /* bytes; SIZE_MAX: of any size */
};

struct choices {
    struct wish wishes[OPERATION_COUNT][MOST_WISHES];
    int count[OPERATION_COUNT];
    char source[OPERATION_COUNT][80]; /* who wished it, for messages */
    enum device_wish device;          /* CT_DEVICE */
    int may_wish_nccl;                /* of some operation */
    int by_streams;                   /* CT_HANDOVER */
    int explain;                      /* CT_EXPLAIN: each choice is said once */
    _Atomic uint64_t
        explained[2][OPERATION_COUNT]; /* [device memory] a bit for each power of two of bytes */
};

/* Into group->choices: what the environment wishes, and for this group alone what `wishes` (may be
 * NULL) says. */
ct_status choices_open(ct_group *group, const char *wishes);

/* WISH_NONE: it is the name of none. */
enum device_wish way_named(const char *name);
const char *way_name(enum device_wish way);

/* The beginning of a line that says what was chosen; 0: not on this rank, or it was said. */
size_t choices_begin_line(const struct call *c, int on_device, char *line, size_t size);
void choices_end_line(char *line, size_t used, size_t size);

/* "32K": its bytes; 0: it is none. */
size_t choices_size(const char *text);
/* Adds what `text` wishes of an operation; what it wished before is forgotten. */
ct_status choices_add(struct choices *choices, int operation, const char *text, const char *source);
/* Lines, or parts between ';', of "operation=wish"; '#' begins a comment. */
ct_status choices_add_all(struct choices *choices, const char *text, const char *source);

#endif
