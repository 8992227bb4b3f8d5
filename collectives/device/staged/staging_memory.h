/* SPDX-License-Identifier: Apache-2.0 */
/* staging_memory.h - host memory that calls on device memory go through (staged.c). */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H
#define COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H

#include "collectives/core/call.h"

struct host_memory {
    char *data; /* NULL: none */
    size_t bytes;
    int shared;          /* the parts of the other ranks lie before and behind it */
    struct place pinned; /* the device that pinned it; NULLs: none did */
};

/* Allocates it, with all pages.  shared: the other ranks of this host map it too, as they do memory
 * of ct_mem_alloc(); then all ranks make this call, with the same number of bytes. */
ct_status host_memory_make(struct call *c, struct host_memory *memory, size_t bytes, int shared);
/* Pins it for the call's device, unless it is pinned or can't be now.  If the driver refuses for
 * good, sets *cant and logs why. */
void host_memory_pin(struct call *c, struct host_memory *memory, int *cant);
/* Frees it; also memory without data.  CT_ERR_UNSUPPORTED, never if it may wait: the driver can't
 * unpin it now, so it stays. */
ct_status host_memory_drop(ct_group *group, struct host_memory *memory, int may_wait);
/* Leaves it mapped for as long as the process lives: a device or another rank may still read it. */
void host_memory_leave(ct_group *group, const struct host_memory *memory);

#endif
