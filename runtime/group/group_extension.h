/* SPDX-License-Identifier: Apache-2.0 */
/* group_extension.h - functions of the layers above that a group needs.
 *
 * Making a group needs collectives, and destroying it ends the calls that were begun on it.  But
 * collectives and messages of device memory lie above groups.  So the public call that makes a root
 * group (collectives/init.c) passes this table, and groups made from the root have the same
 * table. */
#ifndef RUNTIME_GROUP_GROUP_EXTENSION_H
#define RUNTIME_GROUP_GROUP_EXTENSION_H

#include "runtime/group/group.h"

struct group_extension {
    /* Called first by an init: starts the library of the backend (MPI) and gives its rank and size,
     * which must be the job's.  NULL: nothing to start. */
    ct_status (*start)(int *rank, int *size);
    /* Called when a group is made: chooses, by the environment and `overrides` (or NULL), the
     * algorithms that its calls may take. */
    ct_status (*open)(ct_group *group, const char *overrides);
    /* Called first when the group is destroyed: drops calls that were collected but not made. */
    void (*drop)(ct_group *group);
    /* Called after the end of its queues. */
    void (*close)(ct_group *group);
    /* Frees the layers' memory, also for a group that could not be made. */
    void (*release)(ct_group *group);

    /* Collectives that the library makes inside of other public calls.  They carry the operation
     * and the return address of the program's call, so ctctl and messages show ct_new_group() in
     * the program, not a gather in libct. */

    /* Gathers each rank's `mine` in all: [size][count]. */
    ct_status (*gather)(ct_group *group, int operation, const void *mine, void *all, size_t count,
                        ct_dtype dtype, const void *caller);
    /* Gives the largest of all ranks' values. */
    ct_status (*max)(ct_group *group, int operation, int32_t mine, int32_t *largest,
                     const void *caller);
};

/* init_process_group.c: ct_init_process_group() and ct_create_group() */
ct_status init_process_group(const ct_init_options *options,
                             const struct group_extension *extension);
ct_status create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                       const struct group_extension *extension, ct_group **group);

#endif
