/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast_ring.c - from the root round to the rank before it, in segments: each rank sends one
 * on while it receives the next.
 *
 * Each wire carries the buffer once, also the root's; the root of a tree sends it log2(p) times.
 * Segments are small enough to be sent eagerly, so no sender waits for an answer.
 * Cost for s segments: (s + p - 2) (alpha + n/s beta); p-2 segments more than one wire takes.
 * [pipelined chain: Open MPI coll/base pipeline; Watts & van de Geijn 1995] */
#include "collectives/core/shm_exchange.h"
#include "collectives/hosts/pipeline_segment.h"

static ct_status broadcast_ring_run(struct call *c)
{
    const int p = c->group->size, rank = c->group->rank, root = c->signature.root;
    const int right = (rank + 1) % p, left = (rank + p - 1) % p, is_last = right == root;
    const struct span buf = block_at(c, &c->recv, 0);
    struct span here = span_of(buf.data, piece_of(buf.bytes, 0, BROADCAST_SEGMENT));
    ct_status status = rank == root ? CT_OK : recv_from(c, left, here);

    while (status == CT_OK) {
        const size_t at = (size_t)(here.data - buf.data) + here.bytes;
        const struct span next = span_of(buf.data + at, piece_of(buf.bytes, at, BROADCAST_SEGMENT));

        if (rank == root || next.bytes == 0)
            status = is_last ? CT_OK : send_to(c, right, here);
        else
            status = is_last ? recv_from(c, left, next) : exchange(c, right, here, left, next);
        if (next.bytes == 0)
            break;
        here = next;
    }
    return status;
}

const struct algorithm broadcast_ring = { "ring", NULL, broadcast_ring_run, 0, NULL };
