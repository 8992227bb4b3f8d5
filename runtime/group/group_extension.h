/* SPDX-License-Identifier: Apache-2.0 */
/* group_extension.h - the functions of higher layers that a group calls.
 *
 * Creating a group needs collectives, and destroying a group ends the calls that were begun on the
 * group.  But collectives and messages of device memory are layers above groups.  So the public
 * calls that create a root group (collectives/init.c) pass this table.  Groups created from the
 * root use the same table. */
#ifndef RUNTIME_GROUP_GROUP_EXTENSION_H
#define RUNTIME_GROUP_GROUP_EXTENSION_H

#include "runtime/group/group.h"

struct group_extension {
    /* Starts the backend's library, MPI, and returns the rank and size that the library reports.
     * Both must be equal to the job's.  Called before all else in an init.  NULL if the backend has
     * no library. */
    ct_status (*start)(int *rank, int *size);
    /* Chooses the algorithms that the group's calls may use, from the environment and `overrides`,
     * which may be NULL.  Called when a group is created. */
    ct_status (*open)(ct_group *group, const char *overrides);
    /* Drops the calls that were collected since ct_coalesce_begin() and have not started.  Called
     * before all else when a group is destroyed. */
    void (*drop)(ct_group *group);
    /* Ends the group's use of devices.  Called when the group's queues have ended. */
    void (*close)(ct_group *group);
    /* Frees what the higher layers allocated for the group.  Also called if creation failed. */
    void (*release)(ct_group *group);

    /* Collectives that libct runs inside of other public calls.  `operation` and `caller`, the
     * return address, are those of the program's call.  So ctctl and error messages show
     * ct_new_group() in the program, not a gather in libct. */

    /* Gathers `count` elements `mine` of each rank in `all`, which has [size][count] elements. */
    ct_status (*gather)(ct_group *group, int operation, const void *mine, void *all, size_t count,
                        ct_dtype dtype, const void *caller);
    /* Sets *largest to the largest value `mine` of all ranks. */
    ct_status (*max)(ct_group *group, int operation, int32_t mine, int32_t *largest,
                     const void *caller);
};

/* ct_init_process_group() and ct_create_group() call these functions with the extension of the
 * chosen backend. */
ct_status init_process_group(const ct_init_options *options,
                             const struct group_extension *extension);
ct_status create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                       const struct group_extension *extension, ct_group **group);

#endif
