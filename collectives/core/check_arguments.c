/* SPDX-License-Identifier: Apache-2.0 */
/* check_arguments.c - checks the arguments of every collective, before the call changes anything.
 */
#include <stdlib.h>

#include "collectives/core/call.h"
#include "runtime/types/dtype.h"
#include "runtime/types/premul.h"

static const char *verb(const struct request_of_call *r)
{
    return operation_name(r->operation);
}

static ct_status check_op(const struct request_of_call *r)
{
    unsigned char scalar[PREMUL_SCALAR_BYTES];
    ct_status status;

    if (r->op == NONE)
        return CT_OK;
    if (op_is_premul(r->op)) {
        status = premul_find(r->op, r->dtype, scalar);
        return status == CT_OK ? CT_OK : ct_fail_in(status, "%s: ", verb(r));
    }
    if (!op_is_builtin(r->op))
        return ct_fail(CT_ERR_INVALID, "%s: %d is not an op", verb(r), r->op);
    if (!combine_defined(r->dtype, r->op))
        return ct_fail(CT_ERR_INVALID, "%s: %s has no meaning for %s", verb(r), op_name(r->op),
                       dtype_name(r->dtype));
    return CT_OK;
}

/* Checks the blocks of one side.  A block with elements must not be NULL, and its end must fit into
 * the address space. */
static ct_status arguments_check_blocks(const struct request_of_call *r, const struct blocks *b,
                                        size_t element, const char *side)
{
    const size_t most = PTRDIFF_MAX / element;
    size_t sum = 0;

    for (int i = 0; i < b->blocks; i++) {
        const size_t count = b->counts ? b->counts[i] : b->count;
        const size_t start = b->displs ? b->displs[i] : b->list ? 0 : sum;

        if (count > most || start > most - count)
            return ct_fail(CT_ERR_INVALID, "%s: %zu elements of %s%s are more than memory can hold",
                           verb(r), count, dtype_name(r->dtype),
                           b->blocks > 1 ? " for each rank" : "");
        sum = start + count;
        if (count > 0 && !(b->list ? b->list[i] : b->base))
            return ct_fail(CT_ERR_INVALID,
                           "%s: the %s buffer%s is NULL but %zu elements belong "
                           "there",
                           verb(r), side, b->list ? " of a rank" : "", count);
    }
    return CT_OK;
}

/* ---- Host or device memory -------------------------------------------------------- */

/* Returns 1 if block i is empty or, with counts but no list, if all blocks are empty. */
static int is_empty(const struct blocks *b, int i)
{
    if (b->list || !b->counts)
        return (b->counts ? b->counts[i] : b->count) == 0;
    for (int j = 0; j < b->blocks; j++)
        if (b->counts[j] > 0)
            return 0;
    return 1;
}

/* Finds the kind of memory and the device of one side's buffers.  Skips empty blocks, since their
 * pointers mean nothing.  Fails if a buffer is in other memory than *first. */
static ct_status check_side(const struct request_of_call *r, const struct blocks *b,
                            struct place *place, const void **first)
{
    for (int i = 0; i < (b->list ? b->blocks : b->blocks > 0); i++) {
        const void *const pointer = b->list ? b->list[i] : b->base;
        struct place here;
        ct_status status;

        if (!pointer || is_empty(b, i))
            continue;
        status = place_of(pointer, &here);
        if (status != CT_OK)
            return ct_fail_in(status, "%s: ", verb(r));
        if (!*first)
            *place = here;
        else if (place->space != here.space || place->device != here.device)
            return ct_fail(CT_ERR_INVALID,
                           "%s: one buffer is %s and another %s; all of a call must be in the same "
                           "memory%s",
                           verb(r), place->space ? "device memory" : "host memory",
                           !here.space     ? "host memory"
                           : !place->space ? "device memory"
                                           : "that of another device",
                           here.space && place->space
                               ? ""
                               : " (device memory that was freed counts as host memory)");
        *first = pointer;
    }
    return CT_OK;
}

static ct_status arguments_check_place(const struct request_of_call *r, struct place *place)
{
    const void *first = NULL;
    ct_status status;

    status = check_side(r, &r->send, place, &first);
    return status == CT_OK ? check_side(r, &r->recv, place, &first) : status;
}

/* ---- Overlap ------------------------------------------------------------- */

