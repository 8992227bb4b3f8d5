/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - pieces of a rank's own arena in the node's memory, for the groups it leads.
 *
 * A list in order of place, first fit.  A retired piece is taken back only when
 * no rank looks at it any more, which its user can tell. */
#include <stdlib.h>

#include "runtime/shm/host_segment.h"

struct area {
    struct area *next; /* ascending offsets */
    size_t offset, bytes;
    int (*done)(void *memory, size_t bytes); /* NULL: in use */
};

static void take_back(struct node *node)
{
    for (struct area **link = &node->areas; *link;) {
        struct area *area = *link;

        if (area->done && area->done(node->base + area->offset, area->bytes)) {
            *link = area->next;
            free(area);
        } else {
            link = &area->next;
        }
    }
}

size_t node_area_alloc(struct node *node, size_t bytes)
{
    const size_t start = node_arenas_offset(node) + (size_t)node->rank * ARENA_BYTES;
    size_t at = start;
    struct area *area = malloc(sizeof *area), **link;

    bytes = (bytes + 4095) / 4096 * 4096;
    pthread_mutex_lock(&node->lock);
    take_back(node);
    for (link = &node->areas; *link && (*link)->offset - at < bytes; link = &(*link)->next)
        at = (*link)->offset + (*link)->bytes;
    if (!area || at + bytes > start + ARENA_BYTES) {
        free(area);
        at = SIZE_MAX;
    } else {
        *area = (struct area){ *link, at, bytes, NULL };
        *link = area;
    }
    pthread_mutex_unlock(&node->lock);
    return at;
}

void node_area_retire(struct node *node, size_t offset, int (*done)(void *memory, size_t bytes))
{
    pthread_mutex_lock(&node->lock);
    for (struct area *area = node->areas; area; area = area->next)
        if (area->offset == offset)
            area->done = done;
    take_back(node);
    pthread_mutex_unlock(&node->lock);
}

void node_areas_free(struct node *node)
{
    while (node->areas) {
        struct area *next = node->areas->next;

        free(node->areas);
        node->areas = next;
    }
}
