/* SPDX-License-Identifier: Apache-2.0 */
/* host_blocks.c - a gather or a scatter between hosts, a piece of each block at a time.  The root
 * and the first rank of each other host put the pieces of a host's ranks into one message. */
#include "collectives/hosts/host_blocks.h"

#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/host_exchange.h"

ct_status host_blocks_run(struct call *c, host_blocks_piece *one_piece)
{
    const struct level l = level_of(c->group, c->group->rank);
    const struct rail rail = rail_of_root(c, &l);
    const size_t n = call_bytes(c), most = piece_of_each(c), piece = n < most ? n : most;
    const int packs = l.host == rail.root_host ? call_is_root(c) : l.rank == 0;
    struct host_blocks p = { .level = &l };
    ct_status status = CT_OK;

    if (packs && !(p.all = call_scratch(c, (size_t)c->group->size * piece)))
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", c->group->size);
    do {
        p.bytes = piece_of(n, p.at, piece);
        status = one_piece(c, &rail, &p);
        p.at += piece;
    } while (status == CT_OK && p.at < n);
    call_scratch_end(c, p.all);
    return status;
}
