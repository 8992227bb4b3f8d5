/* SPDX-License-Identifier: Apache-2.0 */
/* device_staging_internal.h - what a crossing is made of, for device_staging.c and device_copy.c.
 */
#ifndef RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H
#define RUNTIME_P2P_DEVICE_STAGING_INTERNAL_H

#include "runtime/p2p/device_staging.h"

struct trial;

struct crossing {
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

void crossing_forget_mark(struct crossing *crossing); /* none is fine */
ct_status crossing_find_host_memory(struct crossing *crossing);

#endif
