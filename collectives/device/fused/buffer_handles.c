/* SPDX-License-Identifier: Apache-2.0 */
/* buffer_handles.c - makes handles of a rank's buffers, which a leader can map.
 *
 * A contiguous buffer has one handle.  If its blocks differ in size, a table with the offset and
 * size of each block follows the handles.  A list has a handle for each block. */
#include "collectives/device/fused/buffer_handles.h"

#include <stdio.h>
#include <string.h>

#include "collectives/device/fused/fused_group.h"

/* Returns 1 if the offer needs the table of blocks, since the ranks do not know each other's block
 * sizes. */
static int blocks_differ(const struct call *c)
{
    return operation_has_counts(c->signature.operation) || !sizes_are_agreed(c);
}

static struct device_handle *handles_of(const struct offer *offer, enum side side)
{
    return (struct device_handle *)(uintptr_t)(offer + 1)
           + (side == RECVS ? offer->handles[SENDS] : 0);
}

/* Returns the table of a side. sends is the number of blocks of the send side. */
static struct offered_block *table_of(const struct offer *offer, enum side side, int sends)
{
    return (struct offered_block *)(void *)(handles_of(offer, RECVS) + offer->handles[RECVS])
           + (side == RECVS && offer->handles[SENDS] > 0 ? sends : 0);
}

size_t offer_most(const struct call *c)
{
    const size_t blocks = (size_t)(plan_sends(c) + plan_recvs(c));

    return sizeof(struct offer)
           + (blocks_differ(c)
                  ? 2 * sizeof(struct device_handle) + blocks * sizeof(struct offered_block)
                  : blocks * sizeof(struct device_handle));
}

/* ---- Offering ------------------------------------------------------------------------- */

static void handle_refuse(struct offer *offer, const char *why)
{
    if (!offer->usable)
        return;
    offer->usable = 0;
    snprintf(offer->why, sizeof offer->why, "%s", why);
}

/* Makes a handle of the buffer.  Returns CT_ERR_INVALID if the allocation ends before the buffer
 * ends. */
static ct_status handle_give(const struct call *c, struct span buffer, struct device_handle *handle)
{
    memset(handle, 0, sizeof *handle);
    return c->place.space->give(c->place.device, buffer.data, buffer.bytes, handle);
}

/* Returns the range from the first byte to the last byte of all blocks.  At least one block must
 * have bytes. */
static struct span handle_extent(const struct call *c, const struct blocks *b)
{
    char *from = NULL, *to = NULL;

    for (int i = 0; i < b->blocks; i++) {
        const struct span one = block_at(c, b, i);

        if (one.bytes == 0)
            continue;
        if (!from || one.data < from)
            from = one.data;
        if (!to || one.data + one.bytes > to)
            to = one.data + one.bytes;
    }
    return (struct span){ from, (size_t)(to - from) };
}

static ct_status give_side(const struct call *c, const struct blocks *b, enum side side,
                           struct offer *offer, int *bounce)
{
    struct device_handle *const handles = handles_of(offer, side);
    ct_status status = CT_OK;

    for (int i = 0; i < offer->handles[side] && status == CT_OK; i++)
        status = handle_give(c, b->list ? block_at(c, b, i) : handle_extent(c, b), &handles[i]);
    if (status == CT_OK || status == CT_ERR_INVALID)
        return status;
    handle_refuse(offer, ct_last_error());
    if (status == CT_ERR_UNSUPPORTED)
        *bounce |= side == SENDS ? SENDS_BOUNCE : RECVS_BOUNCE;
    return CT_OK;
}

static void show_blocks(const struct call *c, const struct blocks *b, enum side side,
                        struct offer *offer)
{
    struct offered_block *const table = table_of(offer, side, plan_sends(c));
    const char *const start = offer->handles[side] > 0 ? handle_extent(c, b).data : NULL;

