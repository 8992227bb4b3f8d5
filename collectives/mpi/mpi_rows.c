/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_rows.c - the algorithm "mpi" of each operation, in which one MPI operation carries out the
 * call.
 *
 * The algorithm fits only calls for which MPIs do exactly what ct.h says.
 * MPI moves data as bytes, whatever the type.
 * MPI reduces integers of 32 and 64 bits, since their results do not depend on the order.  It does
 * not reduce MIN and MAX of unsigned integers, which MPICH 4.0.2 compares as signed.  It does not
 * reduce shorter integers, since Open MPI 4 and 5 saturate their sums on processors with AVX.
 * MPI reduces f32 and f64 only with CT_ORDER=fast, since MPI chooses the order.  It never reduces
 * their MIN and MAX, since MPI does not define the result for NaN.
 * All other calls (other types, AVG, the v forms) use libct's algorithms, which send their messages
 * over MPI. */
#include <string.h>

#include "collectives/core/algorithms.h"
#include "collectives/core/sendrecv.h"
#include "collectives/mpi/mpi_group.h"

static int fits_move(const struct call *c)
{
    return c->group->mpi && sizes_are_agreed(c) && !operation_has_counts(c->signature.operation);
}

static int is_native(const struct call *c)
{
    const ct_op op = call_op(c);
    const int is_extreme = op == CT_MIN || op == CT_MAX;

    switch (call_dtype(c)) {
    case CT_I32:
    case CT_I64:
        return op != CT_AVG;
    case CT_U32:
    case CT_U64:
        return op != CT_AVG && !is_extreme;
    case CT_F32:
    case CT_F64:
        return (op == CT_SUM || op == CT_PRODUCT) && c->group->order.rule == ORDER_FAST;
    default:
        return 0;
    }
}

static int fits_reduction(const struct call *c)
{
    return fits_move(c) && is_native(c);
}

static int fits_reduce_scatter(const struct call *c)
{
    return fits_reduction(c) && c->signature.count <= PLUGIN_MOST;
}

/* ---- Blocks ------------------------------------------------------------------------- */

/* The blocks of send or recv, one behind the other.  The blocks of a list are copied to scratch
 * memory.  After a failure MPI may still use the scratch memory, so it is never given back. */
struct packed_blocks {
    char *data;
    char *made; /* scratch memory; NULL if data is the buffer itself */
};

static ct_status mpi_rows_pack(const struct call *c, const struct blocks *b, int fill,
                               struct packed_blocks *p)
{
    const size_t block = call_bytes(c);

    *p = (struct packed_blocks){ .data = b->base };
    if (!b->list)
        return CT_OK;
    p->data = p->made = call_scratch(c, (size_t)b->blocks * block + 1);
    if (!p->made)
        return ct_fail(CT_ERR_NOMEM, "no memory for the blocks of %d ranks", b->blocks);
    for (int i = 0; fill && i < b->blocks; i++)
        copy_span(span_of(p->data + (size_t)i * block, block), block_at(c, b, i).data);
    return CT_OK;
}

static void unpack(const struct call *c, const struct blocks *b, const struct packed_blocks *p)
{
    const size_t block = call_bytes(c);

    for (int i = 0; p->made && i < b->blocks; i++)
        copy_span(block_at(c, b, i), p->data + (size_t)i * block);
    call_scratch_end(c, p->made);
}

/* Runs an MPI operation that moves blocks. */
static ct_status mpi_rows_move(struct call *c, enum mpi_kind kind)
{
    const int own = c->group->rank;
    struct packed_blocks send, recv;
    struct mpi_call operation = { .kind = kind,
                                  .count = call_bytes(c),
                                  .other = c->signature.root };
    ct_status status = mpi_rows_pack(c, &c->send, 1, &send);

    if (status == CT_OK)
        status = mpi_rows_pack(c, &c->recv, 0, &recv);
    if (status != CT_OK) {
        call_scratch_end(c, send.made);
        return status;
    }
    operation.send = send.data;
    operation.recv = recv.data;
    if (c->send.blocks == 1 && c->recv.blocks > 1) /* this rank's block of recv */
        operation.in_place = send.data == recv.data + (size_t)own * call_bytes(c);
    else if (c->recv.blocks == 1 && c->send.blocks > 1)
        operation.in_place = recv.data == send.data + (size_t)own * call_bytes(c);
    else
        operation.in_place = c->send.blocks > 0 && c->recv.blocks > 0 && send.data == recv.data;
    status = mpi_group_run(c, &operation);
    if (status == CT_OK) {
        unpack(c, &c->recv, &recv);
        call_scratch_end(c, send.made);
    }
    return status;
}

