/* SPDX-License-Identifier: Apache-2.0 */
/* rail_chain.c - a broadcast from host to host, in segments.  Each host sends a segment on while it
 * receives the next.
 *
 * Each wire carries the buffer once, also the root's wire.  In a tree the root sends the buffer
 * log2(h) times.  Cost for s segments: (s + h - 2) (alpha + n/s beta).
 * [pipelined chain: Open MPI coll/base pipeline; Watts & van de Geijn 1995] */
#include "collectives/hosts/rail.h"

#include "collectives/core/pipeline_segment.h"
#include "collectives/core/shm_exchange.h"

ct_status rail_broadcast_chain(const struct rail *rail, int host, struct span data)
{
    const int next = (rail->host + 1) % rail->hosts;
    const int before = (rail->host + rail->hosts - 1) % rail->hosts;
    const int is_first = rail->host == host, is_last = next == host;
    const int right = rail_peer(rail, next), left = rail_peer(rail, before);
    const size_t segment =
        pipeline_segment(rail->call->network, pipeline_of_chain(rail->hosts), data.bytes);
    struct span here = span_of(data.data, piece_of(data.bytes, 0, segment));
    ct_status status = is_first ? CT_OK : recv_from(rail->call, left, here);

    while (status == CT_OK) {
        const size_t at = (size_t)(here.data - data.data) + here.bytes;
        const struct span more = span_of(data.data + at, piece_of(data.bytes, at, segment));

        if (is_first || more.bytes == 0)
            status = is_last ? CT_OK : send_to(rail->call, right, here);
        else
            status = is_last ? recv_from(rail->call, left, more)
                             : exchange(rail->call, right, here, left, more);
        if (more.bytes == 0)
            break;
        here = more;
    }
    return status;
}
