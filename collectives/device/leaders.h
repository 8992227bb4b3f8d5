/* SPDX-License-Identifier: Apache-2.0 */
/* leaders.h - who works for a group's ranks: on each device the lowest rank that has it.
 *
 * With several devices each executor does a part of a call, with all ranks' buffers at hand:
 * nothing of it depends on another's part (copy_plan.c).  That one device reaches another's
 * memory is proved first, and all ranks agree on it. */
#ifndef COLLECTIVES_DEVICE_LEADERS_H
#define COLLECTIVES_DEVICE_LEADERS_H

#include <stddef.h>

#include "include/ct.h"

struct call;
struct plan;

struct executors {
    int count, ranks;        /* so many; of so many ranks */
    int *rank;               /* [count] in the group, ascending */
    int *of;                 /* [size] which of them has that rank's device */
    int *place;              /* [size] how many lower ranks have that rank's device */
    int *has;                /* [count] how many ranks have its device */
    int most;                /* of these the largest number */
    unsigned char (*id)[16]; /* [count] of their devices */
    int mine;                /* which of them this rank is; -1: none */
    enum { NOT_PROVED, REACH, DONT_REACH } proof;
};

/* From the ids of all ranks' devices: id(i, arg).  What was there before (all zero is fine) is
 * freed. */
ct_status executors_find(struct executors *e, int rank, int size,
                         const unsigned char *(*id)(int rank, const void *arg), const void *arg);
void executors_free(struct executors *e); /* all zero is fine */

/* peer_access_test.c: each executor's device reads and writes each other's memory, and finds there
 * what must be.  All ranks call it, once; it sets ->proof, the same on all. */
ct_status executors_prove(struct call *c, struct executors *e);

/* plan_slices.c: which bytes of a part executor `mine` does; all executors together do each byte
 * once.  near: the rank whose device does it best; shared: several may do it. */
struct slice {
    size_t at, bytes;
};
struct slice slice_of(const struct executors *e, int near, int shared, size_t bytes);
/* What is left of the plan is this executor's.  element: bytes of what a fold counts. */
void plan_cut(const struct executors *e, struct plan *plan, size_t element);

#endif
