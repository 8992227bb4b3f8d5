/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - PMI's barrier over the nodes of a round (launcher/pmi/pmi_server.h), which also
 * exchanges what the ranks have put.
 *
 * When all ranks of a node are in the barrier, the node sends their puts to the coordinator in
 * pieces (NODE_PUTS), then NODE_FENCE.  When the last node is in the barrier, the coordinator sends
 * all puts to each node, then NODE_FENCE.  All connections share one copy of a piece in memory. */
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/coordinator.h"
#include "launcher/pmi/pmi_protocol.h"

void fence_begin(struct coordinator *c)
{
    c->fence.used = 0;
    for (int i = 0; i < c->ranked_count; i++) {
        c->ranked[i]->is_fenced = 0;
        c->ranked[i]->puts = 0;
    }
}

void fence_free(struct coordinator *c)
{
    free(c->fence.data);
    c->fence = (struct text){ 0 };
}

/* Adds a node's puts to c->fence.  Returns 0 if the node put more than its ranks may or memory is
 * out, else 1. */
static int take_puts(struct coordinator *c, struct member *from, const char *puts, size_t bytes)
{
    const size_t before = c->fence.used;

    if (bytes > (size_t)from->workers * PMI_RANK_MOST - from->puts)
        return 0;
    from->puts += bytes;
    text_add(&c->fence, puts, bytes);
    return c->fence.used == before + bytes;
}

int fence_puts(struct coordinator *c, struct member *from, const char *data, size_t bytes)
{
    const char *puts = fence_puts_read(data, bytes, c->meet->generation);

    if (c->phase != RUNNING || !from->in_round || from->is_fenced || !puts)
        return 1; /* the puts are from an older round */
    return take_puts(c, from, puts, bytes - (size_t)(puts - data));
}

static void fence_send_all(struct coordinator *c, int type, const void *data, size_t bytes)
{
    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i]->agent)
            store_agent_send(c->ranked[i]->agent, type, data, bytes);
}

static void send_piece(void *arg, const char *data, size_t bytes)
{
    struct coordinator *c = arg;
    struct value *piece = NULL;

    for (int i = 0; i < c->ranked_count; i++)
        if (c->ranked[i]->agent)
            store_agent_send_shared(c->ranked[i]->agent, NODE_PUTS, data, bytes, &piece);
    value_release(piece);
}

static void finish(struct coordinator *c)
{
    const char *generation = c->meet->generation;

    node_pieces(generation, c->fence.data, c->fence.used, send_piece, c);
    fence_send_all(c, NODE_FENCE, generation, strlen(generation));
    c->nodes.hooks->puts(c->nodes.job, c->fence.data, c->fence.used);
    fence_begin(c);
    c->nodes.hooks->fenced(c->nodes.job);
}

void fence_in(struct coordinator *c, struct member *from, const char *generation)
{
    if (c->phase != RUNNING || !from->in_round || strcmp(generation, c->meet->generation) != 0)
        return;
    from->is_fenced = 1;
    for (int i = 0; i < c->ranked_count; i++)
        if (!c->ranked[i]->is_fenced)
            return;
    finish(c);
}

/* Does not store the puts in a job of one node, which exchanges nothing. */
void fence_own(struct coordinator *c, const char *puts, size_t bytes)
{
    struct member *own = &c->own;

    if (c->ranked_count > 1 && c->phase == RUNNING && !take_puts(c, own, puts, bytes))
        rounds_failed(
            c, own,
            &(struct failure){ -1, -1, 1, 0, "it has no memory for what its ranks put by PMI", 1 });
    fence_in(c, own, c->meet->generation);
}
