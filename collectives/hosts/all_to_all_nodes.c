/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_nodes.c - each rank takes over what its host has for the ranks of its number on the
 * other hosts, and sends each of them one message.
 *
 * So a rank sends h-1 messages of m blocks, for h hosts of m ranks, where pairwise sends p-1 of
 * one. Cost: p n written and read on the host, then alpha + (h-1) o + (p-m) n beta.  For small
 * blocks. [Bienz, Olson & Gropp 2022: locality-aware all-to-all] */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

#define SMALL_BLOCK ((size_t)16 << 10)

/* Pieces of the blocks, from the ranks of this host, for the rail: [host][rank here]; and the
 * same of what comes for this rank: [host][rank there]. */
struct regrouped {
    const struct level *level;
    size_t at, bytes; /* of each block: where the piece under way begins; its length */
    char *going, *coming;
};

static int all_to_all_nodes_fits(const struct call *c)
{
    return c->group->order.hosts > 1 && c->group->order.hosts <= HOSTS_MOST_DIRECT
           && c->group->size > c->group->order.hosts && hosts_are_alike(c->group)
           && sizes_are_agreed(c);
}

static struct span piece(const struct call *c, const struct regrouped *r, const struct blocks *b,
                         int host, int i)
{
    return span_of(block_at(c, b, host_rank(c->group, host, i)).data + r->at, r->bytes);
}

/* What goes to rank `owner` of each host. */
static struct span all_to_all_input_piece(const struct call *c, const void *arg, int owner,
                                          int host)
{
    return piece(c, arg, &c->send, host, owner);
}

/* What comes from rank `from` of this host for this rank's number on `host`. */
static struct span going_piece(const struct call *c, const void *arg, int from, int host)
{
    const struct regrouped *r = arg;

    (void)c;
    return span_of(r->going + ((size_t)host * (size_t)r->level->ranks + (size_t)from) * r->bytes,
                   r->bytes);
}

static ct_status all_to_all_through_rail(struct call *c, const struct regrouped *r)
{
    const struct level *l = r->level;
    const struct rail rail = rail_of(c, l);
    const size_t each = (size_t)l->ranks * r->bytes;
    struct batch batch;
    ct_status status = batch_begin(&batch, c, 2 * l->hosts);

    for (int step = 1; step < l->hosts && status == CT_OK; step++) {
        const int to = (l->host + step) % l->hosts, from = (l->host - step + l->hosts) % l->hosts;

        batch_recv(&batch, rail_peer(&rail, from), span_of(r->coming + (size_t)from * each, each));
        batch_send(&batch, rail_peer(&rail, to), span_of(r->going + (size_t)to * each, each));
    }
    return status == CT_OK ? batch_wait(&batch) : status;
}

static ct_status all_to_all_one_piece(struct call *c, const struct regrouped *r)
{
    const struct level *l = r->level;
    const struct host_parts input = {
        .owners = l->ranks, .spans = l->hosts, .span = all_to_all_input_piece, .arg = r
    };
    const struct host_parts result = {
        .owners = l->ranks, .spans = l->hosts, .span = going_piece, .arg = r
    };
    ct_status status = host_regroup(c, l, &input, &result);

    if (status == CT_OK)
        status = all_to_all_through_rail(c, r);
    for (int host = 0; host < l->hosts && status == CT_OK; host++)
        for (int i = 0; i < l->ranks; i++) {
            const char *const here = host == l->host ? r->going : r->coming;
            const size_t at = ((size_t)host * (size_t)l->ranks + (size_t)i) * r->bytes;

            copy_span(piece(c, r, &c->recv, host, i), here + at);
        }
    return status;
}

static ct_status all_to_all_nodes_run(struct call *c)
{
    const struct level l = level_of(c->group, c->group->rank);
    const size_t n = call_bytes(c), most = piece_of_each(c), piece = n < most ? n : most;
    const size_t all = (size_t)c->group->size * piece;
    struct regrouped r = { .level = &l,
                           .going = call_scratch(c, all),
                           .coming = call_scratch(c, all) };
    ct_status status = CT_OK;

    if (!r.going || !r.coming)
        status = ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    do {
        r.bytes = piece_of(n, r.at, piece);
        if (status == CT_OK)
            status = all_to_all_one_piece(c, &r);
        r.at += piece;
    } while (status == CT_OK && r.at < n);
    call_scratch_end(c, r.going);
    call_scratch_end(c, r.coming);
    return status;
}

const struct algorithm all_to_all_nodes = {
    .name = "nodes", .fits = all_to_all_nodes_fits, .run = all_to_all_nodes_run, .most = SMALL_BLOCK
};
