/* SPDX-License-Identifier: Apache-2.0 */
/* shared_region.h - registered regions: memory of ct_mem_alloc(), in which one rank of a host reads
 * and writes the buffer of another rank.
 *
 * A region lies in the file that the ranks of the host share.  It has a part for each member of
 * the group on this host, one part after the other, and each member maps all parts.  A place in a
 * region is given as an offset in the file, which means the same to all ranks.  The file is
 * sparse and has the greatest possible length, so no offset is given away twice and the file
 * never has to grow. */
#ifndef RUNTIME_SHM_SHARED_REGION_H
#define RUNTIME_SHM_SHARED_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

struct node;

/* A region to be mapped.  All members must pass the same values, except `own`. */
struct region_plan {
    uint64_t offset;   /* in the file; 0: each member gets private memory */
    size_t bytes;      /* of one part */
    const int *locals; /* [parts] each part's owner, as a rank on the host */
    int parts, own;    /* how many parts, and which of them is ours */
    uint64_t group;    /* id of the group */
    /* True for memory of libct itself: no rank reads it once a call of its group has failed. */
    int our_own;
};

/* Returns the size of a part in whole pages; 0 if `bytes` is too large. */
size_t region_part(size_t bytes);
/* Returns an offset at which `bytes` bytes were never given away.  Returns 0 if no memory is shared
 * or the file is full. */
uint64_t region_reserve(struct node *node, size_t bytes);
/* Maps a region and sets *own to this rank's part.  The pages of this part are allocated and
 * full of zeros. */
ct_status region_map(struct node *node, const struct region_plan *plan, void **own);
/* Returns 1 and fills in *group and *offset if `own` is this rank's part of a region;
 * else returns 0. */
int region_of(struct node *node, const void *own, uint64_t *group, uint64_t *offset);
/* Unmaps the region and gives the pages of this rank's part back to the system.  The other ranks
 * can't reach these pages any more. */
void region_unmap(struct node *node, void *own);
/* Removes the region from the list.  Its memory stays mapped until the process ends. */
void region_leave(struct node *node, const void *own);
void regions_free(struct node *node); /* unmaps all regions */

/* region_find() and region_at() must be called between regions_look() and
 * regions_looked().  regions_look() returns 0 as long as no region was ever made;
 * regions_looked() must not be called then. */
int regions_look(struct node *node);
void regions_looked(struct node *node);
/* Returns the offset of the `bytes` bytes at data if all of `members` map them, else 0.  `members`
 * is a set of ranks on the host (see node_set_add()). */
uint64_t region_find(const struct node *node, const void *data, size_t bytes,
                     const uint64_t *members);
/* Returns the address at which that offset is mapped here; NULL if it is not mapped. */
void *region_at(const struct node *node, uint64_t offset, size_t bytes);

/* A buffer of a call that the other members may read or write while the call runs. */
struct region_offer {
    const void *data;
    size_t bytes;    /* 0 without a buffer */
    uint64_t offset; /* in the file; 0 if the buffer is not offered */
    struct region_offer *next;
};

/* Fills in the offsets of the buffers of one call, which stay in the node's list until
 * regions_withdraw().  Only one call at a time may offer a page: a buffer that shares a page with a
 * buffer of another call is not offered. */
void regions_offer(struct node *node, struct region_offer *offers, int count,
                   const uint64_t *members);
/* Removes the offers of one call from the node's list.  Skips buffers that were not offered or
 * are already withdrawn. */
void regions_withdraw(struct node *node, struct region_offer *offers, int count);
/* Like regions_withdraw(), for a call that failed while another rank still uses its buffers and may
 * write to them later.  The buffers' pages become private memory, with the same content at the same
 * address.  Regions of libct itself are left as they are: a late write does no harm there, and a
 * device that has the pages registered would continue to copy to the old pages. */
void regions_cut_off(struct node *node, struct region_offer *offers, int count);

/* Limit of the ranks in a set of ranks of a host.  A host with more ranks has neither regions nor
 * groups in shared memory (shm_group.c). */
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
