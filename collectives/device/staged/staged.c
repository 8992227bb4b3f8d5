/* SPDX-License-Identifier: Apache-2.0 */
/* staged.c - runs a call on device memory through host memory, for any layout of ranks and devices.
 *
 * A call is cut into pieces.  The group's host memory (staging_memory.c) has room for three pieces.
 * Three steps run at the same time:
 *
 *     The device copies piece k + 1 of this rank's input to the host.
 *     The algorithm that was chosen for such a call on host memory runs on piece k.
 *     The device copies piece k - 1 of this rank's result from the host.
 *
 * Cost: the longest of the three steps, and two pieces to fill and drain.  A call of one piece does
 * the three steps one after the other.
 *
 * A call in place is safe: piece k + 1 is read from memory that no earlier piece is written to.
 *
 * Only facts that all ranks agree on decide how a call is cut: operation, count, dtype, and the
 * group.  So v forms are not cut, and list forms are.  Each piece uses the algorithm that was
 * chosen for the whole call.  That algorithm can do a smaller call too, since fits() has only upper
 * limits.  All algorithms fold each element in the same written order, wherever the element is in
 * the buffer.  With CT_ORDER=fast a ring begins the sum of each part at another rank.  So with this
 * order reductions of floats are not cut, and their results have the bits of such a call on host
 * memory. */
#include "collectives/device/staged/staged.h"

#include <stdlib.h>

#include "collectives/device/staged/staging_memory.h"
#include "runtime/group/group_device.h"
#include "runtime/types/dtype.h"

#define KEPT ((size_t)64 << 20)  /* most bytes kept for the next call */
#define LEAST ((size_t)64 << 10) /* bytes of the smallest allocation; sizes are LEAST * 2^n */
#define LINE ((size_t)64)        /* bytes; received blocks begin at a multiple of LINE */

enum { ROOM = 3 }; /* most pieces in memory at the same time */

/* Pinned memory that could not be freed. */
struct former {
    struct former *next;
    struct host_memory memory;
};

/* The state of a group for the path. */
struct staged {
    struct host_memory agreed; /* the same size on all ranks; mapped by all ranks of the host */
    struct host_memory own;    /* for calls in which the ranks have different counts */
    struct former *former;     /* list of earlier memory, which was too small */
    int cant_pin;              /* 1 if the driver will never pin memory, which is logged once */
};

/* A running call. */
struct flow {
    struct call *c;
    struct pieces pieces;
    char *host;
    size_t place;          /* bytes of host memory for a piece */
    void *to_host[ROOM];   /* marks of copies to the host; NULL if there is no copy */
    void *from_host[ROOM]; /* marks of copies from the host; NULL if there is no copy */
};

/* ---- Pieces ---------------------------------------------------------------------------- */

/* The copy of a piece should take much longer than the start and end of a copy, about 10 us.  To
 * fill and drain the three pieces should take a small part of the whole call. 4 MiB take 80 us over
 * PCIe 5 and 170 us over PCIe 4.  With many ranks a piece needs many copies, at about 2 us each.
 * The second number limits these copies, at the cost of more host memory with 1000 ranks.  The
 * numbers are calculated; they were not measured on a GPU. */
struct piece_sizes piece_sizes = { (size_t)4 << 20, (size_t)8 << 10 };

enum { WHOLE = 64 }; /* elements; cuts are at cache lines in host memory */

static size_t sent_blocks(const struct call *c)
{
    const int operation = c->signature.operation;

    return operation == OPERATION_SCATTER || operation == OPERATION_REDUCE_SCATTER
                   || operation == OPERATION_ALL_TO_ALL
               ? (size_t)c->group->size
               : 1;
}

static size_t received_blocks(const struct call *c)
{
    const int operation = c->signature.operation;

    return operation == OPERATION_GATHER || operation == OPERATION_ALL_GATHER
                   || operation == OPERATION_ALL_TO_ALL
               ? (size_t)c->group->size
               : 1;
}

