/* SPDX-License-Identifier: Apache-2.0 */
/* shared_region.h - registered regions: memory of ct_mem_alloc(), in which one rank of a host reads
 * and writes another one's buffer.
 *
 * A region has a part for each member of the group on this host, one behind the other, in the
 * file that the ranks of the host share; each member maps all of it.  A place in it is an offset
 * in that file, which means the same to all ranks.  The file is sparse and as long as a file can
 * be, so an offset is never given twice and the file never has to grow. */
#ifndef RUNTIME_SHM_SHARED_REGION_H
#define RUNTIME_SHM_SHARED_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

struct node;

/* All members must pass the same values, but for `own`. */
struct region_plan {
    uint64_t offset;   /* in the file; 0: each member has private memory, and nothing is shared */
    size_t bytes;      /* of one part */
    const int *locals; /* [parts] the owner of each: its rank on the host */
    int parts, own;    /* number of our part */
    uint64_t group;    /* the id of the group */
    int our_own; /* memory of libct itself: no rank reads it once a call of its group has failed */
};

/* Size of a part in whole pages; 0: more than there can be. */
size_t region_part(size_t bytes);
/* An offset at which so many bytes were never given away; 0: nothing is shared, or the file is
 * full. */
uint64_t region_reserve(struct node *node, size_t bytes);
/* *own: the own part, whose pages are allocated and full of zeros. */
ct_status region_map(struct node *node, const struct region_plan *plan, void **own);
/* 1: `own` is the own part of a region, and *group and *offset are its.  0: it is not. */
int region_of(struct node *node, const void *own, uint64_t *group, uint64_t *offset);
/* Gives the pages of the own part back to the system; the other ranks can't reach them any more. */
void region_unmap(struct node *node, void *own);
/* Removes the region from the list; its memory stays mapped until the process ends. */
void region_leave(struct node *node, const void *own);
void regions_free(struct node *node); /* unmaps all regions */

/* The next two are called between regions_look() and regions_looked().  regions_look() returns 0
 * while there never was a region; regions_looked() must not be called then. */
int regions_look(struct node *node);
void regions_looked(struct node *node);
/* The offset of `bytes` bytes at data, if all of `members` (a set of ranks on the host, see
 * below) map them; else 0. */
uint64_t region_find(const struct node *node, const void *data, size_t bytes,
                     const uint64_t *members);
/* Where that offset is mapped here; NULL: it is not. */
void *region_at(const struct node *node, uint64_t offset, size_t bytes);

/* A buffer of a call that the other members may read or write while the call runs. */
struct region_offer {
    const void *data;
    size_t bytes;    /* 0: there is no buffer */
    uint64_t offset; /* in the file; 0: it is not offered */
    struct region_offer *next;
};

/* Fills in the offsets of the buffers of one call.  They stay in the node's list until
 * regions_withdraw().  A page is offered by one call at a time: a buffer that shares a page with
 * one of another call is not offered. */
void regions_offer(struct node *node, struct region_offer *offers, int count,
                   const uint64_t *members);
/* Skips those that were not offered, or are withdrawn already. */
void regions_withdraw(struct node *node, struct region_offer *offers, int count);
/* The same for a call that failed while another rank still uses its buffers and may write to
 * them later: their pages become private memory with the same content at the same address.
 * Regions of libct itself are left as they are: a late write does no harm there, and a device
 * that has the pages registered would go on copying to the old ones. */
void regions_cut_off(struct node *node, struct region_offer *offers, int count);

/* Sets of ranks of a host.  With more ranks on the host there are neither regions nor groups in
 * shared memory (shm_group.c). */
#define NODE_MOST 1024
#define NODE_SET_WORDS (NODE_MOST / 64)

static inline void node_set_add(uint64_t *set, int local)
{
    set[local / 64] |= (uint64_t)1 << local % 64;
}

static inline int node_set_within(const uint64_t *small, const uint64_t *large)
{
    for (int i = 0; i < NODE_SET_WORDS; i++)
        if (small[i] & ~large[i])
            return 0;
    return 1;
}

#endif