    for (int i = 0; start && i < b->blocks; i++) {
        const struct span one = block_at(c, b, i);

        table[i] =
            (struct offered_block){ one.bytes > 0 ? (uint64_t)(one.data - start) : 0, one.bytes };
    }
}

static int handles_for(const struct call *c, const struct blocks *b)
{
    return blocks_bytes(c, b) == 0 ? 0 : b->list ? b->blocks : 1;
}

static int side_bounces(const struct call *c, const struct blocks *b)
{
    for (int i = 0; i < handles_for(c, b); i++)
        if (!c->place.space->can_give(c->place.device,
                                      b->list ? block_at(c, b, i).data : handle_extent(c, b).data))
            return 1;
    return 0;
}

int offer_bounces(const struct call *c)
{
    return (side_bounces(c, &c->send) ? SENDS_BOUNCE : 0)
           | (side_bounces(c, &c->recv) ? RECVS_BOUNCE : 0);
}

static size_t handle_bytes_of(const struct call *c, const struct offer *offer)
{
    const struct offered_block *end = table_of(offer, SENDS, 0);

    if (blocks_differ(c))
        end =
            table_of(offer, RECVS, plan_sends(c)) + (offer->handles[RECVS] > 0 ? plan_recvs(c) : 0);
    return (size_t)((const char *)end - (const char *)offer);
}

static ct_status show_sides(const struct call *c, struct offer *offer, int *bounce)
{
    ct_status status;

    offer->handles[SENDS] = handles_for(c, &c->send);
    offer->handles[RECVS] = handles_for(c, &c->recv);
    status = give_side(c, &c->send, SENDS, offer, bounce);
    if (status == CT_OK)
        status = give_side(c, &c->recv, RECVS, offer, bounce);
    if (status == CT_OK && blocks_differ(c)) {
        show_blocks(c, &c->send, SENDS, offer);
        show_blocks(c, &c->recv, RECVS, offer);
    }
    return status;
}

ct_status offer_make(const struct call *c, struct offer *offer, size_t *bytes, int *bounce)
{
    ct_status status = CT_OK;

    *bounce = 0;
    memset(offer, 0, sizeof *offer);
    c->place.space->id(c->place.device, offer->device);
    offer->usable = 1;
    offer->by_streams = c->by_streams;
    offer->scaled = c->scalar != NULL;
    if (c->scalar)
        memcpy(offer->scalar, c->scalar, sizeof offer->scalar);
    if (c->elsewhere && blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv) > 0)
        handle_refuse(offer, "a rank's buffers are host memory");
    else if (c->capture == CAPTURE_IS_VOID)
        handle_refuse(offer, "the capture of its stream is void");
    else
        status = show_sides(c, offer, bounce);
    *bytes = handle_bytes_of(c, offer);
    return status;
}

/* ---- Taking ----------------------------------------------------------------------------- */

static ct_status handle_take(const struct call *c, const struct device_handle *handle,
                             char **pointer)
{
    void *mapped = NULL;
    const ct_status status = c->place.space->take(c->place.device, handle, c->group, &mapped);

    fused_of(c->group)->mapped = c->place;
    *pointer = mapped;
    return status;
}

ct_status offer_take(const struct call *c, const struct offer *offer, enum side side,
                     struct span *blocks, int count)
{
    const struct device_handle *const handles = handles_of(offer, side);
    const struct offered_block *const table = table_of(offer, side, plan_sends(c));
    const size_t n = call_bytes(c);
    const int each = offer->handles[side] > 1;
    char *base = NULL;
    ct_status status = CT_OK;

    for (int i = 0; offer->handles[side] > 0 && i < count && status == CT_OK; i++) {
        if (each || i == 0)
            status = handle_take(c, &handles[i], &base);
        if (status == CT_OK && blocks_differ(c))
            blocks[i] = (struct span){ base + table[i].at, table[i].bytes };
        else if (status == CT_OK)
            blocks[i] = (struct span){ each ? base : base + (size_t)i * n, n };
    }
    return status;
}
