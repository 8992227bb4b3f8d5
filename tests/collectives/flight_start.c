/* SPDX-License-Identifier: Apache-2.0 */
/* flight_start.c - making the call of a case, by the algorithm that it names.
 *
 * Arrays that the library has to copy are overwritten as soon as the call is made. */
#include <string.h>

#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/call.h"
#include "collectives/registry.h"
#include "tests/collectives/flight.h"

enum { GARBAGE = 0xa5 };

/* How many of an operation's algorithms can do the call; *row is the which-th of them from 1 on, -1
 * where there is none. */
static unsigned fitting(const struct pick *c, ct_group *group, unsigned which, int *row)
{
    const int operation = case_operation(c);
    const struct algorithm *const *const rows = operation_algorithms(operation);
    const struct call call = {
        .group = group,
        .element = ct_dtype_size(c->dtype),
        .signature = { .count = c->kind == BARRIER || c->form == V ? 0 : c->count,
                       .operation = (uint8_t)operation,
                       .dtype = (uint8_t)c->dtype,
                       .op = (int16_t)(!has_op(c->kind)      ? -1
                                       : c->op == PREMUL_SUM ? CT_SUM
                                                             : c->op),
                       .root = has_root(c->kind) ? case_root(c, ct_size(group)) : -1 },
    };
    unsigned count = 0;

    *row = -1;
    for (int i = 0; rows[i]; i++)
        if ((!rows[i]->fits || rows[i]->fits(&call)) && ++count == which)
            *row = i;
    return count;
}

unsigned flight_rows(const struct pick *pick, ct_group *group)
{
    int row;

    return fitting(pick, group, 0, &row);
}

/* As CT_<OPERATION>=name would. */
static void force_row(struct flight *f)
{
    const int operation = case_operation(&f->pick);
    int row;

    fitting(&f->pick, f->group, f->pick.row, &row);
    f->group->algorithms.choices->count[operation] = row >= 0;
    f->group->algorithms.choices->overrides[operation][0] =
        (struct algorithm_override){ .row = row, .upto = SIZE_MAX };
    f->row = row < 0 ? "" : operation_algorithms(operation)[row]->name;
}

/* A rank to which nothing of a side belongs gives NULL, or memory that must stay as it is. */
static char *base(const struct flight *f, const struct side *side, char *at)
{
    return side->blocks || f->pick.seed % 2 ? at + side->start : NULL;
}

static ct_status start_list(struct flight *f, char *send, char *recv, int root, ct_work **work)
{
    const struct pick *c = &f->pick;
    const void *out[MAX_RANKS] = { NULL };
    void *in[MAX_RANKS] = { NULL };
    ct_group *g = f->group;
    ct_status status;

    for (int i = 0; i < f->send_side.blocks; i++)
        out[i] = f->given_send + f->send_side.at[i];
    for (int i = 0; i < f->recv_side.blocks; i++)
        in[i] = f->given_recv + f->recv_side.at[i];
    send = f->send_side.blocks == 1 ? f->given_send + f->send_side.at[0] : send;
    recv = f->recv_side.blocks == 1 ? f->given_recv + f->recv_side.at[0] : recv;
    switch (c->kind) {
    case REDUCE_SCATTER:
        status = ct_reduce_scatter_list(g, out, recv, c->count, c->dtype,
                                        f->premul ? f->premul : c->op, work);
        break;
    case GATHER:
        status = ct_gather_list(g, send, in, c->count, c->dtype, root, work);
        break;
    case ALL_GATHER:
        status = ct_all_gather_list(g, send, in, c->count, c->dtype, work);
        break;
    case SCATTER:
        status = ct_scatter_list(g, out, recv, c->count, c->dtype, root, work);
        break;
    default:
        status = ct_all_to_all_list(g, out, in, c->count, c->dtype, work);
    }
    memset(out, GARBAGE, sizeof out); /* the call has copied them */
    memset(in, GARBAGE, sizeof in);
    return status;
}

static ct_status start_v(struct flight *f, char *send, char *recv, int root, ct_work **work)
{
    const struct pick *c = &f->pick;
    struct side out = f->send_side, in = f->recv_side;
    const int packed = c->seed % 3 == 0;
    const size_t *const out_displs = packed ? NULL : out.displs;
    const size_t *const in_displs = packed ? NULL : in.displs;
    size_t counts[MAX_RANKS];
    ct_group *g = f->group;
    ct_status status;

    for (int i = 0; i < ct_size(g); i++)
        counts[i] = case_count(c, 0, i);
    switch (c->kind) {
    case REDUCE_SCATTER:
        status = ct_reduce_scatter_v(g, send, recv, counts, c->dtype, f->premul ? f->premul : c->op,
                                     work);
        break;
    case GATHER:
        status =
            ct_gather_v(g, send, out.count[0], recv, in.count, in_displs, c->dtype, root, work);
        break;
    case ALL_GATHER:
        status = ct_all_gather_v(g, send, out.count[0], recv, in.count, in_displs, c->dtype, work);
        break;
    case SCATTER:
        status =
            ct_scatter_v(g, send, out.count, out_displs, recv, in.count[0], c->dtype, root, work);
        break;
    default:
        status = ct_all_to_all_v(g, send, out.count, out_displs, recv, in.count, in_displs,
                                 c->dtype, work);
    }
    memset(counts, GARBAGE, sizeof counts);
    memset(&out, GARBAGE, sizeof out);
    memset(&in, GARBAGE, sizeof in);
    return status;
}

