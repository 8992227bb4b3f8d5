/* SPDX-License-Identifier: Apache-2.0 */
/* group_extension.h - what the layers above give to a group.
 *
 * Making a group takes collectives, and a group's end ends what was begun on it; but collectives
 * and messages of device memory lie above groups.  So the public call that makes a root group
 * (collectives/init.c) hands it this table, and the groups made from it have the same. */
#ifndef RUNTIME_GROUP_GROUP_EXTENSION_H
#define RUNTIME_GROUP_GROUP_EXTENSION_H

#include "runtime/group/group.h"

struct group_extension {
    /* A group begins: the algorithms that its calls may take, as the environment and `wishes`
     * (NULL: nothing) say. */
    ct_status (*open)(ct_group *group, const char *wishes);
    /* It ends: calls that were collected are not made. */
    void (*drop)(ct_group *group);
    /* Its queues have ended. */
    void (*close)(ct_group *group);
    /* Its memory goes; also of one that could not be made. */
    void (*release)(ct_group *group);

    /* Collectives that the library makes for a call that is none itself.  They carry the name and
     * the line of the program's own call, so ctctl and messages show ct_new_group() in the program,
     * not a gather in libct. */

    /* all: [size][count] what each rank gave. */
    ct_status (*gather)(ct_group *group, int operation, const void *mine, void *all, size_t count,
                        ct_dtype dtype, const void *caller);
    /* The largest of what they gave. */
    ct_status (*max)(ct_group *group, int operation, int32_t mine, int32_t *largest,
                     const void *caller);
};

/* init_process_group.c: ct_init_process_group() and ct_create_group() */
ct_status init_process_group(const ct_init_options *options,
                             const struct group_extension *extension);
ct_status create_group(ct_store *store, int rank, int size, const ct_group_options *options,
                       const struct group_extension *extension, ct_group **group);

#endif
