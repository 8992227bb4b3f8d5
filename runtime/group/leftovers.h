/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.h - reports what a program that ends with code 0 left undone: asynchronous calls
 * without ct_wait(), and a default group without ct_destroy_process_group(). */
#ifndef RUNTIME_GROUP_LEFTOVERS_H
#define RUNTIME_GROUP_LEFTOVERS_H

#include "runtime/group/group.h"

/* Call these after the default group was made, and before it is destroyed. */
void leftovers_begin(const ct_group *world, int local_rank);
void leftovers_end(const ct_group *world);
/* For a child of fork(), which leaves nothing undone: calls and group are its parent's. */
void leftovers_forget(void);

/* Counts a work whose group ends before the program has waited for it. */
void leftovers_add(const struct group_work *work);

#endif
