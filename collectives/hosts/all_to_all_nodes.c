/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_nodes.c - all-to-all over several hosts.  Each rank takes over its host's blocks for
 * the ranks that have its number on the other hosts, and sends each of these ranks one message.
 *
 * For h hosts of m ranks, each rank sends h-1 messages of m blocks.  The algorithm `pairwise` sends
 * p-1 messages of one block.
 * Cost: each rank writes and reads p n bytes on the host.  Between hosts the messages take alpha +
 * (h-2) o + (p-m) n beta.  This algorithm is for small blocks.
 * [Bienz, Olson & Gropp 2022: locality-aware all-to-all] */
#include "collectives/core/algorithms.h"
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"
#include "collectives/hosts/rail.h"

#define SMALL_BLOCK ((size_t)16 << 10)

/* The current piece of the blocks that this rank sends and receives over the rail.  going is
 * [host][rank here], and coming is [host][rank there]. */
struct regrouped {
    const struct level *level;
    size_t at, bytes; /* where the current piece begins in each block; its bytes */
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

/* Returns the piece of this rank's input block for rank `owner` of `host`. */
static struct span all_to_all_input_piece(const struct call *c, const void *arg, int owner,
                                          int host)
{
    return piece(c, arg, &c->send, host, owner);
}

/* Returns the place in `going` for the piece from rank `from` of this host to the rank on `host`
 * that has this rank's number. */
static struct span going_piece(const struct call *c, const void *arg, int from, int host)
{
    const struct regrouped *r = arg;

    (void)c;
    return span_of(r->going + ((size_t)host * (size_t)r->level->ranks + (size_t)from) * r->bytes,
                   r->bytes);
}

/* Returns the message to the rank on `host` that has this rank's number. */
static struct span going_message(const struct call *c, const void *arg, int host)
{
    const struct regrouped *r = arg;
    const size_t each = (size_t)r->level->ranks * r->bytes;

    (void)c;
    return span_of(r->going + (size_t)host * each, each);
}

static struct span coming_message(const struct call *c, const void *arg, int host)
{
    const struct regrouped *r = arg;
    const size_t each = (size_t)r->level->ranks * r->bytes;

    (void)c;
    return span_of(r->coming + (size_t)host * each, each);
}

static ct_status all_to_all_through_rail(struct call *c, const struct regrouped *r)
{
    const struct rail rail = rail_of(c, r->level);

    return rail_exchange(&rail, going_message, coming_message, r);
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
