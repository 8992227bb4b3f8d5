/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging_internal.h - what device staging is made of, for device_staging.c and
 * device_copy.c. */
#ifndef RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H
#define RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H

#include "runtime/p2p/device_staging.h"

struct trial;

struct device_staging {
    struct device_copy copy; /* first: what messaging knows of it */
    ct_group *group;
    struct place place;
    void *device; /* the caller's buffer */
    void *mark;   /* what comes before that is read or written; NULL: nothing any more */
    size_t bytes;
    void *host;   /* NULL: none yet, it is lent */
    void *copied; /* when an errand's copy is done; NULL: none was begun */
    int is_lent, is_taken;
    struct loan loan;
    struct trial *trial;         /* whether that can be copied; NULL: none goes on */
    struct pinned_block *pinned; /* NULL: it is of malloc() */
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
