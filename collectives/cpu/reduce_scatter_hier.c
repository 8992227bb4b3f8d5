/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter_hier.c - each rank folds, over its host's ranks, the blocks that are for the ranks
 * of its number on all hosts; then these ranks exchange the partial results.
 *
 * So for each block one partial result comes from each other host, not one input from each rank
 * there, and the order is the written one.
 * Cost for h hosts of equally many ranks: one step on the host with (p - h) n, then
 * alpha + (h-1) n beta; a piece at a time.
 * The places for pieces, one for each rank and each host, take 12 MiB at the most, however many
 * ranks there are. */
#include <stdlib.h>

#include "collectives/core/host_topology.h"
#include "collectives/core/shm_exchange.h"

struct work_of_call {
    struct level level;
    size_t at, piece;     /* of each block: where the piece under way begins, its most bytes */
    size_t room;          /* of a piece in scratch */
    char *scratch;        /* [hosts][ranks] inputs, then [hosts] partial results */
    const void **sources; /* [the larger of hosts and ranks] */
};

static int reduce_scatter_hier_fits(const struct call *c)
{
    return has_two_levels(c->group) && hosts_are_alike(c->group) && hosts_can_fold(c);
}

/* Empty behind the end of a short block. */
static struct span piece_in(const struct work_of_call *w, struct span block)
{
    const size_t bytes = piece_of(block.bytes, w->at, w->piece);

    return span_of(bytes > 0 ? block.data + w->at : NULL, bytes);
}

/* The piece of the block that is for rank i of a host. */
static struct span piece_for(const struct call *c, const struct work_of_call *w, int host, int i)
{
    return piece_in(w, block_at(c, &c->send, host_rank(c->group, host, i)));
}

/* Where the piece from rank i of this host lies; and this host's partial result. */
static char *place(const struct work_of_call *w, int host, int i)
{
    return w->scratch + (size_t)(host * w->level.ranks + i) * w->room;
}

static char *partial(const struct work_of_call *w, int host)
{
    return place(w, w->level.hosts, 0) + (size_t)host * w->room;
}

static ct_status reduce_scatter_hier_fold_on_host(struct call *c, const struct work_of_call *w)
{
    const struct level *l = &w->level;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * l->hosts * l->ranks);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < l->ranks; i++)
        for (int host = 0; host < l->hosts && i != l->rank; host++)
            batch_recv(&batch, host_rank(c->group, l->host, i),
                       span_of(place(w, host, i), piece_for(c, w, host, l->rank).bytes));
    for (int i = 0; i < l->ranks; i++)
        for (int host = 0; host < l->hosts && i != l->rank; host++)
            batch_send(&batch, host_rank(c->group, l->host, i), piece_for(c, w, host, i));
    status = batch_wait(&batch);
    for (int host = 0; host < l->hosts && status == CT_OK; host++) {
        const struct span own = piece_for(c, w, host, l->rank);

        for (int i = 0; i < l->ranks; i++)
            w->sources[i] = i == l->rank ? own.data : place(w, host, i);
        fold_some(c, partial(w, host), w->sources, l->ranks, own.bytes);
    }
    return status;
}

static ct_status reduce_scatter_hier_fold_across(struct call *c, const struct work_of_call *w,
                                                 struct span out)
{
    const struct level *l = &w->level;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * l->hosts);

    if (status != CT_OK)
        return status;
    for (int host = 0; host < l->hosts; host++) {
        w->sources[host] = host == l->host ? partial(w, host) : place(w, host, 0);
        if (host != l->host)
            batch_recv(&batch, host_rank(c->group, host, l->rank),
                       span_of(w->sources[host], out.bytes));
    }
    for (int host = 0; host < l->hosts; host++)
        if (host != l->host)
            batch_send(&batch, host_rank(c->group, host, l->rank),
                       span_of(partial(w, host), piece_for(c, w, host, l->rank).bytes));
    status = batch_wait(&batch);
    if (status != CT_OK)
        return status;
    fold_some(c, out.data, w->sources, l->hosts, out.bytes);
    if (call_op(c) == CT_AVG)
        combine_divide(call_dtype(c), out.data, out.bytes / c->element, c->group->size);
    return CT_OK;
}

static ct_status reduce_scatter_hier_run(struct call *c)
{
    const struct span out = block_at(c, &c->recv, 0);
    const size_t largest = largest_block(c, &c->send), piece = piece_of_each(c);
    struct work_of_call w = { .level = level_of(c->group, c->group->rank),
                              .piece = piece,
                              .room = largest < piece ? largest : piece };
    const size_t places = (size_t)w.level.hosts * (size_t)(w.level.ranks + 1);
    ct_status status = CT_OK;

    w.scratch = call_scratch(c, places * w.room);
    w.sources = malloc((size_t)c->group->size * sizeof *w.sources);
    if (!w.scratch || !w.sources)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    do {
        if (status == CT_OK)
            status = reduce_scatter_hier_fold_on_host(c, &w);
        if (status == CT_OK)
            status = reduce_scatter_hier_fold_across(c, &w, piece_in(&w, out));
        w.at += w.piece;
    } while (status == CT_OK && w.at < largest);
    call_scratch_end(c, w.scratch);
    free(w.sources);
    return status;
}

const struct algorithm reduce_scatter_nodes = { "nodes", reduce_scatter_hier_fits,
                                                reduce_scatter_hier_run, 0 };
