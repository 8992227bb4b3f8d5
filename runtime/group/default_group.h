/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_GROUP_DEFAULT_GROUP_H
#define RUNTIME_GROUP_DEFAULT_GROUP_H

#include "include/ct.h"

ct_group *default_group(void); /* NULL before init; init_process_group.c */
/* In a child of fork(): the group is its parent's, and this process may init a world of its own. */
void default_group_forget(void);

#endif