static int order_is_by_place(const struct call *c)
{
    return c->signature.op >= 0 && c->group->order.rule == ORDER_FAST
           && !dtype_is_integer(call_dtype(c));
}

static size_t elements_of_piece(const struct call *c, size_t blocks)
{
    const size_t share = piece_sizes.all / blocks;
    const size_t bytes = share > piece_sizes.block ? share : piece_sizes.block;

    return bytes > c->element ? bytes / c->element : 1;
}

/* Cuts `count` into nearly equal pieces, so that the last piece is not tiny.  `most` is the most
 * elements of a piece. */
static void cut(struct pieces *p, size_t count, size_t most)
{
    p->pieces = (count + most - 1) / most;
    p->count = ((count + p->pieces - 1) / p->pieces + WHOLE - 1) / WHOLE * WHOLE;
    p->pieces = (count + p->count - 1) / p->count;
}

struct pieces pieces_of(const struct call *c)
{
    const size_t sent = sent_blocks(c), received = received_blocks(c),
                 count = (size_t)c->signature.count;
    const size_t most = elements_of_piece(c, sent > received ? sent : received);
    struct pieces p = { .pieces = 1, .count = count };

    p.agreed = sizes_are_agreed(c) && !operation_has_counts(c->signature.operation);
    if (!p.agreed) {
        p.most = blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv);
        return p;
    }
    if (count > most && !order_is_by_place(c))
        cut(&p, count, most);
    p.most = (sent + received) * p.count * c->element;
    return p;
}

static size_t count_in(const struct call *c, const struct pieces *p, size_t k)
{
    const size_t rest = (size_t)c->signature.count - k * p->count;

    return rest < p->count ? rest : p->count;
}

struct span piece_block(const struct call *c, const struct pieces *p, const struct blocks *b, int i,
                        size_t k)
{
    struct span block = block_at(c, b, i);

    if (p->pieces > 1) {
        block.data += k * p->count * c->element;
        block.bytes = count_in(c, p, k) * c->element;
    }
    return block;
}

static void staged_pack(struct blocks *b, char *host)
{
    if (b->blocks == 0)
        return;
    b->base = host;
    b->list = NULL;
    b->displs = NULL;
}

static struct call piece_call(const struct call *c, const struct pieces *p, size_t k, char *send,
                              char *recv)
{
    struct call piece = *c;

    piece.place = (struct place){ NULL, NULL };
    staged_pack(&piece.send, send);
    staged_pack(&piece.recv, recv);
    if (p->pieces > 1) {
        piece.whole = &c->signature;
        piece.signature.count = piece.send.count = piece.recv.count = count_in(c, p, k);
    }
    return piece;
}

/* ---- Host memory --------------------------------------------------------------------- */

static size_t in_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static size_t doubled(size_t bytes)
{
    size_t all = LEAST;

    while (all < bytes && all < SIZE_MAX / 2)
        all *= 2;
    return all < bytes ? bytes : all;
}

/* Frees the memory.  If it is pinned and can't be unpinned now, keeps it until the group ends.
 * Each allocation is twice as large as the one before, so all kept memory together is no larger
 * than the memory in use. */
static ct_status drop_or_keep(ct_group *group, struct staged *s, struct host_memory *memory)
{
    struct former *former;

    if (host_memory_drop(group, memory, 0) == CT_OK)
        return CT_OK;
    if (!(former = malloc(sizeof *former)))
        return ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    *former = (struct former){ s->former, *memory };
    s->former = former;
    *memory = (struct host_memory){ 0 };
    return CT_OK;
}