static int arguments_overlap(struct span a, struct span b)
{
    if (a.bytes == 0 || b.bytes == 0 || !a.data || !b.data)
        return 0;
    return (uintptr_t)a.data < (uintptr_t)b.data + b.bytes
           && (uintptr_t)b.data < (uintptr_t)a.data + a.bytes;
}

/* Returns block i like block_of(), but without adding up the counts of all blocks before it.  A
 * block without a displacement begins at element *start.  Sets *start to the first element behind
 * the block. */
static struct span next_block(const struct blocks *b, size_t element, int i, size_t *start)
{
    const size_t count = b->counts ? b->counts[i] : b->count;
    const size_t at = b->displs ? b->displs[i] : *start;

    *start = at + count;
    if (b->list)
        return (struct span){ b->list[i], count * element };
    return (struct span){ b->base ? (char *)b->base + at * element : NULL, count * element };
}

/* The memory of a block: its first address, and the address behind its last byte.  The two are
 * equal if the block is empty. */
struct argument_piece {
    uintptr_t from, to;
};

static struct argument_piece next_piece(const struct blocks *b, size_t element, int i,
                                        size_t *start)
{
    const struct span block = next_block(b, element, i, start);

    return (struct argument_piece){ (uintptr_t)block.data, (uintptr_t)block.data + block.bytes };
}

static struct span extent_of_any(const struct blocks *b, size_t element, int *apart)
{
    uintptr_t from = UINTPTR_MAX, to = 0;
    size_t start = 0;

    for (int i = 0; i < b->blocks; i++) {
        const struct argument_piece one = next_piece(b, element, i, &start);

        if (one.from == one.to)
            continue;
        *apart &= one.from >= to;
        from = one.from < from ? one.from : from;
        to = one.to > to ? one.to : to;
    }
    return from < to ? (struct span){ (char *)from, to - from } : (struct span){ NULL, 0 };
}

static inline int arguments_is_plain(const struct blocks *b)
{
    return !b->list && !b->counts && !b->displs;
}

/* Returns the range from the first byte to the last byte of all blocks.  Sets *apart to 1 if each
 * block begins at or behind the end of the blocks before it. */
static inline struct span arguments_extent(const struct blocks *b, size_t element, int *apart)
{
    *apart = 1;
    return arguments_is_plain(b) ? (struct span){ b->base, (size_t)b->blocks * b->count * element }
                                 : extent_of_any(b, element, apart);
}

/* Returns the number of the recv block that may be the same memory as block i of send, or -1 if no
 * block may. */
