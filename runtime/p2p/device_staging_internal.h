/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging_internal.h - shared by device_staging.c and device_copy.c. */
#ifndef RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H
#define RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H

#include "runtime/p2p/device_staging.h"

struct access_check;

struct device_staging {
    struct device_copy copy; /* first: what messaging knows of it */
    ct_group *group;
    struct place place;
    void *device; /* the caller's buffer */
    void *mark;   /* the buffer is used when the device has passed it; NULL: at once */
    size_t bytes;
    void *host;   /* NULL: none yet, the message stays in device memory */
    void *copied; /* the mark behind the pending copy; NULL: none was begun */
    int has_device_rts, has_arrived;
    struct device_rts rts;
    struct access_check *trial;         /* the peer-access check that goes on; NULL: none does */
    struct pinned_block *pinned; /* of `host`; NULL: that is of malloc() */
};

static inline struct device_staging *device_staging_of(struct device_copy *copy)
{
    return (struct device_staging *)copy;
}

/* device_staging.c */
void staging_forget_mark(struct device_staging *staging); /* none is fine */
ct_status staging_find_host_memory(struct device_staging *staging);
void staging_free(struct device_staging *staging);

/* device_copy.c */
extern const struct device_copy_ops staging_copy_ops;

#endif
