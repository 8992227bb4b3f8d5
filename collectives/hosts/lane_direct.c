/* SPDX-License-Identifier: Apache-2.0 */
/* lane_direct.c - among few hosts each sends to each.
 *
 * Few bytes in one step: each (or the root) gets the partial results of all and folds them.  Many
 * bytes in parts (two_shot.c): each folds its part of all and sends that to all, or to the root.
 * Cost: alpha + (h-1) (o + n beta) for a host that gets all; in parts 2 (alpha + (h-1) o) +
 * 2n(h-1)/h beta.  [Rabenseifner 2004] */
#include <stdlib.h>

#include "collectives/core/shm_exchange.h"
#include "collectives/core/two_shot.h"
#include "collectives/hosts/lane_tree.h"

/* What a root folds while the next pieces come: small enough to be sent eagerly. */
#define PIECE ((size_t)EAGER_OVER_SOCKETS)

static int peer_number(const void *arg, int host)
{
    return lane_peer(arg, host);
}

static ct_status fold_and_divide(struct call *c, const void *arg, struct span dst,
                                 const void *const *sources)
{
    fold_hosts(c, dst.data, sources, dst.bytes);
    lane_average(arg, dst);
    return CT_OK;
}

/* Pieces of all hosts on their way to this one, of which two are under way at a time. */
struct arrivals {
    const struct lane *lane;
    struct span data;     /* this host's, and the result's place */
    char *room;           /* [2][hosts] of PIECE bytes */
    const void **sources; /* [hosts] */
    struct batch batch[2];
};

static struct span piece_at(const struct arrivals *a, size_t at)
{
    return span_of(a->data.data + at, piece_of(a->data.bytes, at, PIECE));
}

static char *place(const struct arrivals *a, size_t at, int host)
{
    const size_t room = a->data.bytes < PIECE ? a->data.bytes : PIECE;

    return a->room + ((at / PIECE % 2) * (size_t)a->lane->hosts + (size_t)host) * room;
}

static ct_status begin_piece(struct arrivals *a, size_t at)
{
    struct batch *batch = &a->batch[at / PIECE % 2];
    const ct_status status = batch_begin(batch, a->lane->call, a->lane->hosts);

    for (int host = 0; host < a->lane->hosts && status == CT_OK; host++)
        if (host != a->lane->host)
            batch_recv(batch, lane_peer(a->lane, host),
                       span_of(place(a, at, host), piece_at(a, at).bytes));
    if (status == CT_OK)
        batch_start(batch);
    return status;
}

static ct_status end_piece(struct arrivals *a, size_t at)
{
    const struct span piece = piece_at(a, at);
    const ct_status status = batch_wait(&a->batch[at / PIECE % 2]);

    for (int host = 0; host < a->lane->hosts; host++)
        a->sources[host] = host == a->lane->host ? piece.data : place(a, at, host);
    return status == CT_OK ? fold_and_divide(a->lane->call, a->lane, piece, a->sources) : status;
}

static ct_status fold_here(const struct lane *lane, struct span data)
{
    const size_t hosts = (size_t)lane->hosts, room = data.bytes < PIECE ? data.bytes : PIECE;
    struct arrivals a = { .lane = lane,
                          .data = data,
                          .room = call_scratch(lane->call, 2 * hosts * room),
                          .sources = malloc(hosts * sizeof *a.sources) };
    size_t at = 0;
    ct_status status = a.room && a.sources
                           ? begin_piece(&a, 0)
                           : ct_fail(CT_ERR_NOMEM, "no memory for %d hosts", lane->hosts);

    do {
        if (status == CT_OK && at + PIECE < data.bytes)
            status = begin_piece(&a, at + PIECE);
        if (status == CT_OK)
            status = end_piece(&a, at);
        at += PIECE;
    } while (status == CT_OK && at < data.bytes);
    batch_cancel(&a.batch[0]);
    batch_cancel(&a.batch[1]);
    call_scratch_end(lane->call, a.room);
    free(a.sources);
    return status;
}

static ct_status send_in_pieces(const struct lane *lane, int host, struct span data)
{
    size_t at = 0;
    ct_status status;

    do {
        status = send_to(lane->call, lane_peer(lane, host),
                         span_of(data.data + at, piece_of(data.bytes, at, PIECE)));
        at += PIECE;
    } while (status == CT_OK && at < data.bytes);
    return status;
}

/* All of each goes to each. */
static ct_status one_step(const struct lane *lane, struct span in, struct span out)
{
    const int h = lane->hosts;
    const void **sources = malloc((size_t)h * sizeof *sources);
    char *arrived = call_scratch(lane->call, (size_t)h * in.bytes);
    struct batch batch;
    ct_status status = batch_begin(&batch, lane->call, 2 * h);

    if (status == CT_OK && (!sources || !arrived))
        status = ct_fail(CT_ERR_NOMEM, "no memory for %d hosts", h);
    for (int host = 0; host < h && status == CT_OK; host++) {
        sources[host] = host == lane->host ? in.data : arrived + (size_t)host * in.bytes;
        if (host != lane->host)
            batch_recv(&batch, lane_peer(lane, host), span_of(sources[host], in.bytes));
    }
    for (int step = 1; step < h && status == CT_OK; step++)
        batch_send(&batch, lane_peer(lane, (lane->host + step) % h), in);
    if (status == CT_OK)
        status = batch_wait(&batch);
    else
        batch_cancel(&batch);
    if (status == CT_OK)
        status = fold_and_divide(lane->call, lane, out, sources);
    call_scratch_end(lane->call, arrived);
    free(sources);
    return status;
}

ct_status lane_all_reduce_direct(const struct lane *lane, struct span in, struct span out)
{
    const struct two_shot_peers peers = { .count = lane->hosts,
                                          .own = lane->host,
                                          .rank = peer_number,
                                          .fold = fold_and_divide,
                                          .arg = lane };

    return lane_takes_one_step(lane->hosts, in.bytes) ? one_step(lane, in, out)
                                                      : two_shot(lane->call, &peers, in, out);
}

ct_status lane_reduce_direct(const struct lane *lane, int host, struct span data)
{
    return lane->host == host ? fold_here(lane, data) : send_in_pieces(lane, host, data);
}

ct_status lane_broadcast_direct(const struct lane *lane, int host, struct span data)
{
    struct batch batch;
    ct_status status;

    if (lane->host != host)
        return recv_from(lane->call, lane_peer(lane, host), data);
    status = batch_begin(&batch, lane->call, lane->hosts);
    for (int to = 0; to < lane->hosts && status == CT_OK; to++)
        if (to != host)
            batch_send(&batch, lane_peer(lane, to), data);
    return status == CT_OK ? batch_wait(&batch) : status;
}
