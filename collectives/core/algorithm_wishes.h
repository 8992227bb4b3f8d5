/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_wishes.h - which algorithms the user wants, for a group and those made from it.
 *
 * A wish names rows of an operation, each for calls of up to so many bytes per rank, and paths of a
 * call on device memory, of which then one is tried first:
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

#include "collectives/core/call.h"

#define MOST_WISHES 8 /* of one operation */

struct wish {
    enum path_number path; /* of device memory; PATH_NONE: it is a row */
    int row;
    size_t upto; /* bytes; SIZE_MAX: of any size */
};

struct choices {
    struct wish wishes[OPERATION_COUNT][MOST_WISHES];
    int count[OPERATION_COUNT];
    char source[OPERATION_COUNT][80]; /* who wished it, for messages */
    enum path_number override;        /* CT_DEVICE */
    unsigned overrides;               /* a bit for each path that some operation's wish names */
    int by_streams;                   /* CT_HANDOVER */
    int explain;                      /* CT_EXPLAIN: each choice is said once */
    _Atomic uint64_t
        explained[2][OPERATION_COUNT]; /* [device memory] a bit for each power of two of bytes */
};

/* Into group->choices: what the environment wishes, and for this group alone what `wishes` (may be
 * NULL) says. */
ct_status choices_open(ct_group *group, const char *wishes);

/* PATH_NONE: it is the name of none. */
enum path_number path_named(const char *name);

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