/* ---- The operations ------------------------------------------------------------------- */

static ct_status barrier_mpi_run(struct call *c)
{
    return mpi_group_run(c, &(struct mpi_call){ .kind = BY_MPI_BARRIER });
}

static ct_status broadcast_mpi_run(struct call *c)
{
    return mpi_group_run(c, &(struct mpi_call){ .kind = BY_MPI_BROADCAST,
                                                .recv = block_at(c, &c->recv, 0).data,
                                                .count = call_bytes(c),
                                                .other = c->signature.root });
}

static ct_status gather_mpi_run(struct call *c)
{
    return mpi_rows_move(c, BY_MPI_GATHER);
}

static ct_status all_gather_mpi_run(struct call *c)
{
    return mpi_rows_move(c, BY_MPI_ALL_GATHER);
}

static ct_status scatter_mpi_run(struct call *c)
{
    return mpi_rows_move(c, BY_MPI_SCATTER);
}

static ct_status all_to_all_mpi_run(struct call *c)
{
    return mpi_rows_move(c, BY_MPI_ALL_TO_ALL);
}

/* Runs a reduction in pieces if its count is larger than PLUGIN_MOST. */
static ct_status reduce_pieces(struct call *c, enum mpi_kind kind)
{
    const char *send = block_at(c, &c->send, 0).data;
    char *recv = c->recv.blocks ? block_at(c, &c->recv, 0).data : NULL;
    const size_t count = (size_t)c->signature.count;
    size_t at = 0;
    ct_status status;

    do {
        const size_t piece = count - at < PLUGIN_MOST ? count - at : PLUGIN_MOST;

        status = mpi_group_run(c, &(struct mpi_call){ .kind = kind,
                                                      .send = send + at * c->element,
                                                      .recv = recv ? recv + at * c->element : NULL,
                                                      .in_place = recv && send == recv,
                                                      .count = piece,
                                                      .dtype = call_dtype(c),
                                                      .op = call_op(c),
                                                      .other = c->signature.root });
        at += piece;
    } while (status == CT_OK && at < count);
    return status;
}

static ct_status reduce_mpi_run(struct call *c)
{
    return reduce_pieces(c, BY_MPI_REDUCE);
}

static ct_status all_reduce_mpi_run(struct call *c)
{
    return reduce_pieces(c, BY_MPI_ALL_REDUCE);
}

/* Uses scratch memory for the result, since in place the result is a block of the input, which MPI
 * does not support. */
static ct_status reduce_scatter_mpi_run(struct call *c)
{
    const struct span own = block_at(c, &c->recv, 0);
    struct packed_blocks send;
    char *result = call_scratch(c, own.bytes + 1);
    ct_status status = result
                           ? mpi_rows_pack(c, &c->send, 1, &send)
                           : ct_fail(CT_ERR_NOMEM, "no memory for a block of %zu bytes", own.bytes);

    if (status != CT_OK) {
        call_scratch_end(c, result);
        return status;
    }
    status = mpi_group_run(c, &(struct mpi_call){ .kind = BY_MPI_REDUCE_SCATTER,
                                                  .send = send.data,
                                                  .recv = result,
                                                  .count = (size_t)c->signature.count,
                                                  .dtype = call_dtype(c),
                                                  .op = call_op(c) });
    if (status == CT_OK) {
        copy_span(own, result);
        call_scratch_end(c, result);
        call_scratch_end(c, send.made);
    }
    return status;
}

#define ROW(operation, which)                                                             \
    const struct algorithm operation##_mpi = {                                            \
        .name = "mpi", .backend = "mpi", .fits = fits_##which, .run = operation##_mpi_run \
    }
ROW(barrier, move);
ROW(broadcast, move);
ROW(reduce, reduction);
ROW(all_reduce, reduction);
ROW(reduce_scatter, reduce_scatter);
ROW(gather, move);
ROW(all_gather, move);
ROW(scatter, move);
ROW(all_to_all, move);
