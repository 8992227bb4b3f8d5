/* SPDX-License-Identifier: Apache-2.0 */
/* device_staged.c - a call on device memory through host memory: for any layout of ranks and
 * devices.
 *
 * What this rank gives is copied into host memory of the group's (device_host.c), packed block by
 * block; the algorithm that was chosen for such a call on host memory runs there, between hosts
 * too; what this rank gets is copied to the device.  Cost: the host's algorithm, and the bytes
 * twice over the device's bus. */
#include "collectives/device.h"
#include "collectives/device_host.h"

#include <stdlib.h>

#define KEPT ((size_t)64 << 20)  /* of host memory, for the next call */
#define LEAST ((size_t)64 << 10) /* to begin with: what is asked for grows by doubling */

/* What a group keeps. */
struct staged {
    struct host_memory agreed; /* as large on all ranks, who reach each other's */
    struct host_memory own;    /* of calls whose ranks give different counts */
    int cant_pin;              /* it was said why */
};

static int is_packed(const struct blocks *b)
{
    return !b->list && !b->displs;
}

enum way { OUT, IN };

/* Between the device's blocks and the host's packed ones. */
static ct_status copy_blocks(const struct call *c, const struct blocks *b, char *host, enum way way)
{
    const struct space *space = c->place.space;
    const int pieces = is_packed(b) ? 1 : b->blocks;
    ct_status status = CT_OK;
    size_t at = 0;

    if (b->blocks == 0)
        return CT_OK;
    for (int i = 0; i < pieces && status == CT_OK; i++) {
        const struct span block =
            is_packed(b) ? (struct span){ b->base, blocks_bytes(c, b) } : block_at(c, b, i);

        if (block.bytes > 0)
            status = way == OUT
                         ? space->to_host(c->place.device, host + at, block.data, block.bytes)
                         : space->from_host(c->place.device, block.data, host + at, block.bytes);
        at += block.bytes;
    }
    return status;
}

/* What a rank may need of it at the most, on all ranks the same. */
static size_t agreed_bytes(const struct call *c)
{
    const int operation = c->signature.operation;
    const size_t n = call_bytes(c), p = (size_t)c->group->size;
    const size_t sends = operation == OPERATION_SCATTER || operation == OPERATION_REDUCE_SCATTER
                                 || operation == OPERATION_ALL_TO_ALL
                             ? p
                             : 1;
    const size_t recvs = operation == OPERATION_GATHER || operation == OPERATION_ALL_GATHER
                                 || operation == OPERATION_ALL_TO_ALL
                             ? p
                             : 1;

    return (sends + recvs) * n;
}

static size_t doubled(size_t bytes)
{
    size_t all = LEAST;

    while (all < bytes && all < SIZE_MAX / 2)
        all *= 2;
    return all < bytes ? bytes : all;
}

/* Pinning costs more than it saves where the memory is not kept. */
static ct_status memory_of(struct call *c, struct staged *s, size_t bytes, char **host)
{
    const int agreed = device_is_agreed(c->signature.operation);
    struct host_memory *memory = agreed ? &s->agreed : &s->own;
    const size_t most = agreed ? agreed_bytes(c) : bytes;
    int dont = 1;
    ct_status status = CT_OK;

    if (!memory->data || memory->bytes < most)
        status = host_memory_make(c, memory, doubled(most), agreed,
                                  doubled(most) > KEPT ? &dont : &s->cant_pin);
    *host = memory->data;
    return status;
}

/* Of all ranks or of none, where it is the same on all. */
static void keep_little(ct_group *group, struct staged *s)
{
    if (s->agreed.bytes > KEPT)
        host_memory_drop(group, &s->agreed);
    if (s->own.bytes > KEPT)
        host_memory_drop(group, &s->own);
}

static struct staged *staged_of(ct_group *group)
{
    struct staging *staging = group->staging;

    if (!staging->staged && !(staging->staged = calloc(1, sizeof *staging->staged)))
        ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    return staging->staged;
}

void staged_end(ct_group *group, struct staged *s)
{
    if (!s)
        return;
    host_memory_drop(group, &s->agreed);
    host_memory_drop(group, &s->own);
    free(s);
}

static void pack(struct blocks *b, char *host)
{
    if (b->blocks == 0)
        return;
    b->base = host;
    b->list = NULL;
    b->displs = NULL;
}

/* premul_sum: the input is scaled here. */
static void scale(const struct call *c, char *host, size_t bytes)
{
    if (c->scalar)
        combine_scale(call_dtype(c), host, host, bytes / c->element, c->scalar);
}

static ct_status run_on_host(const struct call *c, char *send, char *recv)
{
    struct call host = *c;

    host.place = (struct place){ NULL, NULL };
    pack(&host.send, send);
    pack(&host.recv, recv);
    return c->algorithm->run(&host);
}

static ct_status stage(struct call *c, char *send, size_t sends)
{
    const int one_buffer = c->signature.operation == OPERATION_BROADCAST;
    char *const recv = send + sends;
    ct_status status = copy_blocks(c, &c->send, send, OUT);

    if (status == CT_OK && one_buffer && call_is_root(c))
        status = copy_blocks(c, &c->recv, recv, OUT);
    if (status == CT_OK) {
        scale(c, send, sends);
        status = run_on_host(c, send, recv);
    }
    if (status == CT_OK && !(one_buffer && call_is_root(c)))
        status = copy_blocks(c, &c->recv, recv, IN);
    return status;
}

ct_status device_staged(struct call *c)
{
    const size_t sends = blocks_bytes(c, &c->send), recvs = blocks_bytes(c, &c->recv);
    struct staged *const s = staged_of(c->group);
    char *host = NULL;
    ct_status status;

    if (!s)
        return CT_ERR_NOMEM;
    atomic_store(&c->group->last_algorithm, "staged");
    status = memory_of(c, s, sends + recvs, &host);
    if (status == CT_OK)
        status = stage(c, host, sends);
    keep_little(c->group, s);
    return status;
}
