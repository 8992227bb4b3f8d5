/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_hier.c - each host folds its ranks' inputs, then the hosts exchange the partial
 * results.
 *
 * The buffer is cut into one slice for each rank that the smallest host has (few bytes: one
 * slice).  On every host slice i goes to the host's rank i, which folds it, exchanges it with the
 * ranks i of the other hosts, folds the partial results in the order of hosts, and gives the result
 * to the ranks of its host.  So every byte crosses between two hosts once each way, not once for
 * each pair of ranks, and in the written order. Cost for h hosts: two steps on the host, and (h-1)
 * n beta between hosts in one step of alpha; where that is much, parts as in two_shot: 2 alpha +
 * 2n(h-1)/h beta. [two-level all-reduce: MPICH SMP, Open MPI HAN] */
#include <stdlib.h>

#include "collectives/core/host_topology.h"
#include "collectives/core/shm_exchange.h"

#define PIECE ((size_t)8 << 20)        /* of the buffer at a time: bounds the scratch memory */
#define ONE_SLICE ((size_t)8 << 10)    /* up to here one rank of a host does it all */
#define ONE_EXCHANGE ((size_t)8 << 10) /* of a slice, between more than two hosts */

struct work_of_call {
    struct level level;
    int owners; /* ranks of each host that own a slice */
    struct span scratch;
};

static int all_reduce_hier_fits(const struct call *c)
{
    return has_two_levels(c->group) && hosts_can_fold(c);
}

static int owners_of(const struct call *c)
{
    int least = c->group->size;

    for (int host = 0; host < c->group->hosts; host++)
        if (host_ranks(c->group, host) < least)
            least = host_ranks(c->group, host);
    return call_bytes(c) <= ONE_SLICE ? 1 : least;
}

/* This host's ranks send slice i to the host's rank i, which folds it. */
static ct_status all_reduce_hier_fold_on_host(struct call *c, const struct work_of_call *w,
                                              char *in, size_t count, const void **sources,
                                              struct span partial)
{
    const struct level *l = &w->level;
    char *arrived = partial.data + partial.bytes;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, l->ranks + w->owners);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < l->ranks && l->rank < w->owners; i++) {
        sources[i] = arrived + (size_t)i * partial.bytes;
        if (i == l->rank)
            sources[i] = part_of_some(c, in, count, i, w->owners).data;
        else
            batch_recv(&batch, host_rank(c->group, l->host, i), span_of(sources[i], partial.bytes));
    }
    for (int i = 0; i < w->owners; i++)
        if (i != l->rank)
            batch_send(&batch, host_rank(c->group, l->host, i),
                       part_of_some(c, in, count, i, w->owners));
    status = batch_wait(&batch);
    if (status == CT_OK && l->rank < w->owners)
        fold_some(c, partial.data, sources, l->ranks, partial.bytes);
    return status;
}

/* Folds part `host` of the partial results of all hosts. */
static ct_status fold_part(struct call *c, const struct work_of_call *w, struct span partial,
                           char *out, int parts, const void **sources)
{
    const struct level *l = &w->level;
    const size_t count = partial.bytes / c->element;
    const int own = parts == 1 ? 0 : l->host;
    const struct span mine = part_of_some(c, partial.data, count, own, parts);
    char *arrived = partial.data + partial.bytes;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * l->hosts);

    if (status != CT_OK)
        return status;
    for (int host = 0; host < l->hosts; host++) {
        sources[host] = host == l->host ? mine.data : arrived + (size_t)host * mine.bytes;
        if (host != l->host)
            batch_recv(&batch, host_rank(c->group, host, l->rank),
                       span_of(sources[host], mine.bytes));
    }
    for (int step = 1; step < l->hosts; step++) {
        const int host = (l->host + step) % l->hosts;

        batch_send(&batch, host_rank(c->group, host, l->rank),
                   part_of_some(c, partial.data, count, parts == 1 ? 0 : host, parts));
    }
    status = batch_wait(&batch);
    if (status == CT_OK) {
        const struct span result = part_of_some(c, out, count, own, parts);

        fold_some(c, result.data, sources, l->hosts, result.bytes);
        if (call_op(c) == CT_AVG)
            combine_divide(call_dtype(c), result.data, result.bytes / c->element, c->group->size);
    }
    return status;
}

