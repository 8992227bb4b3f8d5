/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.h - what a program that ends with code 0 left undone: asynchronous calls without a
 * ct_wait(), a default group without ct_destroy_process_group(). */
#ifndef RUNTIME_GROUP_LEFTOVERS_H
#define RUNTIME_GROUP_LEFTOVERS_H

#include "runtime/group/group.h"

/* The default group was made, or is about to be destroyed. */
void leftovers_begin(const ct_group *world, int local_rank);
void leftovers_end(const ct_group *world);
/* A child of fork() leaves nothing: what was begun is its parent's. */
void leftovers_forget(void);

/* The program did not wait for that work, and its group ends. */
void leftovers_add(const struct group_work *work);

#endif
