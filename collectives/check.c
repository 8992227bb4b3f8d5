/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the arguments of every collective, checked once, before anything happens. */
#include "collectives/check.h"

#include "runtime/premul.h"
#include "runtime/space.h"

static const char *verb(const struct request_of_call *r)
{
    return operation_name(r->operation);
}

static ct_status check_op(const struct request_of_call *r)
{
    unsigned char scalar[16];
    ct_status status;

    if (r->op == NONE)
        return CT_OK;
    if (r->op >= 256) {
        status = premul_find(r->op, r->dtype, scalar);
        return status == CT_OK ? CT_OK : ct_fail_in(status, "%s: ", verb(r));
    }
    if (r->op < 0 || r->op > CT_BXOR)
        return ct_fail(CT_ERR_INVALID, "%s: %d is no op", verb(r), r->op);
    if (!combine_defined(r->dtype, r->op))
        return ct_fail(CT_ERR_INVALID, "%s: %s has no meaning for %s", verb(r), op_name(r->op),
                       dtype_name(r->dtype));
    return CT_OK;
}

/* One side: no NULL where there is something, and all of it within an address space. */
static ct_status check_blocks(const struct request_of_call *r, const struct blocks *b,
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

/* ---- Whose memory -------------------------------------------------------- */

/* All of them, or block i of a list. */
static int is_empty(const struct blocks *b, int i)
{
    if (b->list || !b->counts)
        return (b->counts ? b->counts[i] : b->count) == 0;
    for (int j = 0; j < b->blocks; j++)
        if (b->counts[j] > 0)
            return 0;
    return 1;
}

/* Where nothing is there is no memory either: ranks may give NULL there, or not. */
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

static ct_status check_place(const struct request_of_call *r, struct place *place)
{
    const void *first = NULL;
    ct_status status;

    status = check_side(r, &r->send, place, &first);
    return status == CT_OK ? check_side(r, &r->recv, place, &first) : status;
}

/* ---- Overlap ------------------------------------------------------------- */

static int overlap(struct span a, struct span b)
{
    if (a.bytes == 0 || b.bytes == 0 || !a.data || !b.data)
        return 0;
    return (uintptr_t)a.data < (uintptr_t)b.data + b.bytes
           && (uintptr_t)b.data < (uintptr_t)a.data + a.bytes;
}

/* From the first byte of all blocks to the last. */
static struct span extent(const struct blocks *b, size_t element)
{
    uintptr_t from = UINTPTR_MAX, to = 0;

    if (!b->list && !b->counts && !b->displs)
        return (struct span){ b->base, (size_t)b->blocks * b->count * element };
    for (int i = 0; i < b->blocks; i++) {
        const struct span one = block_of(b, element, i);

        if (one.bytes == 0)
            continue;
        if ((uintptr_t)one.data < from)
            from = (uintptr_t)one.data;
        if ((uintptr_t)one.data + one.bytes > to)
            to = (uintptr_t)one.data + one.bytes;
    }
    return from < to ? (struct span){ (char *)from, to - from } : (struct span){ NULL, 0 };
}

static int may_be_same(const struct request_of_call *r, int rank, int send, int recv)
{
    switch ((enum in_place)r->in_place) {
    case IN_PLACE_WHOLE:
        return send == recv;
    case IN_PLACE_OWN_RECV:
        return recv == rank;
    case IN_PLACE_OWN_SEND:
        return send == rank;
    case IN_PLACE_NEVER:
        break;
    }
    return 0;
}

static ct_status check_overlap(const struct request_of_call *r, size_t element, int rank)
{
    if (!overlap(extent(&r->send, element), extent(&r->recv, element)))
        return CT_OK;
    for (int i = 0; i < r->send.blocks; i++)
        for (int j = 0; j < r->recv.blocks; j++) {
            const struct span send = block_of(&r->send, element, i),
                              recv = block_of(&r->recv, element, j);

            if (!overlap(send, recv)
                || (may_be_same(r, rank, i, j) && send.data == recv.data
                    && send.bytes == recv.bytes))
                continue;
            return ct_fail(CT_ERR_INVALID,
                           "%s: the send and the recv buffer overlap in a way that "
                           "is not \"in place\"",
                           verb(r));
        }
    return CT_OK;
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
        return ct_fail(CT_ERR_INVALID, "%s: %d is no dtype", verb(r), (int)r->dtype);
    status = check_op(r);
    if (status == CT_OK && r->root != NONE && (r->root < 0 || r->root >= (*group)->size))
        status = ct_fail(CT_ERR_INVALID, "%s: root %d is not in 0..%d, the ranks of group %s",
                         verb(r), r->root, (*group)->size - 1, (*group)->name);
    if (status == CT_OK)
        status = check_blocks(r, &r->send, element, "send");
    if (status == CT_OK)
        status = check_blocks(r, &r->recv, element, "recv");
    if (status == CT_OK && spaces_are_there())
        status = check_place(r, place);
    if (status == CT_OK)
        status = check_overlap(r, element, (*group)->rank);
    return status;
}
