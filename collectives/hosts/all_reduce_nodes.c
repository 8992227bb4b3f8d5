/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_nodes.c - all-reduce over several hosts.  Each host folds its ranks' inputs, then the
 * hosts fold their partial results.
 *
 * Few bytes: the first rank of each host folds the inputs of its host, folds the partial results
 * with the other hosts, and hands the result to the ranks of its host.  Many bytes: the buffer is
 * cut into slices, at most as many as the smallest host has ranks.  Rank i of each host folds slice
 * i, exchanges slice i with the other hosts, and shares the result on its host.  So each byte
 * crosses between two hosts once in each direction, not once for each pair of ranks, and the inputs
 * are folded in the fixed order of combine.h.
 * Cost: on the host one round, or two rounds in which n bytes are written and n bytes are read.
 * Between hosts the cost of the rail (rail.h).
 * [two-level all-reduce: MPICH SMP, Open MPI HAN] */
#include <math.h>

#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/measure_network.h"
#include "collectives/hosts/rail.h"

#define PIECE ((size_t)8 << 20)      /* bytes that one step handles; limits the scratch memory */
#define ONE_SLICE ((size_t)16 << 10) /* minimum size of a slice in bytes */

static int all_reduce_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1 && hosts_can_fold(c);
}

static int all_reduce_few_hosts_fit(const struct call *c)
{
    return all_reduce_nodes_fits(c) && c->group->order.hosts <= HOSTS_MOST_DIRECT;
}

/* Folds this host's partial results and those of the other hosts, and writes the rounded result to
 * out. */
static ct_status all_reduce_through_rail(struct call *c, const struct level *l,
                                         struct span partials, struct span out)
{
    struct call of_partials = call_of_partials(c);
    const struct rail rail = rail_of(&of_partials, l);
    const ct_status status =
        rail_all_reduce(&rail, (enum rail_way)c->algorithm->way, partials, partials);

    if (status == CT_OK)
        round_partials(c, out, partials.data);
    return status;
}

/* Returns where to write the partial results for `out`.  This is `out` itself, or new memory in
 * *room if partial results are wider than the dtype.  The caller gives *room back, which is NULL if
 * `out` is used.  The data is NULL if memory ran out. */
static struct span place_for(const struct call *c, struct span out, char **room)
{
    const struct call of_partials = call_of_partials(c);
    const size_t bytes = out.bytes / c->element * of_partials.element;

    *room = NULL;
    if (!has_wide_partials(c))
        return out;
    *room = call_scratch(c, bytes);
    return span_of(*room, bytes);
}

static ct_status no_room(size_t bytes)
{
    return ct_fail(CT_ERR_NOMEM, "no memory for %zu bytes of partial results", bytes);
}

static ct_status all_reduce_one_trip(struct call *c, const struct level *l)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    struct host_trip trip;
    char *room;
    const struct span partials = place_for(c, out, &room);
    ct_status status = host_trip_begin(&trip, c, l, in.bytes, in.bytes);

    if (status == CT_OK && !partials.data && in.bytes > 0)
        status = no_room(partials.bytes);
    if (status == CT_OK)
        status = host_show(&trip, in.data);
    if (status == CT_OK && host_is_gate(&trip)) {
        fold_partials(c, partials.data, trip.shown, l->ranks, in.bytes);
        status = all_reduce_through_rail(c, l, partials, out);
    }
    if (status == CT_OK)
        status = host_answer(&trip, out.data);
    host_trip_end(&trip);
    call_scratch_end(c, room);
    return status;
}

static ct_status all_reduce_one_piece(struct call *c, const struct level *l, struct span in,
                                      struct span out)
{
    const int owners = host_slices_of(c->group, in.bytes, ONE_SLICE);
    const size_t count = in.bytes / c->element;
    char *room;
    const struct call of_partials = call_of_partials(c);
    const struct span partials = place_for(c, out, &room);
    const struct host_slices from = { in.data, count, owners }, to = { out.data, count, owners };
    const struct host_slices between = { partials.data, count, owners };
    const struct host_parts input = {
        .owners = owners, .spans = 1, .span = host_slice, .arg = &from
    };
    const struct host_parts folded = {
        .owners = owners, .spans = 1, .span = host_slice, .arg = &between
    };
    const struct host_parts result = {
        .owners = owners, .spans = 1, .span = host_slice, .arg = &to
    };
    ct_status status = partials.data ? host_fold(c, l, &input, &folded) : no_room(partials.bytes);

