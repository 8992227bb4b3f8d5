/* SPDX-License-Identifier: Apache-2.0 */
/* device_staged.c - a call on device memory through host memory: for any layout of ranks and
 * devices.
 *
 * What this rank gives is copied into host memory of the group's, packed block by block; the
 * algorithm that was chosen for such a call on host memory runs there, between hosts too; what this
 * rank gets is copied to the device.  Cost: the host's algorithm, and the bytes twice over the
 * device's bus. */
#include "collectives/device.h"

#include <stdlib.h>

#define KEPT ((size_t)64 << 20) /* of host memory, for the next call */

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

static char *host_memory(struct staging *s, size_t bytes)
{
    if (s->host_bytes >= bytes && s->host)
        return s->host;
    free(s->host);
    s->host = malloc(bytes > 0 ? bytes : 1);
    s->host_bytes = s->host ? bytes : 0;
    return s->host;
}

static void keep_little(struct staging *s)
{
    if (s->host_bytes <= KEPT)
        return;
    free(s->host);
    s->host = NULL;
    s->host_bytes = 0;
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

ct_status device_staged(struct call *c)
{
    const size_t sends = blocks_bytes(c, &c->send), recvs = blocks_bytes(c, &c->recv);
    const int one_buffer = c->signature.operation == OPERATION_BROADCAST;
    char *const send = host_memory(c->group->staging, sends + recvs);
    char *const recv = send ? send + sends : NULL;
    ct_status status;

    if (!send)
        return ct_fail(CT_ERR_NOMEM, "no host memory for %zu bytes of device memory",
                       sends + recvs);
    atomic_store(&c->group->last_algorithm, "staged");
    status = copy_blocks(c, &c->send, send, OUT);
    if (status == CT_OK && one_buffer && call_is_root(c))
        status = copy_blocks(c, &c->recv, recv, OUT);
    if (status == CT_OK) {
        scale(c, send, sends);
        status = run_on_host(c, send, recv);
    }
    if (status == CT_OK && !(one_buffer && call_is_root(c)))
        status = copy_blocks(c, &c->recv, recv, IN);
    keep_little(c->group->staging);
    return status;
}
