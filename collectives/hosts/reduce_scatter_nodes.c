/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter_nodes.c - reduce-scatter over several hosts.  Each rank folds, over the ranks of
 * its host, the blocks for the ranks that have its number on all hosts.  Then the ranks of one
 * number exchange these partial results.
 *
 * So for each block one partial result comes from each other host, not one input from each rank
 * there.  The inputs are folded in the fixed order of combine.h.
 * Cost: each rank writes and reads p n bytes on its host.  Between hosts, each host sends each
 * other host its blocks in alpha + (h-2) o + (h-1) n beta.  With many hosts or few bytes, an
 * all-reduce of the rail's h blocks replaces this exchange.
 *
 * Blocks go a piece at a time.  The places for pieces, one for each host, take 8 MiB at most,
 * however many ranks there are. */
#include <stdlib.h>

#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"
#include "collectives/hosts/rail_tree.h"

struct work_of_call {
    const struct call *call;
    struct level level;
    size_t at, piece; /* where the current piece begins in each block; its most bytes */
    size_t room;      /* scratch bytes for a piece of partial results */
    size_t wider;     /* size of a partial result divided by the size of an input element */
    /* [hosts] partial results of this host, for the ranks that have this rank's number.  NULL if
     * there is nothing to fold, so that this rank sends its input. */
    char *partial;
};

static int reduce_scatter_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1 && hosts_are_alike(c->group) && hosts_can_fold(c);
}

static int reduce_scatter_few_hosts_fit(const struct call *c)
{
    return reduce_scatter_nodes_fits(c) && c->group->order.hosts <= HOSTS_MOST_DIRECT;
}

/* Returns the current piece of a block.  The piece is empty behind the end of a short block. */
static struct span piece_in(const struct work_of_call *w, struct span block)
{
    const size_t bytes = piece_of(block.bytes, w->at, w->piece);

    return span_of(bytes > 0 ? block.data + w->at : NULL, bytes);
}

/* Returns the current piece of this rank's input block for rank `owner` of `host`. */
static struct span reduce_scatter_input_piece(const struct call *c, const void *arg, int owner,
                                              int host)
{
    return piece_in(arg, block_at(c, &c->send, host_rank(c->group, host, owner)));
}

static struct span partial_piece(const struct call *c, const void *arg, int owner, int host)
{
    const struct work_of_call *w = arg;
    const struct span input = reduce_scatter_input_piece(w->call, arg, owner, host);

    (void)c; /* c is the call of partial results */
    return w->partial ? span_of(w->partial + (size_t)host * w->room, input.bytes * w->wider)
                      : input;
}

/* What a rank exchanges with the other hosts for one piece. */
struct exchanged {
    const struct work_of_call *work;
    char *arrived; /* a piece of each other host */
    size_t bytes;  /* of a piece */
};

static struct span going_partial(const struct call *c, const void *arg, int host)
{
    const struct exchanged *e = arg;

    return partial_piece(c, e->work, e->work->level.rank, host);
}

static struct span arriving_partial(const struct call *c, const void *arg, int host)
{
    const struct exchanged *e = arg;

    (void)c;
    return span_of(e->arrived + (size_t)host * e->bytes, e->bytes);
}

/* Exchanges partial results with the other hosts, and folds the results for this rank's block into
 * out. */
static ct_status reduce_scatter_fold_arrived(const struct rail *rail, const struct work_of_call *w,
                                             const void **sources, char *arrived, struct span out)
{
    const struct exchanged e = { w, arrived, out.bytes };
    const ct_status status = rail_exchange(rail, going_partial, arriving_partial, &e);

    if (status != CT_OK)
        return status;
    for (int host = 0; host < rail->hosts; host++)
        sources[host] =
            (host == rail->host ? going_partial : arriving_partial)(rail->call, &e, host).data;
    fold_hosts(rail->call, out.data, sources, out.bytes);
    rail_average(rail, out);
    return CT_OK;
}

