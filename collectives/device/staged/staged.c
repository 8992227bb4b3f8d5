/* SPDX-License-Identifier: Apache-2.0 */
/* staged.c - a call on device memory through host memory: for any layout of ranks and
 * devices.
 *
 * A call is cut into pieces (staged_chunks.c), and host memory of the group's (staging_memory.c)
 * has room for three of them.  Each goes through three hands, which work at the same time:
 *
 *     piece k + 1 of what this rank gives is copied to the host
 *     piece k goes by the algorithm that was chosen for such a call on host memory
 *     piece k - 1 of what this rank gets is copied to the device
 *
 * Cost: the largest of the three, and two pieces to fill and drain.  A call of one piece goes
 * through them one after the other.
 *
 * In place is safe: what piece k + 1 is read from no earlier piece is written to. */
#include "collectives/device/staged/staged.h"

#include <stdlib.h>

#include "collectives/device/staged/staged_chunks.h"
#include "collectives/device/staged/staging_memory.h"
#include "runtime/group/device_wait.h"

#define KEPT ((size_t)64 << 20)  /* of host memory, for the next call */
#define LEAST ((size_t)64 << 10) /* to begin with: what is asked for grows by doubling */
#define LINE ((size_t)64)        /* where what is received begins, behind what is sent */

enum { ROOM = 3 }; /* pieces that are on their way at a time */

/* Pinned memory that could not be given back. */
struct former {
    struct former *next;
    struct host_memory memory;
};

/* What a group keeps. */
struct staged {
    struct host_memory agreed; /* as large on all ranks, who reach each other's */
    struct host_memory own;    /* of calls whose ranks give different counts */
    struct former *former;     /* were not enough */
    int cant_pin;              /* it was said why */
};

/* One call on its way. */
struct flow {
    struct call *c;
    struct pieces pieces;
    char *host;
    size_t place;          /* bytes there for a piece */
    void *to_host[ROOM];   /* marks of what is being copied there; NULL: nothing */
    void *from_host[ROOM]; /* and from there */
};

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

/* The largest that is kept is never pinned, for it is dropped at once.  What is pinned may have to
 * stay; since it grows by doubling, what stays is no more than what took its place. */
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

/* Of all ranks or of none, where it is as large on all. */
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

static ct_status begin_copy(const struct flow *f, enum copy_way way, char *host, struct span there)
{
    const struct place *place = &f->c->place;

    if (there.bytes == 0)
        return CT_OK;
    return way == COPY_TO_HOST
               ? place->space->begin_copy(place->device, way, host, there.data, there.bytes)
               : place->space->begin_copy(place->device, way, there.data, host, there.bytes);
}

/* Between piece k of the device's blocks and the host's packed ones. */
static ct_status begin(struct flow *f, enum copy_way way, const struct blocks *b, char *host,
                       size_t k, void **mark)
{
    const struct call *c = f->c;
    const int one = f->pieces.pieces == 1 && is_packed(b) && b->blocks > 0;
    ct_status status = CT_OK;
    size_t at = 0;

    for (int i = 0; i < (one ? 1 : b->blocks) && status == CT_OK; i++) {
        const struct span there = one ? (struct span){ b->base, blocks_bytes(c, b) }
                                      : piece_block(c, &f->pieces, b, i, k);

        status = begin_copy(f, way, host + at, there);
        at += there.bytes;
    }
    return status == CT_OK && at > 0 ? c->place.space->mark_copies(c->place.device, way, mark)
                                     : status;
}

static void forget(const struct flow *f, void **mark)
{
    if (*mark)
        f->c->place.space->forget(f->c->place.device, *mark);
    *mark = NULL;
}

static ct_status wait(const struct flow *f, void **mark)
{
    const struct call *c = f->c;
    ct_status status;

    if (!*mark)
        return CT_OK;
    status = device_wait(c->group, c->place, *mark, c->deadline, &c->group->failure.status);
    if (status == CT_OK)
        forget(f, mark);
    return status;
}

/* ---- The flow ------------------------------------------------------------------------ */

/* A broadcast has one buffer, which the root gives and the others get. */
static int gives_what_others_get(const struct call *c)
{
    return c->signature.operation == OPERATION_BROADCAST && call_is_root(c);
}

/* Its place was that of the piece before the last two. */
static ct_status bring(struct flow *f, size_t k)
{
    const ct_status status = wait(f, &f->from_host[k % ROOM]);

    if (status != CT_OK)
        return status;
    if (gives_what_others_get(f->c))
        return begin(f, COPY_TO_HOST, &f->c->recv, recv_place(f, k), k, &f->to_host[k % ROOM]);
    return begin(f, COPY_TO_HOST, &f->c->send, send_place(f, k), k, &f->to_host[k % ROOM]);
}

/* premul_sum: the input is scaled here. */
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

static ct_status take_away(struct flow *f, size_t k)
{
    if (gives_what_others_get(f->c))
        return CT_OK;
    return begin(f, COPY_FROM_HOST, &f->c->recv, recv_place(f, k), k, &f->from_host[k % ROOM]);
}

static ct_status run(struct flow *f)
{
    ct_status status = bring(f, 0);

    for (size_t k = 0; k < f->pieces.pieces && status == CT_OK; k++) {
        if (k + 1 < f->pieces.pieces)
            status = bring(f, k + 1);
        if (status == CT_OK)
            status = wait(f, &f->to_host[k % ROOM]);
        if (status == CT_OK)
            status = run_on_host(f, k);
        if (status == CT_OK)
            status = take_away(f, k);
    }
    for (int i = 0; i < ROOM && status == CT_OK; i++)
        status = wait(f, &f->from_host[i]);
    return status;
}

/* The caller's buffers are its own again when this returns. */
static void end_failed(struct flow *f)
{
    f->c->place.space->end_copies(f->c->place.device);
    for (int i = 0; i < ROOM; i++) {
        forget(f, &f->to_host[i]);
        forget(f, &f->from_host[i]);
    }
}

/* The host works in it, so it can't be left to the launches of a graph. */
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
        status = run(&f);
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
