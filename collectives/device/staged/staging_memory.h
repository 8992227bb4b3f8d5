/* SPDX-License-Identifier: Apache-2.0 */
/* staging_memory.h - host memory that calls on device memory go through (staged.c). */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H
#define COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H

#include "collectives/core/call.h"

struct host_memory {
    char *data; /* NULL: none */
    size_t bytes;
    int shared;          /* the other ranks have theirs before and behind it */
    struct place pinned; /* by which device; NULLs: by none */
};

/* Its pages are there.  shared: the other ranks of this host reach it too, as they do memory of
 * ct_mem_alloc(); then all ranks make this call, with the same number of bytes. */
ct_status host_memory_make(struct call *c, struct host_memory *memory, size_t bytes, int shared);
/* From here on the device's copies need no second one.  Nothing where it is so already, or can't be
 * now; where the driver never lets it *cant is set, and said. */
void host_memory_pin(struct call *c, struct host_memory *memory, int *cant);
/* Also one without data.  CT_ERR_UNSUPPORTED, unless it may wait: not now, it stays. */
ct_status host_memory_drop(ct_group *group, struct host_memory *memory, int may_wait);
/* Somebody may look at it as long as the process lives. */
void host_memory_leave(ct_group *group, const struct host_memory *memory);

#endif
