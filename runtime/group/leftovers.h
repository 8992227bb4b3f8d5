/* SPDX-License-Identifier: Apache-2.0 */
/* leftovers.h - reports what a program has left undone when it ends with code 0: asynchronous calls
 * without ct_wait(), and a default group without ct_destroy_process_group(). */
#ifndef RUNTIME_GROUP_LEFTOVERS_H
#define RUNTIME_GROUP_LEFTOVERS_H

#include "runtime/group/group.h"

/* Called when the default group was created. */
void leftovers_begin(const ct_group *world, int local_rank);
/* Called before the default group is destroyed. */
void leftovers_end(const ct_group *world);
/* Makes a child of fork() report nothing, since the calls and the group are its parent's. */
void leftovers_forget(void);

/* Counts a work whose group ends before the program has waited for it. */
void leftovers_add(const struct group_work *work);

#endif
