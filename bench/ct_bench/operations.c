/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c - see operations.h.  Factors are those of nccl-tests' doc/PERFORMANCE.md. */
#include "bench/ct_bench/operations.h"

#include "bench/ct_bench/pattern.h"

#define TAG 7

/* ---- Calls ------------------------------------------------------------------ */

static void *at_root(const struct shape *s, void *buf)
{
    return s->rank == s->root ? buf : NULL;
}

static ct_status all_reduce(const struct shape *s, void *send, void *recv)
{
    return ct_all_reduce(s->group, send, recv, s->count, s->dtype, s->op, NULL);
}

static ct_status reduce(const struct shape *s, void *send, void *recv)
{
    return ct_reduce(s->group, send, at_root(s, recv), s->count, s->dtype, s->op, s->root, NULL);
}

static ct_status broadcast(const struct shape *s, void *send, void *recv)
{
    (void)send;
    return ct_broadcast(s->group, recv, s->count, s->dtype, s->root, NULL);
}

static ct_status all_gather(const struct shape *s, void *send, void *recv)
{
    return ct_all_gather(s->group, send, recv, s->count, s->dtype, NULL);
}

static ct_status gather(const struct shape *s, void *send, void *recv)
{
    return ct_gather(s->group, send, at_root(s, recv), s->count, s->dtype, s->root, NULL);
}

static ct_status scatter(const struct shape *s, void *send, void *recv)
{
    return ct_scatter(s->group, at_root(s, send), recv, s->count, s->dtype, s->root, NULL);
}

static ct_status reduce_scatter(const struct shape *s, void *send, void *recv)
{
    return ct_reduce_scatter(s->group, send, recv, s->count, s->dtype, s->op, NULL);
}

static ct_status all_to_all(const struct shape *s, void *send, void *recv)
{
    return ct_all_to_all(s->group, send, recv, s->count, s->dtype, NULL);
}

static ct_status barrier(const struct shape *s, void *send, void *recv)
{
    (void)s, (void)send, (void)recv;
    return ct_barrier(s->group, NULL);
}

/* Ranks 0 and 1, there and back; the others wait. */
static ct_status ping_pong(const struct shape *s, void *send, void *recv)
{
    ct_status status = CT_OK;

    if (s->rank == 0)
        status = ct_send(s->group, send, s->count, s->dtype, 1, TAG);
    if (s->rank < 2 && status == CT_OK)
        status = ct_recv(s->group, recv, s->count, s->dtype, 1 - s->rank, TAG, NULL);
    if (s->rank == 1 && status == CT_OK)
        status = ct_send(s->group, send, s->count, s->dtype, 0, TAG);
    return status;
}

/* nccl-tests' sendrecv: everyone to the next one, all at once. */
static ct_status send_recv(const struct shape *s, void *send, void *recv)
{
    const int next = (s->rank + 1) % s->ranks, previous = (s->rank + s->ranks - 1) % s->ranks;
    ct_work *in = NULL, *out = NULL;
    ct_status received, sent;

    received = ct_irecv(s->group, recv, s->count, s->dtype, previous, TAG, &in);
    sent = ct_isend(s->group, send, s->count, s->dtype, next, TAG, &out);
    if (received == CT_OK)
        received = ct_wait(in);
    if (sent == CT_OK)
        sent = ct_wait(out);
    return received != CT_OK ? received : sent;
}

/* ---- Results ----------------------------------------------------------------- */

static struct origin from_fold(const struct shape *s, int block)
{
    (void)s;
    return (struct origin){ FOLDED, (size_t)block * s->count };
}

static struct origin from_own_block_of_fold(const struct shape *s, int block)
{
    (void)block;
    return (struct origin){ FOLDED, (size_t)s->rank * s->count };
}

static struct origin from_root(const struct shape *s, int block)
{
    (void)block;
    return (struct origin){ s->root, 0 };
}

static struct origin from_own_block_of_root(const struct shape *s, int block)
{
    (void)block;
    return (struct origin){ s->root, (size_t)s->rank * s->count };
}

static struct origin from_each(const struct shape *s, int block)
{
    (void)s;
    return (struct origin){ block, 0 };
}

static struct origin from_own_block_of_each(const struct shape *s, int block)
{
    return (struct origin){ block, (size_t)s->rank * s->count };
}

static struct origin from_the_other(const struct shape *s, int block)
{
    (void)block;
    return (struct origin){ 1 - s->rank, 0 };
}

static struct origin from_previous(const struct shape *s, int block)
{
    (void)block;
    return (struct origin){ (s->rank + s->ranks - 1) % s->ranks, 0 };
}

/* ---- Shares of the bytes -------------------------------------------------------- */

static double none(int n)
{
    (void)n;
    return 0;
}

static double all(int n)
{
    return n > 0;
}

static double all_to_another(int n)
{
    return n > 1;
}

static double share(int n)
{
    return 1.0 / n;
}

