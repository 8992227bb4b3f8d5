/* SPDX-License-Identifier: Apache-2.0 */
/* bounce_buffer.c - a group's bounce buffer in device memory.
 *
 * Another process can map memory of cuMemAlloc(), but not memory of pools or of cuMemCreate().  If
 * a rank's buffer can't be mapped, the rank copies the blocks that it sends to the bounce buffer,
 * packed one after the other, and offers the bounce buffer.  When the call is done, the rank copies
 * the received blocks back.  So this rank's device reads and writes each byte once more, which
 * costs far less than staging through the host.
 *
 * The bounce buffer is kept for the next call, and freed with the group.  An allocation may wait
 * for a stream that itself waits.  So no stream waits for a call that needs a larger bounce buffer.
 * While a stream waits for another call, such a call is staged. */
#include "collectives/device/fused/bounce_buffer.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/device/fused/fused_group.h"
#include "runtime/group/group_device.h"
#include "runtime/group/shm/direct.h"
#include "runtime/util/clock.h"

#define MOST ((size_t)256 << 20) /* most bytes of a buffer; a larger call is staged */
#define LEAST ((size_t)1 << 20)
/* The parts for sending and for receiving begin at multiples of this. */
#define APART ((size_t)256)

/* ---- The memory ---------------------------------------------------------------------- */

void bounce_free(struct bounce *bounce)
{
    const struct space *space = bounce->place.space;
    void *before;

    if (!bounce->memory || space->enter(&before) != CT_OK)
        return;
    /* If the wait times out, the device still uses the memory, so it is never freed. */
    if (space->finish(bounce->place.device,
                      (struct patience){ .deadline = deadline_after(SHM_GROUP_DEVICE_SETTLING_MS) })
        != CT_ERR_TIMEOUT)
        space->release(bounce->place.device, bounce->memory);
    space->leave(before);
    bounce->memory = NULL;
    bounce->bytes = 0;
    atomic_store(&bounce->room, 0);
}

void bounce_refuse(struct bounce *bounce)
{
    bounce->useless = 1;
    atomic_store(&bounce->room, SIZE_MAX); /* so that bounce_must_grow() returns 0 for every call */
}

/* Returns the bytes that these sides need.  Sets *apart to the offset of the receive side. */
static size_t bytes_for(const struct call *c, int sides, size_t *apart)
{
    const size_t sends = sides & SENDS_BOUNCE ? blocks_bytes(c, &c->send) : 0;
    const size_t recvs = sides & RECVS_BOUNCE ? blocks_bytes(c, &c->recv) : 0;

    *apart = (sends + APART - 1) / APART * APART;
    return *apart + recvs;
}

int bounce_must_grow(const struct call *c)
{
    const struct fused_group *f = fused_of(c->group);
    const size_t room = f ? atomic_load(&f->bounce.room) : 0;
    size_t apart, bytes;

    if (bytes_for(c, SENDS_BOUNCE | RECVS_BOUNCE, &apart) <= room)
        return 0;
    bytes = bytes_for(c, offer_bounces(c), &apart);
    return bytes > room && bytes <= MOST;
}

/* Returns the bounce buffer, enlarged if needed.  Returns NULL if it can't be used or there is no
 * memory. */
static char *room(const struct call *c, size_t bytes)
{
    struct bounce *bounce = &fused_of(c->group)->bounce;
    size_t wanted = LEAST;

    if (bounce->useless || bytes > MOST)
        return NULL;
    if (bounce->bytes >= bytes && bounce->place.device == c->place.device)
        return bounce->memory;
    bounce_free(bounce);
    while (wanted < bytes)
        wanted *= 2;
    bounce->place = c->place;
    if (c->place.space->alloc_now(c->place.device, wanted, &bounce->memory) != CT_OK)
        return NULL;
    bounce->bytes = wanted;
    atomic_store(&bounce->room, wanted);
    return bounce->memory;
}

/* ---- Copies --------------------------------------------------------------------------- */

/* Enqueues the copies of all blocks from one layout to another.  The blocks have the same sizes in
 * both layouts. */
static ct_status bounce_enqueue(const struct call *c, const struct blocks *from,
                                const struct blocks *to)
{
    static const int one = 1;
    const struct fold copy = { CT_U8, CT_MAX, 1, 1, &one };
    const size_t n = (size_t)from->blocks;
    struct fold_part *const parts = malloc(n * sizeof *parts);
    void **const pointers = malloc(2 * n * sizeof *pointers);
    ct_status status = CT_ERR_NOMEM;

    for (size_t i = 0; parts && pointers && i < n; i++) {
        const struct span source = block_at(c, from, (int)i);

        pointers[2 * i] = source.data;
        pointers[2 * i + 1] = block_at(c, to, (int)i).data;
        parts[i] = (struct fold_part){ .dst = &pointers[2 * i + 1],
                                       .src = (const void *const *)&pointers[2 * i],
                                       .dsts = 1,
                                       .count = source.bytes };
    }
    if (parts && pointers)
        status = c->place.space->fold(c->place.device, NULL, &copy, NULL, parts, from->blocks);
    else
        ct_fail(CT_ERR_NOMEM, "no memory to copy %zu blocks", n);
    free(parts);
    free(pointers);
    return status;
}

/* Copies the blocks and waits.  After a failure it also waits for the copies that were enqueued,
 * since a failed call returns its buffers to the caller. */
static ct_status bounce_copy(const struct call *c, const struct blocks *from,
                             const struct blocks *to)
{
    ct_status status = bounce_enqueue(c, from, to);

    if (status == CT_OK)
        status = device_wait(c->group, c->place, NULL, c->deadline, &c->group->failure.status);
    if (status != CT_OK) { /* some copies may have been enqueued */
        char why[240];

        snprintf(why, sizeof why, "%s", ct_last_error());
        c->place.space->finish(
            c->place.device,
            (struct patience){ .deadline = deadline_after(SHM_GROUP_DEVICE_SETTLING_MS) });
        ct_fail(status, "%s", why);
    }
    return status;
}

static void bounce_pack(struct blocks *b, char *memory)
{
    b->base = memory;
    b->list = NULL;
    b->displs = NULL;
}

/* ---- In and out ----------------------------------------------------------------------- */

static int bounce_sends_from_recv(const struct call *c)
{
    return c->signature.operation == OPERATION_BROADCAST && call_is_root(c);
}

ct_status bounce_in(const struct call *c, int sides, struct call *given, int *bounced)
{
    size_t apart;
    char *const memory = room(c, bytes_for(c, sides, &apart));
    ct_status status = CT_OK;

    *bounced = 0;
    *given = *c;
    if (!memory)
        return CT_OK;
    if (sides & SENDS_BOUNCE)
        bounce_pack(&given->send, memory);
    if (sides & RECVS_BOUNCE)
        bounce_pack(&given->recv, memory + apart);
    if (sides & SENDS_BOUNCE)
        status = bounce_copy(c, &c->send, &given->send);
    else if (bounce_sends_from_recv(c))
        status = bounce_copy(c, &c->recv, &given->recv);
    *bounced = status == CT_OK;
    return status == CT_ERR_UNSUPPORTED ? CT_OK : status; /* no kernels for this device */
}

ct_status bounce_out(const struct call *c, const struct call *given)
{
    if (given->recv.base == c->recv.base && given->recv.list == c->recv.list)
        return CT_OK;
    return bounce_sends_from_recv(c) ? CT_OK : bounce_copy(c, &given->recv, &c->recv);
}
