/* SPDX-License-Identifier: Apache-2.0 */
/* group_extension.h - what the layers above add to a group.
 *
 * Making a group takes collectives, and destroying it ends the calls that were begun on it.  But
 * collectives and messages of device memory lie above groups.  So the public call that makes a
 * root group (collectives/init.c) passes this table, and groups made from that one have the
 * same. */
#ifndef RUNTIME_GROUP_GROUP_EXTENSION_H
#define RUNTIME_GROUP_GROUP_EXTENSION_H

#include "runtime/group/group.h"

struct group_extension {
    /* Called first by an init: starts what the backend is built on (MPI) and sets this rank's
     * number and the number of ranks there, which must be those of the job.  NULL: nothing is
     * started. */
    ct_status (*start)(int *rank, int *size);
    /* Called when a group is made: determines the algorithms that its calls may take, by the
     * environment and by `overrides` (NULL: nothing). */
    ct_status (*open)(ct_group *group, const char *overrides);
    /* Called first when the group is destroyed: calls that were collected are not made. */
    void (*drop)(ct_group *group);
    /* Called after the end of its queues. */
    void (*close)(ct_group *group);
    /* Frees its memory; also for a group that could not be made. */
    void (*release)(ct_group *group);

    /* Collectives that the library makes inside of calls that are none.  They carry the
     * operation and the return address of the program's call, so ctctl and messages show
     * ct_new_group() in the program, not a gather in libct. */

    /* all: [size][count], what each rank passed as `mine`. */
    ct_status (*gather)(ct_group *group, int operation, const void *mine, void *all, size_t count,
                        ct_dtype dtype, const void *caller);
    /* The largest of all ranks' values. */
    ct_status (*max)(ct_group *group, int operation, int32_t mine, int32_t *largest,
                     const void *caller);
};

/* init_process_group.c: ct_init_process_group() and ct_create_group() */
ct_status init_process_group(const ct_init_options *options,
                             const struct group_extension *extension);
ct_status create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                       const struct group_extension *extension, ct_group **group);

#endif
