/* SPDX-License-Identifier: Apache-2.0 */
/* rail_exchange.c - each host of a rail sends a message to each other host.
 *
 * In step s a host sends to the s-th host after it and receives from the s-th host before it.  If
 * the bytes are few, all steps run together.  If all hosts send many bytes to all others at once,
 * their packets meet at a switch, some are dropped, and the call takes up to twice as long
 * (incast).  So steps run together only until they have as many bytes as cross the wire in some
 * round trips (rail_bytes_together()).
 * Cost: alpha + (h-2) o + (h-1) n beta for few bytes, else at most 9/8 (h-1) n beta. */
#include "collectives/hosts/rail.h"

ct_status rail_exchange(const struct rail *rail, rail_span *out, rail_span *in, const void *arg)
{
    const struct call *const c = rail->call;
    /* The rails of a host share its wire. */
    const double together = rail_bytes_together(c->network) / c->group->order.host_least;
    const int h = rail->hosts;
    ct_status status = CT_OK;

    for (int step = 1; step < h && status == CT_OK;) {
        size_t bytes = 0;
        struct batch batch;

        status = batch_begin(&batch, rail->call, 2 * (h - step));
        if (status != CT_OK)
            break;
        do {
            const int to = (rail->host + step) % h, from = (rail->host - step + h) % h;
            const struct span sent = out(c, arg, to);

            batch_recv(&batch, rail_peer(rail, from), in(c, arg, from));
            batch_send(&batch, rail_peer(rail, to), sent);
            bytes += sent.bytes;
        } while (++step < h && (double)bytes < together);
        status = batch_wait(&batch);
    }
    return status;
}