static ct_status share_parts(struct call *c, const struct level *l, char *out, size_t count)
{
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, 2 * l->hosts);

    if (status != CT_OK)
        return status;
    for (int host = 0; host < l->hosts; host++)
        if (host != l->host)
            batch_recv(&batch, host_rank(c->group, host, l->rank),
                       part_of_some(c, out, count, host, l->hosts));
    for (int host = 0; host < l->hosts; host++)
        if (host != l->host)
            batch_send(&batch, host_rank(c->group, host, l->rank),
                       part_of_some(c, out, count, l->host, l->hosts));
    return batch_wait(&batch);
}

/* Between the ranks of one number on all hosts. */
static ct_status all_reduce_hier_fold_across(struct call *c, const struct work_of_call *w,
                                             struct span partial, char *out, const void **sources)
{
    const int parts = w->level.hosts == 2 || partial.bytes <= ONE_EXCHANGE ? 1 : w->level.hosts;
    ct_status status = fold_part(c, w, partial, out, parts, sources);

    if (status == CT_OK && parts > 1)
        status = share_parts(c, &w->level, out, partial.bytes / c->element);
    return status;
}

/* Each owner sends its slice to all ranks of its host. */
static ct_status all_reduce_hier_share_on_host(struct call *c, const struct work_of_call *w,
                                               char *out, size_t count)
{
    const struct level *l = &w->level;
    struct batch batch;
    const ct_status status = batch_begin(&batch, c, l->ranks + w->owners);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < w->owners; i++)
        if (i != l->rank)
            batch_recv(&batch, host_rank(c->group, l->host, i),
                       part_of_some(c, out, count, i, w->owners));
    for (int i = 0; i < l->ranks && l->rank < w->owners; i++)
        if (i != l->rank)
            batch_send(&batch, host_rank(c->group, l->host, i),
                       part_of_some(c, out, count, l->rank, w->owners));
    return batch_wait(&batch);
}

static ct_status all_reduce_hier_one_piece(struct call *c, const struct work_of_call *w, char *in,
                                           char *out, size_t count, const void **sources)
{
    struct span slice = { NULL, 0 };
    ct_status status;

    if (w->level.rank < w->owners)
        slice = part_of_some(c, out, count, w->level.rank, w->owners);
    status = all_reduce_hier_fold_on_host(c, w, in, count, sources,
                                          span_of(w->scratch.data, slice.bytes));
    if (status == CT_OK && w->level.rank < w->owners)
        status = all_reduce_hier_fold_across(c, w, span_of(w->scratch.data, slice.bytes),
                                             slice.data, sources);
    return status == CT_OK ? all_reduce_hier_share_on_host(c, w, out, count) : status;
}

static ct_status all_reduce_hier_run(struct call *c)
{
    const struct span in = block_at(c, &c->send, 0), out = block_at(c, &c->recv, 0);
    const size_t most = in.bytes < PIECE ? in.bytes : PIECE;
    struct work_of_call w = { .level = level_of(c->group, c->group->rank), .owners = owners_of(c) };
    const int others = w.level.ranks > w.level.hosts ? w.level.ranks : w.level.hosts;
    const void **sources = malloc((size_t)others * sizeof *sources);
    size_t at = 0;
    ct_status status = CT_OK;

    if (w.level.rank < w.owners) /* a slice of our own, and one of each of the others */
        w.scratch.bytes = (most / (size_t)w.owners + c->element) * (size_t)(others + 1);
    w.scratch.data = call_scratch(c, w.scratch.bytes);
    if (!sources || !w.scratch.data)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the slices of %d ranks", others);
    do {
        const size_t n = piece_of(in.bytes, at, PIECE);

        if (status == CT_OK)
            status = all_reduce_hier_one_piece(c, &w, in.data + at, out.data + at, n / c->element,
                                               sources);
        at += n;
    } while (status == CT_OK && at < in.bytes);
    free(sources);
    call_scratch_end(c, w.scratch.data);
    return status;
}

const struct algorithm all_reduce_nodes = { "nodes", all_reduce_hier_fits, all_reduce_hier_run, 0 };
