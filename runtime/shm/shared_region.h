/* SPDX-License-Identifier: Apache-2.0 */
/* shared_region.h - memory of ct_mem_alloc(): where one rank of a host reads and writes another's
 * buffer.
 *
 * A region is a part of each member on this host, one behind the other, in the file that the ranks
 * of the host share; every member maps all of it.  Where a byte lies is said by its offset in that
 * file, which means the same to all of them.  The file is sparse, as long as a file can be, so an
 * offset is never given twice and nothing has to be made longer. */
#ifndef RUNTIME_SHM_SHARED_REGION_H
#define RUNTIME_SHM_SHARED_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

struct node;

/* What its members must give alike. */
struct region_plan {
    uint64_t offset;   /* in the file; 0: every member has memory of its own, nothing is shared */
    size_t bytes;      /* of one part */
    const int *locals; /* [parts] whose they are: ranks in the node */
    int parts, own;    /* the one that is ours */
    uint64_t group;    /* its id */
    int our_own;       /* libct's: nobody looks at it once a call of its group has failed */
};

/* Bytes a part takes, in whole pages; 0: more than there can be. */
size_t region_part(size_t bytes);
/* An offset where so many bytes have never been given to anybody; 0: nothing is shared, or the
 * file is full. */
uint64_t region_reserve(struct node *node, size_t bytes);
/* *own: the own part, whose pages are there, full of zeros. */
ct_status region_map(struct node *node, const struct region_plan *plan, void **own);
/* Of whom `own` is: 0, or its group and its offset. */
int region_of(struct node *node, const void *own, uint64_t *group, uint64_t *offset);
/* Gives the own part back to the system; the others can't reach it any more. */
void region_unmap(struct node *node, void *own);
/* Of it nothing is known any more; it stays where it is, as long as the process lives. */
void region_leave(struct node *node, const void *own);
void regions_free(struct node *node); /* all of them */

/* What follows is asked between these two.  regions_look() gives 0, and there is nothing to end,
 * while there never was a region. */
int regions_look(struct node *node);
void regions_looked(struct node *node);
/* Where `bytes` bytes at data are for all of `members` (a set of ranks in the node, see below);
 * 0: some of them can't reach them. */
uint64_t region_find(const struct node *node, const void *data, size_t bytes,
                     const uint64_t *members);
/* And here; NULL: not mapped. */
void *region_at(const struct node *node, uint64_t offset, size_t bytes);

/* A buffer of a call that the other members may reach while the call runs. */
struct region_offer {
    const void *data;
    size_t bytes;    /* 0: there is none */
    uint64_t offset; /* in the file; 0: it is not offered */
    struct region_offer *next;
};

/* Fills in the offsets of the buffers of one call.  They stay in the node's list until
 * regions_withdraw().  A page is offered by one call at a time: what lies in a page that
 * another call offers is not offered. */
void regions_offer(struct node *node, struct region_offer *offers, int count,
                   const uint64_t *members);
/* What was not offered, or is withdrawn already, is passed over. */
void regions_withdraw(struct node *node, struct region_offer *offers, int count);
/* The same for a call that failed while another rank is at its buffers and may write to them later:
 * their pages become private memory of the same content at the same place.  Not so in libct's own
 * regions, where that does no harm: a device may know the pages, and would go on copying to
 * those. */
void regions_cut_off(struct node *node, struct region_offer *offers, int count);

/* Sets of ranks in a node.  On a host of more ranks there are neither regions nor flat groups. */
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