static ct_status start_plain(struct flight *f, char *send, char *recv, int root, ct_work **work)
{
    const struct pick *c = &f->pick;
    const ct_op op = f->premul ? f->premul : c->op;
    ct_group *g = f->group;

    switch (c->kind) {
    case BROADCAST:
        return ct_broadcast(g, recv, c->count, c->dtype, root, work);
    case REDUCE:
        return ct_reduce(g, send, recv, c->count, c->dtype, op, root, work);
    case ALL_REDUCE:
        return ct_all_reduce(g, send, recv, c->count, c->dtype, op, work);
    case REDUCE_SCATTER:
        return ct_reduce_scatter(g, send, recv, c->count, c->dtype, op, work);
    case GATHER:
        return ct_gather(g, send, recv, c->count, c->dtype, root, work);
    case ALL_GATHER:
        return ct_all_gather(g, send, recv, c->count, c->dtype, work);
    case SCATTER:
        return ct_scatter(g, send, recv, c->count, c->dtype, root, work);
    case ALL_TO_ALL:
        return ct_all_to_all(g, send, recv, c->count, c->dtype, work);
    default:
        return ct_barrier(g, work);
    }
}

/* The receive is posted first, since a send may block until it is received. */
static ct_status start_shift(struct flight *f, char *send, char *recv)
{
    const struct pick *c = &f->pick;
    const int p = ct_size(f->group), me = ct_rank(f->group), step = case_root(c, p);
    const int right = (me + step) % p, left = (me + p - step) % p, tag = c->number % 3;
    ct_status status;

    if (!c->asynchronous && step > 0 && c->seed % 2) { /* the other way round: it is the send */
        status = ct_isend(f->group, send, c->count, c->dtype, right, tag, &f->works[0]);
        f->count = status == CT_OK;
        return status == CT_OK ? ct_recv(f->group, recv, c->count, c->dtype, left, tag, NULL)
                               : status;
    }
    status = ct_irecv(f->group, recv, c->count, c->dtype, left, tag, &f->works[0]);
    f->count = status == CT_OK;
    if (status == CT_OK && !c->asynchronous)
        return ct_send(f->group, send, c->count, c->dtype, right, tag);
    if (status == CT_OK)
        status = ct_isend(f->group, send, c->count, c->dtype, right, tag, &f->works[1]);
    f->count += status == CT_OK;
    return status;
}

static ct_status start_many_to_one(struct flight *f, char *send, char *recv)
{
    const struct pick *c = &f->pick;
    const int p = ct_size(f->group), root = case_root(c, p), tag = 1000 + c->number;
    const size_t block = c->count * ct_dtype_size(c->dtype);
    ct_status status = CT_OK;

    if (ct_rank(f->group) != root) {
        if (!c->asynchronous)
            return ct_send(f->group, send, c->count, c->dtype, root, tag);
        status = ct_isend(f->group, send, c->count, c->dtype, root, tag, &f->works[0]);
        f->count = status == CT_OK;
        return status;
    }
    for (int i = 0; i < p - 1 && status == CT_OK; i++) {
        char *const to = recv + (size_t)i * block;

        if (!c->asynchronous) {
            status = ct_recv(f->group, to, c->count, c->dtype, CT_ANY_SOURCE, tag, &f->from[i]);
        } else {
            status = ct_irecv(f->group, to, c->count, c->dtype, CT_ANY_SOURCE, tag, &f->works[i]);
            f->count += status == CT_OK;
        }
    }
    return status;
}

ct_status flight_start(struct flight *f)
{
    const struct pick *c = &f->pick;
    const int root = case_root(c, ct_size(f->group));
    char *const send = base(f, &f->send_side, f->given_send);
    char *const recv = base(f, &f->recv_side, f->given_recv);
    ct_work **const work = c->asynchronous ? &f->works[0] : NULL;
    ct_status status = CT_OK;

    if (c->kind == SHIFT)
        return start_shift(f, send, recv);
    if (c->kind == MANY_TO_ONE)
        return start_many_to_one(f, send, recv);
    force_row(f);
    if (has_op(c->kind) && c->op == PREMUL_SUM) {
        _Alignas(16) char scalar[16];

        case_scalar(c, ct_rank(f->group), scalar);
        status = ct_op_premul(scalar, c->dtype, &f->premul);
    }
    if (status == CT_OK)
        status = (c->form == LIST ? start_list
                  : c->form == V  ? start_v
                                  : start_plain)(f, send, recv, root, work);
    f->count = work != NULL;
    return status;
}

ct_status flight_wait(struct flight *f)
{
    ct_status status = CT_OK;

    for (int i = 0; i < f->count; i++) {
        int done = 0;
        ct_status one = f->works[i] && (f->pick.seed + (uint64_t)i) % 4 == 0
                            ? ct_test(f->works[i], &done)
                            : CT_OK;

        if (one == CT_OK)
            one = ct_wait_from(f->works[i], &f->from[i]);
        if (status == CT_OK)
            status = one;
    }
    f->count = 0;
    if (status == CT_OK)
        flight_fetch(f);
    return status;
}