static ct_status find_memory(struct flow *f, struct staged *s)
{
    const int agreed = f->pieces.agreed;
    const size_t pieces = f->pieces.pieces < ROOM ? f->pieces.pieces : ROOM;
    struct host_memory *memory = agreed ? &s->agreed : &s->own;
    ct_status status = CT_OK;

    f->place = in_lines(f->pieces.most) + LINE;
    if (!memory->data || memory->bytes < f->place * pieces) {
        status = drop_or_keep(f->c->group, s, memory);
        if (status == CT_OK)
            status = host_memory_make(f->c, memory, doubled(f->place * pieces), agreed);
    }
    if (status == CT_OK && memory->bytes <= KEPT)
        host_memory_pin(f->c, memory, &s->cant_pin);
    f->host = memory->data;
    return status;
}

/* Frees large memory.  `agreed` has the same size on all ranks, so all ranks free it, or no rank
 * does. */
static void keep_little(ct_group *group, struct staged *s)
{
    if (s->agreed.bytes > KEPT)
        host_memory_drop(group, &s->agreed, 0);
    if (s->own.bytes > KEPT)
        host_memory_drop(group, &s->own, 0);
}

static struct staged *staged_of(ct_group *group)
{
    return device_path_own(group, PATH_STAGED, sizeof(struct staged));
}

static void staged_end_group(ct_group *group)
{
    struct staged *s = group->device->path[PATH_STAGED].own;

    host_memory_drop(group, &s->agreed, 1);
    host_memory_drop(group, &s->own, 1);
    for (struct former *former = s->former, *next; former; former = next) {
        next = former->next;
        host_memory_drop(group, &former->memory, 1);
        free(former);
    }
    free(s);
}

/* ---- Copies -------------------------------------------------------------------------- */

static size_t piece_bytes(const struct flow *f, const struct blocks *b, size_t k)
{
    size_t bytes = 0;

    for (int i = 0; i < b->blocks; i++)
        bytes += piece_block(f->c, &f->pieces, b, i, k).bytes;
    return bytes;
}

static char *send_place(const struct flow *f, size_t k)
{
    return f->host + k % ROOM * f->place;
}

static char *recv_place(const struct flow *f, size_t k)
{
    return send_place(f, k) + in_lines(piece_bytes(f, &f->c->send, k));
}

static int is_packed(const struct blocks *b)
{
    return !b->list && !b->displs;
}

static ct_status staged_begin_copy(const struct flow *f, enum copy_way way, char *host,
                                   struct span there)
{
    const struct place *place = &f->c->place;

    if (there.bytes == 0)
        return CT_OK;
    return way == COPY_TO_HOST
               ? place->space->begin_copy(place->device, way, host, there.data, there.bytes)
               : place->space->begin_copy(place->device, way, there.data, host, there.bytes);
}

/* Starts to copy piece k between the device's blocks and the packed blocks on the host.  Sets *mark
 * to the end of the copies. */
static ct_status staged_begin_piece(struct flow *f, enum copy_way way, const struct blocks *b,
                                    char *host, size_t k, void **mark)
{
    const struct call *c = f->c;
    const int one = f->pieces.pieces == 1 && is_packed(b) && b->blocks > 0;
    ct_status status = CT_OK;
    size_t at = 0;

    for (int i = 0; i < (one ? 1 : b->blocks) && status == CT_OK; i++) {
        const struct span there = one ? (struct span){ b->base, blocks_bytes(c, b) }
                                      : piece_block(c, &f->pieces, b, i, k);

        status = staged_begin_copy(f, way, host + at, there);
        at += there.bytes;
    }
    return status == CT_OK && at > 0 ? c->place.space->mark_copies(c->place.device, way, mark)
                                     : status;
}

static void staged_forget(const struct flow *f, void **mark)
{
    if (*mark)
        f->c->place.space->forget(f->c->place.device, *mark);
    *mark = NULL;
}

static ct_status wait_for_copy(const struct flow *f, void **mark)
{
    const struct call *c = f->c;
    ct_status status;

    if (!*mark)
        return CT_OK;
    status = device_wait(c->group, c->place, *mark, c->deadline, &c->group->failure.status);
    if (status == CT_OK)
        staged_forget(f, mark);
    return status;
}

