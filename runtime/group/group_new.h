/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_GROUP_GROUP_NEW_H
#define RUNTIME_GROUP_GROUP_NEW_H

#include "runtime/group/group.h"

/* Who shall be in a group; made by group_new.c, carried out by group.c. */
struct group_plan {
    const int *ranks; /* in the mesh */
    int size;
    uint64_t id;
    uint64_t born_in;   /* the call of the parent by which all agreed on it; 0: there was none */
    struct limit limit; /* of each call */
    const char *name;
    const char *algorithms; /* the user's wishes; NULL: the root's */
};

ct_status group_options_check(const ct_group_options *options);
ct_status group_create(ct_group *parent, const struct group_plan *plan, ct_group **group);

#endif