static int place_of_send(const struct request_of_call *r, int rank, int i)
{
    switch ((enum in_place)r->in_place) {
    case IN_PLACE_WHOLE:
        return i;
    case IN_PLACE_OWN_RECV:
        return rank;
    case IN_PLACE_OWN_SEND:
        return i == rank ? 0 : -1;
    case IN_PLACE_NEVER:
        break;
    }
    return -1;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct argument_piece *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

/* Removes empty pieces and sorts the rest by address.  Returns the number of pieces left. */
static int sort_pieces(struct argument_piece *pieces, int count)
{
    int kept = 0, sorted = 1;

    for (int i = 0; i < count; i++) {
        if (pieces[i].from == pieces[i].to)
            continue;
        sorted &= kept == 0 || pieces[kept - 1].from <= pieces[i].from;
        pieces[kept++] = pieces[i];
    }
    if (!sorted)
        qsort(pieces, (size_t)kept, sizeof *pieces, compare_pieces);
    return kept;
}

static ct_status refuse_overlap(const struct request_of_call *r)
{
    return ct_fail(CT_ERR_INVALID,
                   "%s: the send and the recv buffer overlap in a way that is not \"in place\"",
                   verb(r));
}

/* Fails if two pieces of recv overlap, or if a piece of send overlaps a piece of recv. recv and
 * send must be sorted by address. */
static ct_status compare_sides(const struct request_of_call *r, const struct argument_piece *recv,
                               int recvs, const struct argument_piece *send, int sends)
{
    uintptr_t read_to = 0, written_to = 0;

    for (int i = 0, j = 0; i < recvs || j < sends;) {
        const int writes = j == sends || (i < recvs && recv[i].from <= send[j].from);
        const struct argument_piece next = writes ? recv[i++] : send[j++];
        uintptr_t *const to = writes ? &written_to : &read_to;

        if (writes && next.from < written_to)
            return ct_fail(CT_ERR_INVALID, "%s: two blocks of the recv buffer overlap", verb(r));
        if (next.from < (writes ? read_to : written_to))
            return refuse_overlap(r);
        *to = next.to > *to ? next.to : *to;
    }
    return CT_OK;
}

/* Compares all blocks with each other.  For p blocks this takes p log p steps, or p steps if the
 * blocks are in the order of the ranks.  A block that is sent in place is compared only as a block
 * of recv. */
static ct_status arguments_check_pieces(const struct request_of_call *r, size_t element, int rank)
{
    const int recvs = r->recv.blocks, all = recvs + r->send.blocks;
    struct argument_piece few[64], *recv = all > 64 ? malloc((size_t)all * sizeof *recv) : few,
                                   *send;
    size_t start = 0;
    ct_status status;

    if (!recv)
        return ct_fail(CT_ERR_NOMEM, "%s: no memory to look at %d blocks", verb(r), all);
    for (int i = 0; i < recvs; i++)
        recv[i] = next_piece(&r->recv, element, i, &start);
    send = recv + recvs;
    start = 0;
    for (int i = 0; i < r->send.blocks; i++) {
        const int same = place_of_send(r, rank, i);

        send[i] = next_piece(&r->send, element, i, &start);
        if (same >= 0 && same < recvs && send[i].from == recv[same].from
            && send[i].to == recv[same].to)
            send[i].to = send[i].from;
    }
    status =
        compare_sides(r, recv, sort_pieces(recv, recvs), send, sort_pieces(send, r->send.blocks));
    if (recv != few)
        free(recv);
    return status;
}

/* Returns 1 if send and recv overlap as r->in_place allows.  Each side must be one contiguous
 * buffer. */
static int arguments_is_in_place(const struct request_of_call *r, struct span send,
                                 struct span recv, int rank)
{
    switch ((enum in_place)r->in_place) {
    case IN_PLACE_WHOLE:
        return send.data == recv.data && send.bytes == recv.bytes
               && r->send.blocks == r->recv.blocks;
    case IN_PLACE_OWN_RECV:
        return r->send.blocks == 1 && r->send.count == r->recv.count
               && send.data == recv.data + (size_t)rank * send.bytes;
    case IN_PLACE_OWN_SEND:
        return r->recv.blocks == 1 && r->send.count == r->recv.count
               && recv.data == send.data + (size_t)rank * recv.bytes;
    case IN_PLACE_NEVER:
        break;
    }
    return 0;
}

static ct_status check_overlap(const struct request_of_call *r, size_t element, int rank)
{
    int sends_apart, recvs_apart;
    const struct span send = arguments_extent(&r->send, element, &sends_apart),
                      recv = arguments_extent(&r->recv, element, &recvs_apart);

    if (recvs_apart && !arguments_overlap(send, recv))
        return CT_OK;
    if (!arguments_is_plain(&r->send) || !arguments_is_plain(&r->recv))
        return arguments_check_pieces(r, element, rank);
    return arguments_is_in_place(r, send, recv, rank) ? CT_OK : refuse_overlap(r);
}

ct_status check_call(const struct request_of_call *r, ct_group **group, struct place *place)
{
    ct_status status = group_resolve_member(r->group, group);
    size_t element;

    if (status != CT_OK)
        return ct_fail_in(status, "%s: ", verb(r));
    *place = (struct place){ NULL, NULL };
    if (operation_is_barrier(r->operation))
        return CT_OK;
    element = ct_dtype_size(r->dtype);
    if (element == 0)
        return ct_fail(CT_ERR_INVALID, "%s: %d is not a dtype", verb(r), (int)r->dtype);
    status = check_op(r);
    if (status == CT_OK && r->root != NONE && (r->root < 0 || r->root >= (*group)->size))
        status = ct_fail(CT_ERR_INVALID, "%s: root %d is not in 0..%d, the ranks of group %s",
                         verb(r), r->root, (*group)->size - 1, (*group)->name);
    if (status == CT_OK)
        status = arguments_check_blocks(r, &r->send, element, "send");
    if (status == CT_OK)
        status = arguments_check_blocks(r, &r->recv, element, "recv");
    if (status == CT_OK && spaces_are_there())
        status = arguments_check_place(r, place);
    if (status == CT_OK)
        status = check_overlap(r, element, (*group)->rank);
    return status;
}