/* ---- The three steps ------------------------------------------------------------------------ */

/* Returns 1 if this rank sends from c->recv: a broadcast has one buffer, which the root sends and
 * the other ranks receive. */
static int staged_sends_from_recv(const struct call *c)
{
    return c->signature.operation == OPERATION_BROADCAST && call_is_root(c);
}

/* Starts to copy piece k to the host.  First waits until piece k - 3, which used the same host
 * memory, has been copied to the device. */
static ct_status copy_in(struct flow *f, size_t k)
{
    const ct_status status = wait_for_copy(f, &f->from_host[k % ROOM]);

    if (status != CT_OK)
        return status;
    if (staged_sends_from_recv(f->c))
        return staged_begin_piece(f, COPY_TO_HOST, &f->c->recv, recv_place(f, k), k,
                                  &f->to_host[k % ROOM]);
    return staged_begin_piece(f, COPY_TO_HOST, &f->c->send, send_place(f, k), k,
                              &f->to_host[k % ROOM]);
}

/* Runs the algorithm on piece k.  For premul_sum it scales the input first. */
static ct_status run_on_host(struct flow *f, size_t k)
{
    const struct call *c = f->c;
    char *const send = send_place(f, k);
    struct call piece = piece_call(c, &f->pieces, k, send, recv_place(f, k));

    if (c->scalar)
        combine_scale(call_dtype(c), send, send, piece_bytes(f, &c->send, k) / c->element,
                      c->scalar);
    return c->algorithm->run(&piece);
}

static ct_status copy_out(struct flow *f, size_t k)
{
    if (staged_sends_from_recv(f->c))
        return CT_OK;
    return staged_begin_piece(f, COPY_FROM_HOST, &f->c->recv, recv_place(f, k), k,
                              &f->from_host[k % ROOM]);
}

static ct_status run_pieces(struct flow *f)
{
    ct_status status = copy_in(f, 0);

    for (size_t k = 0; k < f->pieces.pieces && status == CT_OK; k++) {
        if (k + 1 < f->pieces.pieces)
            status = copy_in(f, k + 1);
        if (status == CT_OK)
            status = wait_for_copy(f, &f->to_host[k % ROOM]);
        if (status == CT_OK)
            status = run_on_host(f, k);
        if (status == CT_OK)
            status = copy_out(f, k);
    }
    for (int i = 0; i < ROOM && status == CT_OK; i++)
        status = wait_for_copy(f, &f->from_host[i]);
    return status;
}

/* Ends the copies of a failed call.  When this function returns, no copy uses the caller's buffers.
 */
static void end_failed(struct flow *f)
{
    f->c->place.space->end_copies(f->c->place.device);
    for (int i = 0; i < ROOM; i++) {
        staged_forget(f, &f->to_host[i]);
        staged_forget(f, &f->from_host[i]);
    }
}

/* Skips a captured call.  The host takes part in a staged call, so a staged call can't be in a
 * graph. */
static ct_status staged_prepare(struct call *c, enum path_result *result)
{
    *result = c->capture == NOT_CAPTURED && !c->elsewhere ? PATH_OK : PATH_SKIP_CALL;
    return CT_OK;
}

static ct_status staged_run(struct call *c, enum path_result *result)
{
    struct flow f = { .c = c, .pieces = pieces_of(c) };
    struct staged *const s = staged_of(c->group);
    ct_status status;

    *result = PATH_OK;
    if (!s)
        return CT_ERR_NOMEM;
    status = find_memory(&f, s);
    if (status == CT_OK) {
        status = run_pieces(&f);
        if (status != CT_OK)
            end_failed(&f);
    }
    keep_little(c->group, s);
    return status;
}

const struct device_path staged_path = {
    .name = "staged",
    .prepare = staged_prepare,
    .run = staged_run,
    .end_group = staged_end_group,
};
