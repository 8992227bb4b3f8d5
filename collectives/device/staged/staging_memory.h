/* SPDX-License-Identifier: Apache-2.0 */
/* staging_memory.h - allocates the host memory to which device memory is copied (staged.c). */
#ifndef COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H
#define COLLECTIVES_DEVICE_STAGED_STAGING_MEMORY_H

#include "collectives/core/call.h"

struct host_memory {
    char *data; /* NULL if not allocated */
    size_t bytes;
    int shared;          /* 1 if the other ranks' parts are mapped before and behind `data` */
    struct place pinned; /* the device for which the memory is pinned; zeros if not pinned */
};

/* Allocates the memory with all its pages.  If `shared` is 1, the other ranks of this host map the
 * memory too, like memory of ct_mem_alloc().  Then all ranks must call this function with the same
 * number of bytes. */
ct_status host_memory_make(struct call *c, struct host_memory *memory, size_t bytes, int shared);
/* Pins the memory for the call's device.  Does nothing if it is pinned already or can't be pinned
 * now.  If the driver will never pin it, sets *cant to 1 and logs the reason. */
void host_memory_pin(struct call *c, struct host_memory *memory, int *cant);
/* Frees the memory.  Does nothing if data is NULL.  Returns CT_ERR_UNSUPPORTED if the driver can't
 * unpin the memory now; then the memory is not freed.  With may_wait this never happens. */
ct_status host_memory_drop(ct_group *group, struct host_memory *memory, int may_wait);
/* Leaves the memory mapped until the process ends, since a device or another rank may still read
 * it. */
void host_memory_leave(ct_group *group, const struct host_memory *memory);

#endif
