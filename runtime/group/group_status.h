/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_GROUP_GROUP_STATUS_H
#define RUNTIME_GROUP_GROUP_STATUS_H

#include "runtime/group/group.h"

/* Where the members are that have not begun call `seq`, as their control pages say: "; rank 2 is in
 * no call since barrier #11", for the end of a sentence.  "" when nothing can be seen from here. */
const char *where_are_missing(const ct_group *group, uint64_t seq, char *text, size_t size);

/* Has a member begun call `seq`, as its control page says?  0 where that can't be seen. */
int has_begun(const ct_group *group, int member, uint64_t seq);

/* The same of one member, in whatever call it is or was last. */
const char *where_is(const ct_group *group, int member, char *text, size_t size);

#endif