    if (status == CT_OK && l->rank < owners)
        status = all_reduce_through_rail(c, l, host_slice(&of_partials, &between, l->rank, 0),
                                         host_slice(c, &to, l->rank, 0));
    call_scratch_end(c, room);
    return status == CT_OK ? host_share(c, l, &result) : status;
}

static ct_status all_reduce_all_pieces(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const enum rail_way way = (enum rail_way)c->algorithm->way;
    const struct level l = level_of(c->group, c->group->rank);
    const struct rail rail = rail_of(c, &l);
    /* True if each host has one rank, so that the rank's input is the host's partial result. */
    const int alone = c->group->order.host_most == 1 && !has_wide_partials(c);
    /* The whole buffer goes to RAIL_DIRECT, which cuts it into pieces itself. */
    const size_t piece = alone && way == RAIL_DIRECT ? in.bytes : PIECE;
    ct_status status = CT_OK;

    if (in.bytes <= HOST_TRIP_MOST)
        return all_reduce_one_trip(c, &l);
    for (size_t at = 0; at < in.bytes && status == CT_OK; at += piece) {
        const struct span from = span_of(in.data + at, piece_of(in.bytes, at, piece));
        const struct span to = span_of(out.data + at, from.bytes);

        status =
            alone ? rail_all_reduce(&rail, way, from, to) : all_reduce_one_piece(c, &l, from, to);
    }
    return status;
}

/* Returns the bytes that one rail exchanges at once. */
static size_t bytes_of_rail(const struct call *c)
{
    const size_t piece = piece_of(call_bytes(c), 0, PIECE);
    const int slices = piece <= HOST_TRIP_MOST ? 1 : host_slices_of(c->group, piece, ONE_SLICE);

    return partial_bytes(c, piece / (size_t)slices);
}

/* In a single step, or in steps of doubling, the last rank finds all data there and waits for no
 * rank, so its time tells nothing about the network. */
static int shows_network(const struct call *c, int way)
{
    return way == RAIL_HALVING
           || (way == RAIL_DIRECT && !rail_takes_one_step(c->group->order.hosts, bytes_of_rail(c)));
}

static ct_status all_reduce_nodes_run(struct call *c)
{
    return shows_network(c, c->algorithm->way) ? run_measured(c, all_reduce_all_pieces)
                                               : all_reduce_all_pieces(c);
}

/* While a measurement is due, no way wins that doesn't show the network.  On a slow network it may
 * send several times as many bytes, and a program that only makes such calls would never measure.
 * Two hosts send the same bytes in each way. */
static double all_reduce_nodes_cost(const struct call *c, int way)
{
    return c->group->order.hosts > 2 && network_is_due(c) && !shows_network(c, way)
               ? INFINITY
               : rail_all_reduce_cost(c, (enum rail_way)way, partial_bytes(c, call_bytes(c)));
}

const struct algorithm all_reduce_nodes = { .name = "nodes",
                                            .fits = all_reduce_few_hosts_fit,
                                            .run = all_reduce_nodes_run,
                                            .cost = all_reduce_nodes_cost,
                                            .way = RAIL_DIRECT };
const struct algorithm all_reduce_nodes_doubling = { .name = "nodes_doubling",
                                                     .fits = all_reduce_nodes_fits,
                                                     .run = all_reduce_nodes_run,
                                                     .cost = all_reduce_nodes_cost,
                                                     .way = RAIL_DOUBLING };
const struct algorithm all_reduce_nodes_halving = { .name = "nodes_halving",
                                                    .fits = all_reduce_nodes_fits,
                                                    .run = all_reduce_nodes_run,
                                                    .cost = all_reduce_nodes_cost,
                                                    .way = RAIL_HALVING };
