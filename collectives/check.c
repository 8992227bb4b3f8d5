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
                              const char *side)
{
    const size_t most = PTRDIFF_MAX / ct_dtype_size(r->dtype);
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

/* Without a GPU backend the host would touch the buffer and die. */
static ct_status check_memory(const struct request_of_call *r, const struct blocks *b)
{
    for (int i = 0; i < (b->list ? b->blocks : 1); i++)
        if (b->blocks > 0 && is_device_memory(b->list ? b->list[i] : b->base))
            return ct_fail(CT_ERR_UNSUPPORTED, "%s: " NO_GPU_BACKEND, verb(r));
    return CT_OK;
}

/* ---- Overlap ------------------------------------------------------------- */

struct range {
    const char *from, *to;
};

static struct range range_of(const struct request_of_call *r, const struct blocks *b, int i)
{
    const struct call c = { .element = ct_dtype_size(r->dtype) };
    const struct span span = block_at(&c, b, i);

    return (struct range){ span.data, span.data ? span.data + span.bytes : NULL };
}

static int overlap(struct range a, struct range b)
{
    if (a.from == a.to || b.from == b.to)
        return 0;
    return (uintptr_t)a.from < (uintptr_t)b.to && (uintptr_t)b.from < (uintptr_t)a.to;
}

static struct range extent(const struct request_of_call *r, const struct blocks *b)
{
    struct range all = { NULL, NULL };

    for (int i = 0; i < b->blocks; i++) {
        const struct range one = range_of(r, b, i);

        if (one.from == one.to)
            continue;
        if (!all.from || (uintptr_t)one.from < (uintptr_t)all.from)
            all.from = one.from;
        if ((uintptr_t)one.to > (uintptr_t)all.to)
            all.to = one.to;
    }
    return all;
}

static int may_be_same(const struct request_of_call *r, int send, int recv)
{
    switch ((enum in_place)r->in_place) {
    case IN_PLACE_WHOLE:
        return send == recv;
    case IN_PLACE_OWN_RECV:
        return recv == r->group->rank;
    case IN_PLACE_OWN_SEND:
        return send == r->group->rank;
    case IN_PLACE_NEVER:
        break;
    }
    return 0;
}

static ct_status check_overlap(const struct request_of_call *r)
{
    const struct range all_send = extent(r, &r->send), all_recv = extent(r, &r->recv);

    if (!overlap(all_send, all_recv))
        return CT_OK;
    for (int i = 0; i < r->send.blocks; i++)
        for (int j = 0; j < r->recv.blocks; j++) {
            const struct range send = range_of(r, &r->send, i), recv = range_of(r, &r->recv, j);

            if (!overlap(send, recv)
                || (may_be_same(r, i, j) && send.from == recv.from && send.to == recv.to))
                continue;
            return ct_fail(CT_ERR_INVALID,
                           "%s: the send and the recv buffer overlap in a way that "
                           "is not \"in place\"",
                           verb(r));
        }
    return CT_OK;
}

ct_status check_call(struct request_of_call *r)
{
    ct_status status = group_resolve_member(r->group, &r->group);

    if (status != CT_OK)
        return ct_fail_in(status, "%s: ", verb(r));
    if (operation_is_barrier(r->operation))
        return CT_OK;
    if (ct_dtype_size(r->dtype) == 0)
        return ct_fail(CT_ERR_INVALID, "%s: %d is no dtype", verb(r), (int)r->dtype);
    status = check_op(r);
    if (status == CT_OK && r->root != NONE && (r->root < 0 || r->root >= r->group->size))
        status = ct_fail(CT_ERR_INVALID, "%s: root %d is not in 0..%d, the ranks of group %s",
                         verb(r), r->root, r->group->size - 1, r->group->name);
    if (status == CT_OK)
        status = check_blocks(r, &r->send, "send");
    if (status == CT_OK)
        status = check_blocks(r, &r->recv, "recv");
    if (status == CT_OK)
        status = check_memory(r, &r->send);
    if (status == CT_OK)
        status = check_memory(r, &r->recv);
    if (status == CT_OK)
        status = check_overlap(r);
    return status;
}