static double others(int n)
{
    return (n - 1.0) / n;
}

static double twice_others(int n)
{
    return 2 * others(n);
}

/* ---- Bytes read and written, as collectives/device/fused/copy_plan.c says them ----------------
 */

static double nothing(int n, int in_place)
{
    (void)n, (void)in_place;
    return 0;
}

/* Once read, once written. */
static double one_copy(int n, int in_place)
{
    (void)n, (void)in_place;
    return 2;
}

static double a_copy_each(int n, int in_place)
{
    (void)in_place;
    return 2.0 * n;
}

/* What all give is read, one result written. */
static double all_and_one(int n, int in_place)
{
    (void)in_place;
    return n + 1.0;
}

/* One is read, and written to all that have not got it. */
static double one_to_the_others(int n, int in_place)
{
    (void)in_place;
    return n;
}

static double each_to_all(int n, int in_place)
{
    return in_place ? n : n + 1.0;
}

/* In place a rank's own block stays where it is. */
static double blocks_of_one(int n, int in_place)
{
    return in_place ? 2 * others(n) : 2;
}

static double blocks_of_all(int n, int in_place)
{
    return 2.0 * (in_place ? n - 1 : n);
}

/* clang-format off */
const struct operation operations[] = {
    { .name = "all_reduce", .call = all_reduce, .sends = EVERYONE, .receives = EVERYONE,
      .in_place = SAME, .origin = from_fold,
      .bus = twice_others, .fold = share, .copy = others, .moves = a_copy_each,
      .reduces = 1 },
    { .name = "reduce", .call = reduce, .sends = EVERYONE, .receives = ROOT,
      .in_place = SAME, .origin = from_fold,
      .bus = all, .fold = share, .copy = none, .moves = all_and_one,
      .reduces = 1, .rooted = 1 },
    { .name = "broadcast", .call = broadcast, .sends = ROOT, .receives = EVERYONE,
      .in_place = ALWAYS, .origin = from_root,
      .bus = all, .fold = none, .copy = all_to_another, .moves = one_to_the_others,
      .rooted = 1 },
    { .name = "all_gather", .call = all_gather, .sends = EVERYONE, .receives = EVERYONE,
      .recv_per_rank = 1,
      .in_place = SEND_IN_RECV, .origin = from_each,
      .bus = others, .fold = none, .copy = others, .moves = each_to_all },
    { .name = "gather", .call = gather, .sends = EVERYONE, .receives = ROOT,
      .recv_per_rank = 1,
      .in_place = SEND_IN_RECV, .origin = from_each,
      .bus = others, .fold = none, .copy = share, .moves = blocks_of_one,
      .rooted = 1 },
    { .name = "scatter", .call = scatter, .sends = ROOT, .receives = EVERYONE,
      .send_per_rank = 1,
      .in_place = RECV_IN_SEND, .origin = from_own_block_of_root,
      .bus = others, .fold = none, .copy = share, .moves = blocks_of_one,
      .rooted = 1 },
    { .name = "reduce_scatter", .call = reduce_scatter, .sends = EVERYONE, .receives = EVERYONE,
      .send_per_rank = 1,
      .in_place = RECV_IN_SEND, .origin = from_own_block_of_fold,
      .bus = others, .fold = share, .copy = none, .moves = all_and_one,
      .reduces = 1 },
    { .name = "all_to_all", .call = all_to_all, .sends = EVERYONE, .receives = EVERYONE,
      .send_per_rank = 1, .recv_per_rank = 1,
      .in_place = SAME, .origin = from_own_block_of_each,
      .bus = others, .fold = none, .copy = others, .moves = blocks_of_all },
    { .name = "barrier", .call = barrier, .sends = NOBODY, .receives = NOBODY,
      .in_place = NEVER, .origin = NULL,
      .bus = none, .fold = none, .copy = none, .moves = nothing },
    { .name = "ping_pong", .call = ping_pong, .sends = FIRST_TWO, .receives = FIRST_TWO,
      .in_place = NEVER, .origin = from_the_other,
      .bus = all, .fold = none, .copy = all, .moves = one_copy,
      .least_ranks = 2, .trips = 2 },
    { .name = "send_recv", .call = send_recv, .sends = EVERYONE, .receives = EVERYONE,
      .in_place = NEVER, .origin = from_previous,
      .bus = all, .fold = none, .copy = all, .moves = a_copy_each },
};
/* clang-format on */
const int operation_count = sizeof operations / sizeof *operations;

int operation_blocks(const struct operation *operation, int ranks)
{
    return operation->send_per_rank || operation->recv_per_rank ? ranks : 1;
}

int takes_part(enum who who, const struct shape *shape)
{
    switch (who) {
    case EVERYONE:
        return 1;
    case ROOT:
        return shape->rank == shape->root;
    case FIRST_TWO:
        return shape->rank < 2;
    default:
        return 0;
    }
}