static ct_status exchange_directly(struct call *c, const struct work_of_call *w, struct span out)
{
    struct call of_partials = call_of_partials(c);
    const struct level *l = &w->level;
    const struct rail rail = rail_of(&of_partials, l);
    const void **sources = malloc((size_t)l->hosts * sizeof *sources);
    const size_t bytes = out.bytes * w->wider;
    /* Has room for what arrives, and behind it for the result if that is wider than the output. */
    char *arrived = call_scratch(c, ((size_t)l->hosts + 1) * bytes);
    const struct span folded =
        span_of(w->wider > 1 ? arrived + (size_t)l->hosts * bytes : out.data, bytes);
    ct_status status =
        sources && arrived
            ? reduce_scatter_fold_arrived(&rail, w, sources, arrived, folded)
            : ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d hosts", l->hosts);

    if (status == CT_OK)
        round_partials(c, out, folded.data);
    call_scratch_end(c, arrived);
    free(sources);
    return status;
}

/* Folds all blocks of the rail as one buffer, in which the places behind short blocks are zeros. */
static ct_status exchange_as_one(struct call *c, const struct work_of_call *w, struct span out)
{
    struct call of_partials = call_of_partials(c);
    const struct level *l = &w->level;
    const struct rail rail = rail_of(&of_partials, l);
    const struct span all = span_of(w->partial, (size_t)l->hosts * w->room);
    const ct_status status = rail_all_reduce(&rail, (enum rail_way)c->algorithm->way, all, all);

    if (status == CT_OK)
        round_partials(c, out, w->partial + (size_t)l->host * w->room);
    return status;
}

static ct_status reduce_scatter_nodes_run(struct call *c)
{
    const int is_direct = c->algorithm->way == RAIL_DIRECT;
    const struct span out = block_at(c, &c->recv, 0);
    const struct level level = level_of(c->group, c->group->rank);
    const size_t largest = largest_block(c, &c->send);
    const size_t most = SCRATCH_BYTES / (size_t)level.hosts / 64 * 64;
    const size_t piece = most < 64 ? 64 : most > (1 << 20) ? 1 << 20 : most;
    const size_t wider = call_of_partials(c).element / c->element;
    struct work_of_call w = { .call = c,
                              .level = level,
                              .piece = piece,
                              .room = (largest < piece ? largest : piece) * wider,
                              .wider = wider };
    const struct host_parts input = {
        .owners = level.ranks, .spans = level.hosts, .span = reduce_scatter_input_piece, .arg = &w
    };
    const struct host_parts result = {
        .owners = level.ranks, .spans = level.hosts, .span = partial_piece, .arg = &w
    };
    const int folds = level.ranks > 1 || wider > 1 || !is_direct;
    ct_status status = CT_OK;

    if (folds && !(w.partial = call_scratch(c, (size_t)level.hosts * w.room)))
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    do {
        /* Zeros the places behind short blocks, which are folded too.  No rank reads the result. */
        if (folds && c->send.counts)
            memset(w.partial, 0, (size_t)level.hosts * w.room);
        if (folds)
            status = host_fold(c, &w.level, &input, &result);
        if (status == CT_OK)
            status = is_direct ? exchange_directly(c, &w, piece_in(&w, out))
                               : exchange_as_one(c, &w, piece_in(&w, out));
        w.at += w.piece;
    } while (status == CT_OK && w.at < largest);
    call_scratch_end(c, w.partial);
    return status;
}

/* Returns the cost of an all-gather for RAIL_DIRECT, where a host receives as many bytes as in an
 * all-gather.  Returns the cost of an all-reduce of all blocks for the other ways. */
static double reduce_scatter_nodes_cost(const struct call *c, int way)
{
    const size_t all = blocks_bytes(c, &c->send);

    return way == RAIL_DIRECT
               ? rail_all_gather_cost(c, RAIL_DIRECT, all / (size_t)c->group->order.hosts)
               : rail_all_reduce_cost(c, (enum rail_way)way, all);
}

const struct algorithm reduce_scatter_nodes = { .name = "nodes",
                                                .fits = reduce_scatter_few_hosts_fit,
                                                .run = reduce_scatter_nodes_run,
                                                .cost = reduce_scatter_nodes_cost,
                                                .way = RAIL_DIRECT };
const struct algorithm reduce_scatter_nodes_doubling = { .name = "nodes_doubling",
                                                         .fits = reduce_scatter_nodes_fits,
                                                         .run = reduce_scatter_nodes_run,
                                                         .cost = reduce_scatter_nodes_cost,
                                                         .way = RAIL_DOUBLING };
const struct algorithm reduce_scatter_nodes_halving = { .name = "nodes_halving",
                                                        .fits = reduce_scatter_nodes_fits,
                                                        .run = reduce_scatter_nodes_run,
                                                        .cost = reduce_scatter_nodes_cost,
                                                        .way = RAIL_HALVING };
